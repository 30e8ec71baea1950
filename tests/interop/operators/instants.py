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


@dataclass(frozen=True)
class Trouble:
    """What goes wrong and ends, what each place says meanwhile as a regular expression, and what the clients say."""

    name: str
    begin: Callable
    end: Callable
    told: dict
    clients: Callable = lambda shop: shop.served("edge-1", "edge-2")
    # What no place may say.
    never: dict = field(default_factory=dict)
    # What is still told a while after its end.
    stays: tuple = ()


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
    Trouble("a bad push", lambda shop: shop.world.control_plane.apply(put=[bad()]),
            lambda shop: shop.world.control_plane.apply(put=[make.cluster("many-0", SOURCED)]),
            {"page": r"2 clients reject cds many-0", "metrics": r'rejecting_clients\{type="cds"\} 2\n',
             "clients": r'"state": ?"rejecting"', "changes": r'"rejected": ?2', "holds": "cds many-0 of .*: older content used by 2 clients",
             "status": r"reject", "log": "a client rejected a response"},
            lambda shop: all(envoy.stat("cluster_manager.cds.update_rejected") for envoy in shop.envoys.values())),
    Trouble("half a state", lambda shop: shop.restart(["x"]), lambda shop: shop.fill(shop.world.control_plane),
            {"page": r"Removed cds many-0, many-1, many-2 and 1 more still served: much was lost at once", "clients": r'"state": ?"current"',
             "metrics": r'holds_in_trouble\{reason="mass",type="cds"\} 1\n', "holds": r"4 cds of .*: much was lost at once",
             "status": "removed resources are still served", "log": "much was lost at once"},
            never={"page": r"is away"}),
    Trouble("an expired certificate", lambda shop: shop.certify("ended"), lambda shop: shop.certify(),
            {"page": r"relay\.pem.*ended", "metrics": r"bad_certificates [1-9]", "status": r"relay\.pem.*ended", "log": "a certificate has ended",
             "holds": "nothing is held"}),
    Trouble("a full disk", Shop.fill_disk, lambda shop: (shop.disk / "filler").unlink(),
            {"page": r"snapshot", "metrics": r'snapshots_total\{result="not_written"\} [1-9]', "status": r"snapshot", "log": "cannot write a snapshot",
             "holds": "nothing is held"}),
    Trouble("a bad reload", lambda shop: shop.reload(shop.text + "nonsense: 1\n"), lambda shop: shop.reload(shop.text),
            {"page": r"configuration", "metrics": r"configuration_current 0\n", "status": r"configuration", "log": r"nonsense", "holds": "nothing is held"}),
    Trouble("a dead source", lambda shop: shop.registry.stop(), Shop.source_back,
            {"page": r"is away[\s\S]*unreachable since", "metrics": r'upstream_connected\{server="http://REGISTRY"\} 0\n', "status": r"REGISTRY.*unreachable",
             "log": r"REGISTRY", "holds": "nothing is held"}),
    Trouble("a take-over", Shop.take_over, lambda shop: (shop.newcomer.stop(), shop.restart()),
            {"page": r"PRIMARY is away[\s\S]*answering\s+http://SECOND", "metrics": r'upstream_connected\{server="http://SECOND"\} 1\n',
             "clients": "a-newcomer", "changes": "only-there", "status": r"PRIMARY.*unreachable", "log": r"control plane answers.*SECOND",
             "holds": "nothing is held"},
            lambda shop: shop.served("edge-1", "edge-2") and any("only-there" in line for line in shop.newcomer.lines)),
    Trouble("a stop of 1.5 s", lambda shop: shop.stop_for(1.5), lambda shop: None,
            {"page": r"did not run for 1\.[3-7] s in 1 pause", "metrics": r"process_stalled_seconds_total [1-9]", "log": r"stood|did not run",
             "holds": "nothing is held"}, stays=("page", "metrics")),
    Trouble("a hang", lambda shop: shop.pause("edge-2", signal.SIGSTOP), lambda shop: shop.pause("edge-2", signal.SIGCONT),
            {"page": r"edge-2 hung, and was cut off \d+ s ago: it answered no ping", "metrics": r"hanging_clients [1-9]",
             "status": r"1 hung and was cut off in the last 10 min: edge-2", "holds": "nothing is held",
             "log": r"does not answer pings"},
            lambda shop: shop.served("edge-1"), never={"clients": "edge-2"}, stays=("page", "metrics", "status")),
    # The relay stays, without clients: nothing follows.
    Trouble("a drain", lambda shop: shop.post("/drain_listeners?graceful"), None,
            {"page": r"(?i)draining", "status": r"(?i)draining", "clients": r'"clients":\[\s*\]', "metrics": r'streams\{dialect="delta"\} 0\n',
             "log": r"not ready any more", "holds": "nothing is held"},
            lambda shop: not any(envoy.stat("control_plane.connected_state") for envoy in shop.envoys.values())),
]


class Reader:
    """Reads all places at one instant."""

    def __init__(self, shop, page):
        self.shop, self.page = shop, page
        self.threads = concurrent.futures.ThreadPoolExecutor(len(PLACES))
        self.from_line = 0

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

    def faults(self, told, never, clients):
        """What is not said at this instant, or is false."""
        words = {"PRIMARY": self.shop.world.control_plane.address, "SECOND": self.shop.second.address, "REGISTRY": self.shop.registry.address}
        seen = self.read()
        found = []
        for place, pattern in told.items():
            for word, address in words.items():
                pattern = pattern.replace(word, re.escape(address))
            if not re.search(pattern, seen[place]):
                found.append(f"{place} does not say {pattern!r}: {seen[place][:1500] if place not in ('metrics', 'log') else seen[place][-600:]!r}")
        found += [f"{place} says {pattern!r}" for place, pattern in never.items() if re.search(pattern, seen[place])]
        if not found and not clients(self.shop):
            found.append("the clients say something else")
        return found

    def until(self, what, told, never, clients):
        began, faults = time.monotonic(), None
        while time.monotonic() - began < TOLD:
            if not (faults := self.faults(told, never, clients)):
                return time.monotonic() - began
            time.sleep(0.3)
        raise Failed(f"{what}: " + "\n    ".join(faults))


CALM = {"page": "Nothing is wrong", "status": "exit 0", "holds": "nothing is held", "clients": "edge-1"}


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
        print(f"ok: nothing is wrong ({reader.until('calm', CALM, {}, Trouble.clients):.1f} s)", flush=True)
        for trouble in TROUBLES:
            if options.only and not any(part in trouble.name for part in options.only):
                continue
            calm = {place: pattern for place, pattern in CALM.items() if place not in trouble.stays}
            reader.begin()
            trouble.begin(shop)
            try:
                told = reader.until(trouble.name, trouble.told, trouble.never, trouble.clients)
                print(f"ok: {trouble.name} is told within {told:.1f} s", flush=True)
            except Failed as problem:
                failed += 1
                print(f"FAILED: {problem}", flush=True)
            if not trouble.end:
                continue
            trouble.end(shop)
            try:
                ended = reader.until(f"after {trouble.name}", calm, {}, Trouble.clients)
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
