# SPDX-License-Identifier: Apache-2.0
"""Traffic while configuration moves: the same Envoys, direct and relayed at the same moment, and what their requests get."""

import copy
import sys
import time
from pathlib import Path

from peers.process import Failed, Talker
from peers.relay import Relay
from proxies import Proxy

SIDE = (sys.executable, Path(__file__).parent / "side.py")
PORT = 8080
# The ports of backends: the one of a host that never changes, fifteen that hosts use in turn, and one more.
BACKENDS = range(9001, 9018)
STEADY, *TURNS, MORE = BACKENDS
TENANT = "red"
# How often each step is played, and how long it may take until both sides have the right answer, in seconds.
ROUNDS = {"hosts": 40, "replaced": 30, "changed": 30, "front": 16, "reordered": 24, "deleted": 32, "restarted": 4}
GIVEN_UP = 20.0
# How long traffic goes on after both sides have the right answer, in seconds.
AFTER = 0.1
NAMES = ("direct", "relayed")
TITLES = {
    "hosts": "a new host", "replaced": "a route replaced by another", "changed": "backend and filter of a route",
    "front": "a rule in front of 15, and its removal", "reordered": "gateway #9029: a rule in front of `/`, and back",
    "deleted": "a route or its backend deleted, and added again", "restarted": "the control plane restarted, with one more host",
}


class Side(Talker, Proxy):
    """An Envoy with backends and requests in its namespace; see side.py."""

    def order(self, **message):
        """Gives an order, and returns the first answer that is not about the order before."""
        start = len(self.lines)
        self.tell(message)
        return self.wait_for(f"an answer to {list(message)}", lambda line: "right" not in line, start)

    def right(self, since, deadline):
        """When all targets had answered rightly; None if that takes too long."""
        try:
            return self.wait_for("the right answer", lambda line: "right" in line, since, max(0.1, deadline - time.monotonic()))["right"]
        except Failed:
            self.must_live()
            return None


class Tally:
    """What one side did in all rounds of a step."""

    def __init__(self):
        self.asked = self.failed = self.wrong = self.missing = self.hit = 0
        self.what, self.times = {}, []

    def take(self, counts, took):
        for name in ("asked", "failed", "wrong"):
            setattr(self, name, getattr(self, name) + counts[name])
        self.hit += counts["failed"] > 0
        for outcome, count in counts["what"].items():
            self.what[outcome] = self.what.get(outcome, 0) + count
        self.missing += took is None
        self.times.append(took)

    def __str__(self):
        found = ", ".join(f"{count} x {outcome}" for outcome, count in sorted(self.what.items()))
        missing = f", {self.missing} rounds without" if self.missing else ""
        return f"{self.failed} failed{f' in {self.hit} rounds' if self.hit else ''}, {self.wrong} wrong of {self.asked}" \
            f"{f' ({found})' if found else ''}; first right answer {spread(time for time in self.times if time is not None)}{missing}"


