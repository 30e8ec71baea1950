# SPDX-License-Identifier: Apache-2.0
"""What operators are told through one trouble after the other, at one instant each: the page in a browser, `/metrics`, `/clients`, `/changes`,
`/holds`, `distributary status` and the log. All of them must be true at the same time, and agree with what the clients themselves say.
`run` prepares what this needs."""

import argparse
import concurrent.futures
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# ruff: noqa: E402
from peers import resources as make
from peers.browser import Browser
from peers.control_plane import certificate
from peers.envoy import AGGREGATED
from peers.prepared import paths, unwind_at_the_end
from peers.process import Failed, Process, eventually, free_port
from suite import Programs
from world import World

# By when all places say it, in seconds.
TOLD = 40.0
PLACES = ("page", "metrics", "clients", "changes", "holds", "status", "log")
SOURCED = AGGREGATED[0].source()
NAMES = ["x", "many-0", "many-1", "many-2", "many-3"]


# What each place says of each thing that can be wrong, as a regular expression. A place that is not here does not speak of it.
WRONG = {
    "rejections": {"page": r"clients? rejects? \w+ many-0", "metrics": r'rejecting_clients\{type="cds"\} [1-9]',
                   "clients": r'"state": ?"rejecting"', "changes": r'"rejected": ?[1-9]', "holds": r"older content used by \d+ clients",
                   "status": r"clients reject \d+ content", "log": r"a client rejected a response"},
    "a loss": {"page": r"still served: much was lost at once", "metrics": r'holds_in_trouble\{reason="mass",type="cds"\} [1-9]',
               "holds": r"\d cds of .*: much was lost at once", "status": r"removed resources are still served",
               "log": r"much was lost at once"},
    "a certificate": {"page": r"relay\.pem.*ended", "metrics": r"bad_certificates [1-9]", "status": r"relay\.pem.*ended",
                      "log": r"a certificate has ended"},
    "a snapshot": {"page": r"a snapshot of .* cannot be written", "status": r"a snapshot of .* cannot be written",
                   "log": r"cannot write a snapshot"},
    "the configuration": {"page": r"the configuration is bad", "metrics": r"configuration_current 0\n",
                          "status": r"the configuration is bad", "log": r"nonsense"},
    "the source": {"page": r"REGISTRY is away|REGISTRY unreachable since", "metrics": r'upstream_connected\{server="http://REGISTRY"\} 0\n',
                   "status": r"REGISTRY unreachable", "log": r"upstream::(leg|contact)\S* .*REGISTRY"},
    "the control plane": {"page": r"PRIMARY is away|PRIMARY unreachable since",
                          "metrics": r'upstream_connected\{server="http://PRIMARY"\} 0\n', "status": r"PRIMARY unreachable",
                          "log": r"upstream::(leg|contact)\S* .*PRIMARY"},
    "a pause": {"page": r"did not run for 1\.[3-9] s in 1 pause", "metrics": r"process_stalled_seconds_total [1-9]",
                "log": r"stood|did not run"},
    "a hang": {"page": r"edge-2 hung, and was cut off \d+ s ago: it answered no ping", "metrics": r"hanging_clients [1-9]",
               "status": r"1 hung and was cut off in the last 10 min: edge-2", "log": r"does not answer pings"},
    "a drain": {"page": r"(?i)draining", "status": r"(?i)draining", "log": r"not ready any more"},
}
# What is told for a while after it is over: a pause for as long as the process runs, a hang for ten minutes.
STAYS = {"a pause": ("page", "metrics"), "a hang": ("page", "metrics", "status")}


@dataclass(frozen=True)
class Trouble:
    """What goes wrong and ends. Meanwhile each place says what `wrong` has for it, and nothing of all else that can be wrong."""

    name: str
    wrong: tuple
    begin: Callable
    end: Callable
    # What some places say besides.
    told: dict = field(default_factory=dict)
    never: dict = field(default_factory=dict)
    # What the log may have besides, because it passes.
    passes: tuple = ()
    # What clients say themselves.
    clients: Callable = lambda shop: shop.served("edge-1", "edge-2")


