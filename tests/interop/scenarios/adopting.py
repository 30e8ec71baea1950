# SPDX-License-Identifier: Apache-2.0
"""The page of the manual about adopting the relay: its commands, with a fleet that is restarted on the way in and out."""

import json
import shlex
import subprocess
import threading

from peers import resources as make
from peers.envoy import ADS_DELTA, ADS_SOTW, AGGREGATED, BACK_OFF, bootstrap
from peers.link import Link
from peers.manual import FOLDER
from peers.process import DEADLINE, Failed, eventually, free_port
from peers.traffic import PACE, Record, ask
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service

RELAY = "it is about the way to the relay"
NODES = ("nodes",)
TENANTS = ("one", "two")
SENT = {"lds": "listener_manager.lds", "cds": "cluster_manager.cds", "rds": "http.interop.rds.main", "eds": "cluster.x"}


class Balanced(Record):
    """HTTP requests, each to one of the ports that are in service."""

    def __init__(self, ports):
        super().__init__("behind the balancer")
        self.ports, self.lock, self.stopped = list(ports), threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(PACE):
            with self.lock:
                self.ports.append(self.ports.pop(0))
                self.note(*ask(self.ports[0])[:2])

    def drain(self, port):
        """No request is under way at this port any more."""
        with self.lock:
            self.ports.remove(port)

    def admit(self, port):
        with self.lock:
            self.ports.append(port)

    def stop(self):
        self.stopped.set()
        self.thread.join(20)


def commands(changes):
    """The commands of the page, each with these texts replaced, and where its output goes."""
    for line in (FOLDER / "adopt.md").read_text().splitlines():
        if line.startswith("$ "):
            for found, here in changes.items():
                line = line.replace(found, str(here))
            words = shlex.split(line.removeprefix("$ "))
            into = words.index(">") if ">" in words else len(words)
            yield words[1:into], words[into + 1:]


class Fleet:
    """Two Envoys, which have a port each, and two programs of grpc-go; the control plane answers by the cluster of a node."""

    def __init__(self, world):
        self.world, self.clients, self.traffic = world, {}, None
        self.ports = {tenant: free_port() for tenant in TENANTS}
        self.publish("a")
        self.files = {}
        for tenant, dialect in zip(TENANTS, AGGREGATED):
            about = {"id": f"edge-{tenant}", "cluster": tenant}
            self.put(f"envoy-{tenant}", json.dumps(bootstrap(dialect, world.control_plane.address, about, ())))
            self.put(f"grpc-{tenant}", json.dumps({
                "xds_servers": [{"server_uri": world.control_plane.address, "channel_creds": [{"type": "insecure"}]}],
                "node": {"id": f"shop-{tenant}", "cluster": "shop"}}))

    def put(self, name, text):
        self.files[name] = self.world.logs / f"had-{name}.json"
        self.files[name].write_text(text)

    def publish(self, backend):
        """Publishes what each tenant has, all of it at one backend."""
        backends, apply = self.world.backends, self.world.control_plane.apply
        for tenant, port in self.ports.items():
            apply(tenant=tenant, put=[make.cluster("x"), make.endpoints("x", backends.http[backend]), make.routes("main", make.to("x")),
                                      make.listener("web", port, make.rds("main"))])
        apply(tenant="shop", put=service("shop", backends.grpc[backend]))
        self.backend = backend

    def point(self, backend):
        """All requests reach another backend."""
        self.publish(backend)
        self.traffic.reaches(backend)
        for record in self.calls():
            record.reaches(backend)

    def calls(self):
        """The records of the programs that run now."""
        return [client.records["xds:///shop"] for name, client in self.clients.items() if name.startswith("grpc")]

    def start(self, name, text):
        kind, _, tenant = name.partition("-")
        if kind == "envoy":
            dialect = AGGREGATED[TENANTS.index(tenant)]
            self.clients[name] = self.world.envoy(dialect, node=f"edge-{tenant}", text=text).ready()
        else:
            self.clients[name] = self.world.grpc_go("xds:///shop", text=text)
            self.world.watch(self.clients[name].records["xds:///shop"]).reaches(self.backend)

    def restart(self, name, text):
        """Drained first, and let in again when it is ready."""
        port = self.ports[name.partition("-")[2]] if name.startswith("envoy") else None
        if port:
            self.traffic.drain(port)
        self.clients[name].stop()
        self.start(name, text)
        if port:
            eventually("it answers", lambda: ask(port)[0])
            self.traffic.admit(port)


