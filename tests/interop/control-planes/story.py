# SPDX-License-Identifier: Apache-2.0
"""One story for every control plane: changes, removals, rejections and restarts, and always two Envoys must hold the same."""

import json
import subprocess
import time

from peers.process import Failed, eventually
from peers.relay import Relay
from proxies import Proxy, Twins
from raw import CLUSTERS, LISTENERS, Client

OCCUPIED = 7777
CROWD = 50


def has(text, but=None):
    """A condition: a proxy holds one text, and no longer holds another."""
    return lambda held: text in whole(held) and (but is None or but not in whole(held))


def lacks(*texts):
    return lambda held: held and not any(text in whole(held) for text in texts)


def whole(held):
    return json.dumps([[*key, value] for key, value in held.items()])


def port(number):
    return f'"port_value": {number}'


def series(metrics, name):
    """One series of a page of metrics."""
    return sum(float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line.startswith(f"{name} "))


class Story:
    """A control plane, a relay in front of it, and for each tenant two Envoys. `make` starts the control plane."""

    def __init__(self, make, programs, logs, doors, dialect):
        self.make, self.programs, self.logs, self.doors, self.dialect = make, programs, logs, doors, dialect
        self.socket = doors / "relay.xds"
        self.state = {"red": ({"shop": 8080}, {"shop": [9001]}), "blue": ({"shop": 8080}, {"shop": [9101]})}
        self.plane = make()
        self.plane.write(self.state)
        self.others = []
        self.relay = self.twins = self.rejections = self.told = None

    def play(self):
        self.begin()
        self.changes()
        self.rejected()
        self.control_plane_restarts()
        self.relay_restarts()
        self.crowd()
        self.agents()
        self.refused()
        self.renewed()
        for twins in [*self.twins.values(), *self.others]:
            for proxy in twins.pair:
                proxy.must_live()

    def begin(self):
        bootstraps = {tenant: self.plane.bootstrap(tenant) for tenant in self.state}
        self.start_relay()
        began = time.monotonic()
        self.twins = {tenant: Twins(tenant, self.start, bootstrap, self.plane.direct, self.to_relay)
                      for tenant, bootstrap in bootstraps.items()}
        self.others = [Twins(name, self.start, self.plane.bootstrap(name), self.plane.direct, self.to_relay) for name in self.plane.others]
        for tenant, twins in self.twins.items():
            twins.ready().see("start", has(port(self.state[tenant][1]["shop"][0])), began)
        self.apart()
        self.alike("start")

    def start(self, name, bootstrap):
        return Proxy(name, self.programs.envoy, self.logs, self.doors, bootstrap, [OCCUPIED])

    def to_relay(self, bootstrap):
        """The direct Envoy uses the dialect of the control plane's bootstrap, which is delta; this one uses the story's dialect."""
        bootstrap["dynamic_resources"]["ads_config"]["api_type"] = self.dialect
        return self.plane.relayed(bootstrap, self.socket)

    def start_relay(self):
        self.relay = Relay(self.programs.relay, self.logs, None, text=self.plane.relay(self.socket), listens=True)

    def change(self, what, tenant, wanted, listeners=None, backends=None):
        """Changes a tenant's resources at the control plane; only that tenant's Envoys see it."""
        for at, new in enumerate((listeners, backends)):
            if new is not None:
                self.state[tenant] = tuple(new if at == index else old for index, old in enumerate(self.state[tenant]))
        began = time.monotonic()
        self.plane.write(self.state)
        if wanted:
            self.twins[tenant].see(what, wanted, began)
            self.apart()
            self.alike(what)

    def alike(self, what):
        for twins in self.others:
            twins.alike(what)

    def apart(self):
        """Only a tenant's Envoys know that tenant's backends."""
        for tenant, twins in self.twins.items():
            backends = [backends for other, (_, backends) in self.state.items() if other != tenant]
            others = [number for named in backends for ports in named.values() for number in ports]
            for proxy in twins.pair:
                if not lacks(*map(port, others))(proxy.holds()):
                    raise Failed(f"{proxy.name} has an endpoint of another tenant, one of {others}")

    def changes(self):
        self.change("other endpoints", "red", has(port(9002), but=port(9001)), backends={"shop": [9002]})
        self.change("more endpoints", "blue", has(port(9103)), backends={"shop": [9101, 9102, 9103]})
        two = {"shop": 8080, "cart": 8081}
        self.change("a new listener", "red", has(port(8081)), two, {"shop": [9002], "cart": [9003]})
        self.change("the listener moves", "red", has(port(8082), but=port(8081)), {**two, "cart": 8082})
        self.change("it is removed", "red", lacks(port(8082), port(9003)), {"shop": 8080}, {"shop": [9002]})

    def rejected(self):
        """A listener on a port that is in use: both Envoys reject it, go on with the rest, and accept the repair."""
        bad = {"shop": 8080, "cart": OCCUPIED}
        self.change("a listener is rejected", "red", has('"error_state"'), bad, {"shop": [9002], "cart": [9003]})
        eventually("the control plane hears of it from the relay", lambda: self.heard()[1], 2)
        self.change("others go on", "red", has(port(9004), but=port(9002)), backends={"shop": [9004], "cart": [9003]})
        rejections = [proxy.stat("listener_manager.lds.update_rejected") for proxy in self.twins["red"].pair]
        # B-22: what was rejected together with others is tried once more, alone.
        if 0 in rejections or rejections[1] > 2 * rejections[0]:
            raise Failed(f"rejections without the relay and with it: {rejections}")
        counted = series(self.relay.page("/metrics"), 'distributary_nacks_total{type="lds"}')
        if counted != rejections[1]:
            raise Failed(f"the Envoy rejected {rejections[1]} listener updates, the relay counted {counted}")
        self.rejections = rejections
        self.told = self.heard()
        self.change("it is repaired", "red", has(port(8083), but='"error_state"'), {"shop": 8080, "cart": 8083})
        if self.heard() != self.told:
            raise Failed(f"rejections that the control plane counts, before the repair and after it: {self.told}, {self.heard()}")

    def heard(self):
        """How many rejections the control plane counts in all, and how many of them are the relay's."""
        total, clients = self.plane.rejections()
        direct = self.plane.short(self.plane.bootstrap("red"))
        return total, sum(many for client, many in clients.items() if client != direct)

    def control_plane_restarts(self):
        """Nothing is removed meanwhile, and later changes arrive; what is gone after the restart, when a person lets it go."""
        self.plane.stop()
        kept = {tenant: twins.relayed.holds() for tenant, twins in self.twins.items()}
        time.sleep(2)  # Long enough for a mistake to be seen; nothing is waited for.
        for tenant, twins in self.twins.items():
            if twins.relayed.holds() != kept[tenant]:
                raise Failed(f"{tenant}: resources changed while the control plane was away")
        self.change("", "red", None, {"shop": 8080}, {"shop": [9005]})
        began = time.monotonic()
        self.plane = self.make()
        self.let_go(self.twins["red"])
        self.twins["red"].see("the control plane restarts", has(port(9005), but=port(9004)), began, within=60)
        self.twins["blue"].alike("the control plane restarts", within=60)
        self.apart()
        self.alike("the control plane restarts")

    def let_go(self, twins):
        """A listener that is gone after a restart may be forgotten: the guard holds it, and a person who knows better releases it."""
        eventually("the news are there", lambda: has(port(9005), but=port(9003))(twins.direct.holds()), 60)
        judged = lambda: [one for one in json.loads(self.relay.page("/holds?format=json"))["holds"] if one["reason"] == "mass"]
        eventually("what is gone is held", lambda: judged() or not twins.differences(), 60)
        for one in judged():
            words = ["holds", "release", one["id"], "--reason", "it was removed on purpose", "--admin", self.relay.admin]
            subprocess.run([self.relay.program, *words], check=True, capture_output=True, timeout=20)

    def relay_restarts(self):
        """Changes from meanwhile arrive, and nothing else changes."""
        self.relay.drain()
        self.change("", "blue", None, backends={"shop": [9104]})
        began = time.monotonic()
        self.start_relay()
        relayed = [twins.relayed for twins in [*self.twins.values(), *self.others]]
        back = lambda: all(proxy.stat("control_plane.connected_state") for proxy in relayed)
        eventually("the Envoys are back", back, 60)
        self.twins["blue"].see("the relay restarts", has(port(9104), but=port(9101)), began, within=60)
        self.twins["red"].alike("the relay restarts", within=60)
        self.apart()
        self.alike("the relay restarts")

    def all_have(self, clients):
        """Every client has the names of the clusters and listeners that the Envoy of the first tenant has."""
        wanted = {CLUSTERS: set(), LISTENERS: set()}
        for kind, name in self.twins["red"].relayed.holds():
            for short, full in (("_clusters", CLUSTERS), ("listeners", LISTENERS)):
                if kind.endswith(short):
                    wanted[full].add(name)
        return all({kind: set(held) for kind, held in client.held.items()} == wanted for client in clients)

    def refused(self):
        """A client that the control plane refuses gets nothing and is told why; other clients are not affected."""
        for tenant, reason in self.plane.refused.items():
            client = Client(f"unix:{self.socket}", self.plane.node(tenant, 0))
            try:
                eventually(f"{tenant} is told why", lambda: any(reason in end for end in client.ends))
                if any(client.held.values()):
                    raise Failed(f"{tenant} is refused but holds {client.held}")
            finally:
                client.stop()
        self.change("while another is refused" if self.plane.refused else "in the end", "red", has(port(9008)), backends={"shop": [9008]})

    def renewed(self):
        """The certificates are replaced: new clients of the relay meet the new ones, and those that are connected lose nothing."""
        used = lambda: series(self.relay.page("/metrics"), 'distributary_certificate_reloads_total{result="used"}')
        before = used()
        if not self.plane.renew():
            return
        eventually("the relay uses the new certificates", lambda: used() > before, 30)
        client = Client(f"unix:{self.socket}", self.plane.node("red", 0), credentials=self.plane.credentials())
        try:
            eventually("a client that trusts only the new ones has everything", lambda: self.all_have([client]))
        finally:
            client.stop()
        self.change("with new certificates", "red", has(port(9009)), backends={"shop": [9009]})

    def agents(self):
        """Resources for programs beside Envoy are the same through the relay, also after a change."""
        for name, kind in self.plane.agents.items():
            node = self.plane.bootstrap(name)["node"]
            pair = [Client(f"unix:{address}", node, [kind]) for address in (self.plane.address, self.socket)]
            try:
                for what in ("at first", "after a change"):
                    eventually(f"{kind} is the same through the relay, {what}", lambda: pair[0].held == pair[1].held and pair[0].held[kind])
                    before = dict(pair[0].held[kind])
                    if what == "at first":
                        self.change("", "red", None, {"shop": 8080, "desk": 8085}, {"shop": [9005], "desk": [9007]})
                        eventually(f"{kind} changes", lambda: pair[0].held[kind] != before)
                self.change("", "red", None, {"shop": 8080}, {"shop": [9005]})
            finally:
                for client in pair:
                    client.stop()

    def crowd(self):
        """Many more clients of one class: no additional upstream stream, and all clients see the same as the Envoy."""
        before = self.plane.streams()
        credentials = self.plane.credentials()
        clients = [Client(f"unix:{self.socket}", self.plane.node("red", number), credentials=credentials) for number in range(CROWD)]
        try:
            eventually(f"{CROWD} more clients have everything", lambda: self.all_have(clients))
            two = {"shop": 8080, "cart": 8084}
            self.change(f"with {CROWD} clients more", "red", has(port(8084)), two, {"shop": [9005], "cart": [9006]})
            eventually("all of them follow", lambda: self.all_have(clients))
            if ends := [end for client in clients for end in client.ends]:
                raise Failed(f"{len(ends)} streams of these clients ended: {ends[0]}")
        finally:
            for client in clients:
                client.stop()
        if (after := self.plane.streams()) != before:
            raise Failed(f"{CROWD} more clients: {after - before} more streams at the control plane")