class Shop:
    """Two control planes, a source, a relay with all that can fail, and two Envoys."""

    def __init__(self, world):
        self.world, self.logs = world, world.logs
        self.second, self.registry = world.another_control_plane("fallback"), world.another_control_plane("registry")
        self.fill(world.control_plane)
        self.fill(self.second)
        self.endpoints(self.registry)
        self.disk = self.logs / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", self.disk], check=True)
        self.tls = f"127.0.0.1:{free_port()}"
        self.certify()
        server = "{{ server_uri: 'http://{}' }}".format
        self.text = f"""
listeners:
  - {{ address: "{{address}}" }}
  - {{ address: "{self.tls}", tls: {{ certificate: {self.logs}/relay.pem, private_key: {self.logs}/relay.key }} }}
snapshot: {{ dir: {self.disk}, interval: 1s }}
timers: {{ keepalive: 2s }}
upstream: {{ xds_servers: [{server(world.control_plane.address)}, {server(self.second.address)}] }}
sources: [{{ name: registry, types: [eds], xds_servers: [{server(self.registry.address)}] }}]
"""
        address = f"127.0.0.1:{free_port()}"
        self.relay = world.start_relay(None, address=address, listens=True, text=self.text.replace("{address}", address))
        self.text = self.relay.config.read_text()
        self.envoys = {node: world.envoy(AGGREGATED[0], node=node).ready() for node in ("edge-1", "edge-2")}
        eventually("the Envoys have everything", lambda: self.served("edge-1", "edge-2"))

    def fill(self, plane, names=NAMES):
        plane.apply(put=[*(make.cluster(name, SOURCED) for name in names),
                         make.listener("web", self.world.port, make.rds("main", SOURCED)), make.routes("main", make.to("x"))])

    def endpoints(self, plane):
        plane.apply(put=[make.endpoints(name, 8080) for name in [*NAMES, "y"]])

    def certify(self, *ended):
        pair = certificate(self.world.programs.go, "localhost", *ended)
        (self.logs / "relay.key").write_text(pair["key"])
        (self.logs / "relay.pem").write_text(pair["certificate"])

    def served(self, *nodes):
        """Whether these Envoys have all clusters, as they say themselves."""
        return all(set(NAMES) <= set(self.envoys[node].clusters()) for node in nodes)

    def restart(self, names=NAMES):
        """The first control plane comes back, with these clusters."""
        address = self.world.control_plane.address
        self.world.control_plane.stop()
        self.fill(self.world.new_control_plane(address), names)

    def take_over(self):
        """Who comes while the first control plane is away, and asks for what nobody knows, is served by the second one."""
        self.second.apply(put=[make.routes("only-there", make.to("x"))])
        self.world.control_plane.stop()
        command = [self.world.programs.relay, "get", "rds", "only-there", "--watch", "--server", self.relay.address, "--node-id", "a-newcomer"]
        self.newcomer = Process("newcomer", command, self.logs)

    def source_back(self):
        self.registry = self.world.another_control_plane("registry", self.registry.address)
        self.endpoints(self.registry)

    def fill_disk(self):
        with (self.disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(4096)):
                pass
        # Something that is to be written.
        self.world.control_plane.apply(put=[make.routes("main", make.to("many-0"), make.to("x"))])

    def reload(self, text):
        self.relay.config.write_text(text)
        self.post("/reload")

    def post(self, path):
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://{self.relay.admin}{path}", method="POST"), timeout=5):
                pass
        except OSError:
            pass

    def pause(self, envoy, what):
        self.envoys[envoy].child.send_signal(what)

    def stop_for(self, seconds):
        self.relay.child.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.relay.child.send_signal(signal.SIGCONT)


def bad(cluster="many-0"):
    return make.cluster(cluster, SOURCED, timeout="0s")