def run(world, fleet, words, into, address, admin):
    """Runs one command of the page, and does what the page says of it."""
    if words[0] == "serve":
        text = (world.logs / "relay.yaml").read_text().replace("0.0.0.0", "127.0.0.1") + "classes:\n  - key: [cluster]\n"
        world.start_relay(None, address=address, text=text, listens=True, admin=admin)
        return
    more = ["-a", admin] if words[0] in ("health", "status") else []
    done = subprocess.run([world.programs.relay, *words, *more], capture_output=True, text=True, timeout=60, cwd=world.logs)
    if done.returncode:
        raise Failed(f"{shlex.join(map(str, words))}: {done.returncode}: {done.stdout}{done.stderr}")
    if words[0] == "survey" and "key: [cluster]" not in done.stdout:
        raise Failed(f"survey does not find that the cluster decides: {done.stdout}")
    if into:
        into.write_text(done.stdout)
    if into and into.name == "relayed.json":
        for name, file in fleet.files.items():
            kind = name.partition("-")[0]
            fleet.restart(name, world.printed("bootstrap", kind, "--from", file, "--relay", address))


@scenario("F-11, K-25, K-28", caches=NODES, relay_only=RELAY)
def the_relay_is_adopted_and_taken_out(world):
    """All clients go to the relay and back, one after the other, by the commands of the page: no request fails."""
    world.expect_strangers()
    fleet = Fleet(world)
    for name, file in fleet.files.items():
        fleet.start(name, file.read_text())
    fleet.traffic = world.watch(Balanced(fleet.ports.values()))
    fleet.traffic.reaches("a")
    address, admin = (f"127.0.0.1:{free_port()}" for _ in range(2))
    changes = {"cp.example.com:18000": world.control_plane.address, "relay.example.com:15010": address, "--for 10m": "--for 3s",
               "envoy.yaml": fleet.files["envoy-one"], "xds.json": fleet.files["grpc-two"]}
    for words, into in commands(changes):
        run(world, fleet, words, into and world.logs / into[0], address, admin)
    views = {request["node"] for request in world.control_plane.requests() if "/cluster=" in request.get("node", "")}
    if len(views) != len(TENANTS) + 1:
        raise Failed(f"the relay asks as {views}")
    fleet.point("b")
    for name, file in fleet.files.items():
        fleet.restart(name, file.read_text())
    world.relay.stop()
    world.relay = None
    fleet.point("c")


@scenario("F-11, K-25", caches=("linear", "snapshot"), relay_only=RELAY)
def a_relay_is_compared(world):
    """A relay in front of another control plane, which says the same, and then something else, and then the same again."""
    world.expect_strangers()
    other = world.another_control_plane("other")
    for plane in (world.control_plane, other):
        plane.apply(put=single_cluster(world, ADS_DELTA, "a"))
    relay = world.start_relay(other.address)
    compare = [world.programs.relay, "compare", world.control_plane.address, relay.address, "--settle", "1s"]
    for backend, code in (("a", 0), ("b", 1), ("a", 0)):
        other.apply(put=[make.endpoints("x", world.backends.http[backend])])
        eventually("the relay has it", lambda backend=backend: str(world.backends.http[backend]) in relay.get("eds", "x"))
        done = subprocess.run(compare, capture_output=True, text=True, timeout=60)
        if done.returncode != code or code != done.stdout.startswith("eds x differs: "):
            raise Failed(f"with {backend}: {done.returncode}: {done.stdout}{done.stderr}")


@scenario("F-11, B-03", (ADS_SOTW, ADS_DELTA), caches=("linear", "snapshot"), relay_only=RELAY)
def clients_move_without_a_restart(world, dialect):
    """An Envoy that runs is moved to a relay, to another one, and back: it changes nothing, and no request fails."""
    world.expect_strangers()
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    relays = [world.start_relay(world.control_plane.address) for _ in range(2)]
    way = Link(world.control_plane.address)
    world.xds = way.address
    envoy = world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    sent = {}
    for where in (relays[0], relays[1], world.control_plane):
        before = updates(envoy)
        host, _, port = where.address.rpartition(":")
        way.target = (host, int(port))
        way.cut()
        eventually("Envoy is connected", lambda before=before: envoy.stat("cluster.xds.upstream_cx_total") > before["connections"])
        for backend in "ba":
            world.control_plane.apply(put=[make.endpoints("x", world.backends.http[backend])])
            traffic.reaches(backend, within=BACK_OFF + DEADLINE)
        after = updates(envoy)
        sent[where.name] = {what: after[what] - before[what] for what in after}
        if after["changed"] != before["changed"]:
            raise Failed(f"Envoy has made something anew at {where.name}: {sent}")
    # Of routes, because nothing else is sent of them here: endpoints change, and a wildcard is answered in any case.
    expected = [1, 0 if dialect is ADS_DELTA else 1, 1]
    if [each["rds"] for each in sent.values()] != expected:
        raise Failed(f"Envoy was sent {sent}")


def updates(envoy):
    """How often Envoy was sent something of each type, and how often that changed anything."""
    sent = {short: envoy.stat(f"{stat}.update_success") for short, stat in SENT.items()}
    changed = sum(envoy.stat(stat) for stat in ("listener_manager.listener_modified", "cluster_manager.cluster_modified",
                                                "listener_manager.listener_removed", "cluster_manager.cluster_removed"))
    return {**sent, "changed": changed, "connections": envoy.stat("cluster.xds.upstream_cx_total")}