class Bench:
    """A control plane, a relay in front of it, and two Envoys of one tenant: one of them asks the relay. All of them use one dialect,
    and so does the relay."""

    def __init__(self, make, programs, logs, doors, word, api_type):
        self.make, self.programs, self.logs, self.doors, self.word, self.api_type = make, programs, logs, doors, word, api_type
        self.socket = doors / "relay.xds"
        self.backends, self.routes, self.steady = dict.fromkeys(BACKENDS, False), {}, ("steady.example.com", "/", STEADY)
        self.plane, self.relay, self.sides, self.tallies = make(), None, (), {}

    def play(self):
        self.routes["steady"] = route("steady.example.com", rule(STEADY))
        self.plane.publish(self.parts())
        bootstrap = self.plane.bootstrap(TENANT)
        bootstrap["dynamic_resources"]["ads_config"]["api_type"] = self.api_type
        text = self.plane.plain_relay(self.socket, self.word)
        self.relay = Relay(self.programs.relay, self.logs, None, text=text, listens=True)
        ways = dict(zip(NAMES, (self.plane.direct, lambda own: self.plane.plain(own, self.socket))))
        self.sides = [Side(name, self.programs.envoy, self.logs, self.doors, way(copy.deepcopy(bootstrap)), around=SIDE)
                      for name, way in ways.items()]
        for side in self.sides:
            side.ready()
        self.round("begin", [])
        self.tallies.clear()
        for step, rounds in ROUNDS.items():
            for number in range(rounds):
                getattr(self, step)(number)
            self.routes = {"steady": self.routes["steady"]}

    def parts(self):
        return self.plane.tenant(TENANT, {"web": PORT}, [port for port, gone in self.backends.items() if not gone], self.routes)

    def round(self, step, targets, change=None, relayed=None):
        """One change under traffic: `targets` are (host, path, outcomes before, outcome after), `relayed` the same through the relay where
        that differs; another host stays as it is."""
        host, path, port = self.steady
        since = [len(side.lines) for side in self.sides]
        for side, own in zip(self.sides, (targets, relayed or targets)):
            watched = [(host, path, [], served(port)), *own]
            side.order(port=PORT, watch=[dict(zip(("host", "path", "before", "after"), target)) for target in watched])
        began = change() if change else self.plane.publish(self.parts())
        rights = [side.right(start, began + GIVEN_UP) for side, start in zip(self.sides, since)]
        time.sleep(AFTER)
        for side, right in zip(self.sides, rights):
            counts = side.order(count=True)["counts"]
            self.tallies.setdefault((step, side.name), Tally()).take(counts, right and right - began)

    def hosts(self, number):
        port = TURNS[number % 15]
        self.routes[f"host-{number}"] = route(f"host-{number}.example.com", rule(port))
        self.round("hosts", [(f"host-{number}.example.com", "/", [404], served(port))])

    def replaced(self, number):
        """The host has one route, whose successor has another name and another backend."""
        if number == 0:
            self.routes["site-0"] = route("site.example.com", rule(TURNS[0]))
            self.round("begin", [("site.example.com", "/", [404], served(TURNS[0]))])
        old, new = (TURNS[(number + more) % 15] for more in (0, 1))
        del self.routes[f"site-{number}"]
        self.routes[f"site-{number + 1}"] = route("site.example.com", rule(new))
        self.round("replaced", [("site.example.com", "/", [served(old)], served(new))])

    def changed(self, number):
        """The route keeps its name; its backend is a new one, and so is the header that its filter sets. The old backend is deleted."""
        first, second = TURNS[number % 2], TURNS[(number + 1) % 2]
        if number == 0:
            self.routes["moving"] = route("moving.example.com", rule(first, version=0))
            self.backends[second] = True
            self.round("begin", [("moving.example.com", "/", [404], served(first, 0))])
        self.backends.update({first: True, second: False})
        self.routes["moving"] = route("moving.example.com", rule(second, version=number + 1))
        self.round("changed", [("moving.example.com", "/", [served(first, number)], served(second, number + 1))])
        if number + 1 == ROUNDS["changed"]:
            self.backends[first] = False

    def front(self, number):
        rules = [rule(port, f"/r{port}/") for port in TURNS]
        targets = [("long.example.com", f"/r{port}/", [], served(port)) for port in TURNS]
        if number == 0:
            self.routes["long"] = route("long.example.com", *rules)
            self.round("begin", [(host, path, [404], after) for host, path, _, after in targets])
        added = rule(MORE, "/new/")
        ends = [404, served(MORE)] if number % 2 == 0 else [served(MORE), 404]
        self.routes["long"] = route("long.example.com", *([added] if number % 2 == 0 else []), *rules)
        self.round("front", [("long.example.com", "/new/", ends[:1], ends[1]), *targets])

    def reordered(self, number):
        if number == 0:
            self.routes["shop"] = route("shop.example.com", rule(TURNS[0]))
            self.round("begin", [("shop.example.com", "/", [404], served(TURNS[0]))])
        both = [rule(TURNS[1], "/api/"), rule(TURNS[0])]
        ends = [served(TURNS[0]), served(TURNS[1])] if number % 2 == 0 else [served(TURNS[1]), served(TURNS[0])]
        self.routes["shop"] = route("shop.example.com", *(both if number % 2 == 0 else both[1:]))
        self.round("reordered", [("shop.example.com", "/api/", ends[:1], ends[1]), ("shop.example.com", "/", [], served(TURNS[0]))])

    def deleted(self, number):
        """In turn: the route is deleted and added again, its backend is deleted and added again."""
        if number == 0:
            self.routes["gone"] = route("gone.example.com", rule(MORE))
            self.round("begin", [("gone.example.com", "/", [404], served(MORE))])
        deletion, missing = number % 2 == 0, 404 if number % 4 < 2 else self.plane.missing
        if missing != 404:
            self.backends[MORE] = deletion
        elif deletion:
            del self.routes["gone"]
        else:
            self.routes["gone"] = route("gone.example.com", rule(MORE))
        ends = [served(MORE), missing] if deletion else [missing, served(MORE)]
        kept = [("gone.example.com", "/", [], served(MORE))] if missing != 404 and self.plane.kept else None
        self.round("deleted", [("gone.example.com", "/", ends[:1], ends[1])], relayed=kept)

    def restarted(self, number):
        self.routes[f"more-{number}"] = route(f"more-{number}.example.com", rule(TURNS[3]))
        self.round("restarted", [(f"more-{number}.example.com", "/", [404], served(TURNS[3]))], self.restart)

    def restart(self):
        """Stops the control plane and starts it with news; returns when it was started."""
        self.plane.stop()
        self.plane.publish(self.parts())
        began = time.monotonic()
        self.plane = self.make()
        return began

    def rows(self):
        """A line for each step: what both sides did."""
        for step, title in TITLES.items():
            if (step, "direct") in self.tallies:
                yield f"{title}, {ROUNDS[step]} times"
                for name in NAMES:
                    yield f"    {name}: {self.tallies[step, name]}"
                pairs = zip(*(self.tallies[step, name].times for name in NAMES))
                yield f"    relayed after direct: {spread(late - early for early, late in pairs if None not in (early, late))}"

    def verdict(self):
        """What is wrong, or None: a request that failed through the relay, or none without it, which shows nothing."""
        failed = {name: sum(tally.failed for (_, side), tally in self.tallies.items() if side == name) for name in NAMES}
        if not failed["direct"]:
            return "no request failed without the relay: the run is void"
        return f"{failed['relayed']} requests failed through the relay" if failed["relayed"] else None


def spread(seconds):
    """The median and the 99th percentile."""
    ordered = sorted(seconds)
    p50, p99 = (1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.5, 0.99)) if ordered else (0, 0)
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms"


def served(port, version=0):
    return f"{port}/{version}"


def rule(port, prefix="/", version=None):
    """A rule of an HTTPRoute: where it leads, and the version that its filter writes into the request."""
    return {"port": port, "prefix": prefix, "version": version}


def route(host, *rules):
    return {"host": host, "rules": rules}