TROUBLES = [
    Trouble("a bad push", ("rejections",), lambda shop: shop.world.control_plane.apply(put=[bad()]),
            lambda shop: shop.world.control_plane.apply(put=[make.cluster("many-0", SOURCED)]),
            {"page": r"2 clients reject cds many-0", "metrics": r'rejecting_clients\{type="cds"\} 2\n', "changes": r'"rejected": ?2',
             "holds": r"cds many-0 of .*: older content used by 2 clients", "status": r"clients reject 1 content;"},
            clients=lambda shop: all(envoy.stat("cluster_manager.cds.update_rejected") for envoy in shop.envoys.values())),
    Trouble("half a state", ("a loss",), lambda shop: shop.restart(["x"]), lambda shop: shop.fill(shop.world.control_plane),
            {"page": r"Removed cds many-0, many-1, many-2 and 1 more still served: much was lost at once",
             "metrics": r'hold_resources\{reason="mass"\} 4\n', "holds": r"4 cds of ", "status": r"4 removed resources are still served"},
            passes=("the control plane",)),
    Trouble("an expired certificate", ("a certificate",), lambda shop: shop.certify("ended"), lambda shop: shop.certify()),
    Trouble("a full disk", ("a snapshot",), Shop.fill_disk, lambda shop: (shop.disk / "filler").unlink(),
            {"page": r"the last one of it was written at \d", "metrics": r'snapshots_total\{result="not_written"\} [1-9]',
             "status": r"the last one of it was written at \d"}),
    Trouble("a bad reload", ("the configuration",), lambda shop: shop.reload(shop.text + "nonsense: 1\n"),
            lambda shop: shop.reload(shop.text), {"page": r"nonsense", "status": r"nonsense"}),
    Trouble("a dead source", ("the source",), lambda shop: shop.registry.stop(), Shop.source_back),
    Trouble("a take-over", ("the control plane",), Shop.take_over, lambda shop: (shop.newcomer.stop(), shop.restart()),
            {"page": r"answering\s+http://SECOND", "metrics": r'upstream_connected\{server="http://SECOND"\} 1\n', "clients": "a-newcomer",
             "changes": "only-there", "log": r"control plane answers.*SECOND"},
            clients=lambda shop: shop.served("edge-1", "edge-2") and any("only-there" in line for line in shop.newcomer.lines)),
    Trouble("a stop of 1.5 s", ("a pause",), lambda shop: shop.stop_for(1.5), lambda shop: None),
    Trouble("a hang", ("a hang",), lambda shop: shop.pause("edge-2", signal.SIGSTOP), lambda shop: shop.pause("edge-2", signal.SIGCONT),
            never={"clients": "edge-2"}, clients=lambda shop: shop.served("edge-1")),
    # The relay stays, without clients: nothing follows.
    Trouble("a drain", ("a drain",), lambda shop: shop.post("/drain_listeners?graceful"), None,
            {"metrics": r'streams\{dialect="delta"\} 0\n', "clients": r'"clients":\[\s*\]'},
            clients=lambda shop: not any(envoy.stat("control_plane.connected_state") for envoy in shop.envoys.values())),
]


def streams(seen):
    """How many client streams each place says that there are."""
    table = [line.split() for line in seen["status"].splitlines()[:2]]
    shown = re.search(r"^Clients\s+([\d,]+)$", seen["page"], re.M)
    return {"page": int(shown[1]) if shown else None, "clients": seen["clients"].count('"stream":'),
            "status": int(table[1][table[0].index("CLIENTS")]) if len(table) == 2 and "CLIENTS" in table[0] else None,
            "metrics": sum(int(number) for number in re.findall(r"_streams\{dialect=\S+ (\d+)$", seen["metrics"], re.M))}


class Reader:
    """Reads all places at one instant."""

    def __init__(self, shop, page):
        self.shop, self.page = shop, page
        self.threads = concurrent.futures.ThreadPoolExecutor(len(PLACES))
        self.from_line = 0
        self.past = []

    def begin(self):
        self.from_line = len(self.log())

    def log(self):
        return self.shop.relay.log.read_text().splitlines()

    def status(self):
        command = [self.shop.world.programs.relay, "status", "--admin", self.shop.relay.admin]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return f"{said.stdout}{said.stderr}exit {said.returncode}\n"

    def read(self):
        relay = self.shop.relay
        asked = {"page": lambda: self.page.text("body"), "metrics": lambda: relay.page("/metrics"), "status": self.status,
                 "clients": lambda: relay.page("/clients?format=json"), "changes": lambda: relay.page("/changes"),
                 "holds": lambda: relay.page("/holds"), "log": lambda: "\n".join(self.log()[self.from_line:])}
        return {place: future.result() for place, future in {place: self.threads.submit(ask) for place, ask in asked.items()}.items()}

    def faults(self, trouble):
        """What is not said at this instant, is false, or is said otherwise elsewhere."""
        seen, found = self.read(), []
        for thing, words in WRONG.items():
            for place, pattern in words.items():
                is_said = self.says(seen, place, pattern)
                if thing in trouble.wrong and not is_said:
                    found.append(self.lacks(seen, place, pattern))
                passes = thing in trouble.passes or thing in trouble.wrong if place == "log" else thing in self.past and place in STAYS[thing]
                if thing not in trouble.wrong and is_said and not passes:
                    found.append(f"{place} speaks of {thing}: {pattern!r}")
        found += [self.lacks(seen, place, pattern) for place, pattern in trouble.told.items() if not self.says(seen, place, pattern)]
        found += [f"{place} says {pattern!r}" for place, pattern in trouble.never.items() if self.says(seen, place, pattern)]
        if len(set((counts := streams(seen)).values())) > 1:
            found.append(f"not all say the same number of client streams: {counts}")
        if not found and not trouble.clients(self.shop):
            found.append("the clients say something else")
        return found

    def says(self, seen, place, pattern):
        for word, plane in {"PRIMARY": self.shop.world.control_plane, "SECOND": self.shop.second, "REGISTRY": self.shop.registry}.items():
            pattern = pattern.replace(word, re.escape(plane.address))
        return re.search(pattern, seen[place])

    @staticmethod
    def lacks(seen, place, pattern):
        text = seen[place]
        return f"{place} does not say {pattern!r}: {text[:1500] if place not in ('metrics', 'log') else text[-600:]!r}"

    def until(self, trouble):
        began, faults = time.monotonic(), None
        while time.monotonic() - began < TOLD:
            if not (faults := self.faults(trouble)):
                return time.monotonic() - began
            time.sleep(0.3)
        raise Failed(f"{trouble.name}: " + "\n    ".join(faults))


def calm(name, past):
    """When nothing is wrong, each place says so, but for what stays."""
    told = {"page": "Nothing is wrong", "status": "exit 0", "holds": "nothing is held", "clients": "edge-1"}
    stays = {place for thing in past if thing == "a hang" for place in STAYS[thing]}
    return Trouble(name, (), None, None, {place: words for place, words in told.items() if place not in stays}, passes=tuple(WRONG))


def main():
    parser = argparse.ArgumentParser()
    paths(parser, "go", "envoy", "relay", "chromium", "axe", "logs")
    parser.add_argument("only", nargs="*", help="parts of the names of troubles")
    options = parser.parse_args()
    unwind_at_the_end()
    shutil.rmtree(options.logs, ignore_errors=True)
    options.logs.mkdir(parents=True)
    programs = Programs(options.go, options.relay, options.envoy, options.chromium, options.axe)
    world, failed = World(programs, options.logs, "linear", False), 0
    try:
        world.begin()
        world.expect_rejections()
        shop = Shop(world)
        page = Browser(options.chromium, options.logs).page()
        page.go(f"http://{shop.relay.admin}/")
        reader = Reader(shop, page)
        print(f"ok: nothing is wrong ({reader.until(calm('calm', [])):.1f} s)", flush=True)
        for trouble in TROUBLES:
            if options.only and not any(part in trouble.name for part in options.only):
                continue
            reader.begin()
            trouble.begin(shop)
            try:
                told = reader.until(trouble)
                print(f"ok: {trouble.name} is told within {told:.1f} s", flush=True)
            except Failed as problem:
                failed += 1
                print(f"FAILED: {problem}", flush=True)
            if not trouble.end:
                continue
            trouble.end(shop)
            reader.past += [thing for thing in trouble.wrong if thing in STAYS]
            try:
                ended = reader.until(calm(f"after {trouble.name}", reader.past))
                print(f"ok: {ended:.1f} s after {trouble.name} nothing is wrong", flush=True)
            except Failed as problem:
                failed += 1
                print(f"FAILED: {problem}", flush=True)
    finally:
        world.close()
        subprocess.run(["umount", options.logs / "disk"], check=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
