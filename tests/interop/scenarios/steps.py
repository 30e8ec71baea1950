# SPDX-License-Identifier: Apache-2.0
"""Random steps, decided by a seed: what is served changes, moves, goes and is bad, and everything restarts and is paused, under three Envoys and
two gRPC clients behind the relay, with the same clients direct beside it."""

import json
import os
import random
import signal
import time

from peers import envoy, grpc_clients, resources as make, traffic
from peers.control_plane import ControlPlane
from peers.envoy import ADS_DELTA, ADS_SOTW, STREAMS_SOTW
from peers.process import BEGAN, Failed, eventually, free_port
from scenario import scenario

SEED = int(os.environ.get("DISTRIBUTARY_SEED", "1"))
# For how long there are steps. `tests/interop/steady` plays longer.
SECONDS = 60 * float(os.environ.get("DISTRIBUTARY_MINUTES", "0.4"))
# How long clients may take until they have what is served at last. An Envoy that was refused connects again after up to 30 s.
SETTLED = 60.0
CALM = 2.0
# The node ids of Envoys with one stream for each type.
APART = "apart"
PACE = 0.02


class Service:
    """What one control plane serves: one HTTP path, one gRPC target, and what comes and goes beside them."""

    def __init__(self, world, name, source, first=None):
        self.world, self.name, self.source = world, name, source
        self.control_plane = first or ControlPlane(world.programs.go, world.logs, world.cache, name=name)
        self.web, self.side = free_port(), free_port()
        self.content = {}

    def apply(self, put=(), remove=()):
        self.content.update({key(one): one for one in put})
        for gone in remove:
            self.content.pop(gone, None)
        self.control_plane.apply(put=put, remove=list(remove))

    def restart(self):
        """The control plane ends, and another one with the same content listens at its address."""
        self.control_plane.stop()
        self.control_plane = ControlPlane(self.world.programs.go, self.world.logs, self.world.cache, self.control_plane.address, self.name)
        self.control_plane.apply(put=list(self.content.values()))

    def path(self, step, backend):
        """The path and the target with this number, at this backend."""
        http, grpc = self.world.backends.http[backend], self.world.backends.grpc[backend]
        return [make.cluster(f"x{step}", self.source), make.endpoints(f"x{step}", http), make.cluster(f"s{step}", self.source),
                make.endpoints(f"s{step}", grpc), make.routes("main", make.to(f"x{step}")), make.routes("shop-routes", make.to(f"s{step}", "")),
                make.listener("web", self.web, make.rds("main", self.source)), make.api_listener("shop", make.rds("shop-routes", self.source))]

    def beside(self):
        """A listener with a route and a cluster of its own."""
        port = self.world.backends.http["a"]
        return [make.cluster("side", self.source), make.endpoints("side", port), make.routes("side-routes", make.to("side")),
                make.listener("side", self.side, make.rds("side-routes", self.source))]


class Fleet:
    """Three Envoys, grpc-go and grpcio, and the two control planes that serve them: one with aggregated streams, one with a stream for
    each type."""

    def __init__(self, world, name, relayed):
        self.world, self.name, self.relay = world, name, None
        self.services = [Service(world, f"{name}-cp", ADS_DELTA.source(), world.control_plane if relayed else None),
                         Service(world, f"{name}-cp-{APART}", STREAMS_SOTW.source())]
        for service in self.services:
            service.apply(put=service.path(0, "a"))
        if relayed:
            self.start_relay()
        dialects = [(ADS_SOTW, "sotw", 0), (ADS_DELTA, "delta", 0), (STREAMS_SOTW, APART, 1)]
        self.envoys = [world.client(envoy.Envoy(world.programs.envoy, world.logs, dialect, self.server(at), f"{name}-{kind}"))
                       for dialect, kind, at in dialects]
        self.records = [traffic.Http(service.web, name=f"{name} {service.name}", pace=PACE) for service in self.services]
        for client in (grpc_clients.GrpcGo(world.programs.go, world.logs, self.server(0), ["xds:///shop"]),
                       grpc_clients.GrpcPython(world.logs, self.server(0), ["xds:///shop"])):
            self.records.append(world.client(client).records["xds:///shop"])
        for one in self.envoys:
            one.ready()
        self.reaches("a", 20.0)
        for record in self.records:
            record.failures.clear()  # Until a listener is there.
        self.in_restarts = 0

    def start_relay(self):
        server = "{{ server_uri: 'http://{}' }}".format
        one, apart = (server(service.control_plane.address) for service in self.services)
        text = f"upstream: {{ xds_servers: [{one}] }}\nclasses: [{{ match: {{ id: '*-{APART}' }}, xds_servers: [{apart}] }}]\n" \
               "timers: { drain_announce: 0s, drain: 1s }\n" \
               "guard: { within: never }\n"  # One of a handful of clusters is much (D-10), and no control plane forgets here.
        self.relay = self.world.start_relay(None, text=text, address=self.relay and self.relay.address)

    def server(self, at):
        return self.relay.address if self.relay else self.services[at].control_plane.address

    def reaches(self, backend, within):
        for record in self.records:
            record.reaches(backend, within=within)

    def judged(self):
        """Those whose types have an order: not those of the Envoy with a stream for each type."""
        return [record for record in self.records if APART not in record.name]

    def failed(self):
        return sum(len(record.failures) for record in self.judged())

    def apart(self):
        return sum(len(record.failures) for record in self.records) - self.failed()

    def total(self):
        return self.failed() + sum(len(record.answers) for record in self.judged())

    def restart_relay(self, kill):
        """Its restart is over when no request has failed for a while: an Envoy whose clusters warm meanwhile asks for no others for 15 s."""
        before = self.failed()
        self.relay.kill() if kill else self.relay.drain()
        self.start_relay()
        eventually("the restart is over", self.is_calm, SETTLED)
        self.in_restarts += self.failed() - before

    def is_calm(self):
        before = self.failed()
        time.sleep(CALM)
        return self.failed() == before

    def dumps(self):
        return {one.name.removeprefix(f"{self.name}-"): self.dump(one) for one in self.envoys}

    def dump(self, one):
        """What the Envoy has, without what differs from fleet to fleet: ports, and when it came."""
        found = {}
        for entry in entries(json.loads(one.get("/config_dump?include_eds"))):
            text = json.dumps(entry, sort_keys=True)
            for at, service in enumerate(self.services):
                text = text.replace(f'"port_value": {service.web}', f'"web {at}"').replace(f'"port_value": {service.side}', f'"side {at}"')
            name = entry.get("name") or entry.get("cluster_name")
            if name != "xds":
                found[entry["@type"].rpartition(".")[2], name] = text
        return found

    def stop(self):
        for record in self.records:
            record.stop()


def key(resource):
    short = next(short for short, url in make.TYPES.items() if url == resource["@type"])
    return short, resource.get("name") or resource.get("cluster_name")


def entries(dump):
    """The resources in a dump that came over xDS and are in use, and `warming` in the place of one that is not."""
    for config in dump["configs"]:
        for of, inner in (("dynamic_active_clusters", "cluster"), ("dynamic_route_configs", "route_config"),
                          ("dynamic_endpoint_configs", "endpoint_config")):
            yield from (one[inner] for one in config.get(of, ()))
        for one in config.get("dynamic_listeners", ()):
            yield one["active_state"]["listener"] if "active_state" in one else {"@type": "warming", "name": one["name"]}
        yield from ({"@type": "warming", "name": one["cluster"]["name"]} for one in config.get("dynamic_warming_clusters", ()))


class Steps:
    """The same steps for both fleets."""

    def __init__(self, fleets, dice):
        self.fleets, self.dice = fleets, dice
        self.step, self.backend, self.beside, self.bad = 0, "a", False, False
        self.taken, self.story = {}, []

    def each(self, do):
        for fleet in self.fleets:
            for service in fleet.services:
                do(service)

    def pause(self, low=0.3, high=1.5):
        time.sleep(self.dice.uniform(low, high))

    def take(self):
        steps = {self.moves: 25, self.is_renamed: 20, self.goes_too_early: 10, self.comes_or_goes: 12, self.is_bad: 8,
                 self.control_planes_restart: 3, self.relay_restarts: 3, self.relay_is_paused: 12, self.control_planes_are_paused: 5}
        self.play(self.dice.choices(list(steps), list(steps.values()))[0])
        self.pause()

    def play(self, step):
        self.taken[step.__name__] = self.taken.get(step.__name__, 0) + 1
        step()
        failed = ", ".join(f"{fleet.name} {[len(record.failures) for record in fleet.records]}" for fleet in self.fleets)
        self.story.append(f"{time.monotonic() - BEGAN:8.2f} {step.__name__} {self.step} {self.backend}: failed {failed}")

    def change(self):
        self.play(self.dice.choice([self.moves, self.is_renamed, self.comes_or_goes]))

    def moves(self):
        self.backend = self.dice.choice("abc".replace(self.backend, ""))
        self.each(lambda one: one.apply(put=one.path(self.step, self.backend)[:4]))

    def is_renamed(self):
        old, self.step = self.step, self.step + 1
        self.each(lambda one: one.apply(put=one.path(self.step, self.backend), remove=self.gone(old)))

    def goes_too_early(self):
        """Clusters go, and their routes a moment later."""
        old, self.step = self.step, self.step + 1
        self.each(lambda one: one.apply(remove=self.gone(old)))
        self.pause(0.05, 0.3)
        self.each(lambda one: one.apply(put=one.path(self.step, self.backend)))

    def gone(self, step):
        return [(kind, f"{name}{step}") for kind in ("cds", "eds") for name in "xs"]

    def comes_or_goes(self):
        self.beside = not self.beside
        keys = [("lds", "side"), ("rds", "side-routes"), ("cds", "side"), ("eds", "side")]
        self.each(lambda one: one.apply(put=one.beside()) if self.beside else one.apply(remove=keys))

    def is_bad(self):
        """A cluster that no Envoy takes; endpoints change, and it goes."""
        self.each(lambda one: one.apply(put=[make.cluster("bad", one.source, timeout="-1s")]))
        for _ in range(2):
            self.pause()
            self.play(self.moves)
        self.each(lambda one: one.apply(remove=[("cds", "bad")]))

    def control_planes_restart(self):
        self.each(Service.restart)

    def relay_restarts(self):
        kill = self.dice.random() < 0.5
        for fleet in self.fleets:
            if fleet.relay:
                fleet.restart_relay(kill)

    def relay_is_paused(self):
        """It does not run for a while in which other things change."""
        paused = [fleet.relay.child for fleet in self.fleets if fleet.relay]
        end = time.monotonic() + self.dice.uniform(0.5, 3)
        for child in paused:
            child.send_signal(signal.SIGSTOP)
        while time.monotonic() < end:
            self.change()
            time.sleep(min(self.dice.uniform(0.5, 1.5), max(0.0, end - time.monotonic())))
        for child in paused:
            child.send_signal(signal.SIGCONT)

    def control_planes_are_paused(self):
        self.each(lambda one: one.control_plane.child.send_signal(signal.SIGSTOP))
        self.pause(0.5, 3)
        self.each(lambda one: one.control_plane.child.send_signal(signal.SIGCONT))

    def settle(self):
        """All of it is said once more, with other contents, and everybody has it."""
        self.backend = self.dice.choice("abc".replace(self.backend, ""))
        self.is_renamed()
        for fleet in self.fleets:
            fleet.reaches(self.backend, SETTLED)


@scenario("K-27, D-01, D-03, D-09, B-22, E-04", caches=("linear",), relay_only="it has the same clients direct")
def random_steps(world):
    """Outside the relay's own restarts at most a tenth of the requests fail that fail direct, and at last all Envoys have the same."""
    world.expect_rejections()
    dice = random.Random(SEED)
    direct, relayed = fleets = [Fleet(world, "direct", False), Fleet(world, "relayed", True)]
    try:
        steps = Steps(fleets, dice)
        for step in (steps.is_renamed, steps.relay_is_paused, steps.goes_too_early, steps.is_bad):
            steps.play(step)  # Also in a short run.
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            steps.take()
        steps.settle()
        told = judge(world, steps, direct, relayed)
        same(world, direct, relayed)
    finally:
        direct.stop(), relayed.stop()
    if told:
        raise Failed(told)


def judge(world, steps, direct, relayed):
    """Tells how many requests failed, and returns what is wrong with that."""
    failed, alone, restarts = relayed.failed() - relayed.in_restarts, direct.failed(), steps.taken.get("relay_restarts", 0)
    versions = json.loads(relayed.envoys[0].get("/server_info"))["version"].split("/")[1]
    told = f"seed {SEED}, {sum(steps.taken.values())} steps: {alone} of {direct.total()} requests failed direct, {failed} of {relayed.total()} relayed, " \
           f"and {relayed.in_restarts} in {restarts} restarts of the relay; of the Envoy with a stream for each type, whose types have no order, " \
           f"{direct.apart()} direct and {relayed.apart()} relayed; Envoy {versions}"
    print(f"         {told}", flush=True)
    failures = [failure for record in relayed.judged() for failure in record.failures]
    (world.logs / "story.txt").write_text("\n".join([told, *steps.story, *failures]))
    if not alone:
        return "no request failed direct: the story is void"
    return f"{failed} requests failed, and {alone} direct: {failures[:3]}" if failed * 10 > alone else None


def same(world, direct, relayed):
    """Each Envoy behind the relay has what the one beside it has."""
    seen = {}

    def equal():
        seen.update(direct=direct.dumps(), relayed=relayed.dumps())
        return seen["direct"] == seen["relayed"]

    try:
        eventually("all Envoys have the same", equal, SETTLED)
    except Failed:
        apart = [f"{kind}: {which}" for kind, have in seen["relayed"].items()
                 for which in sorted({key for key, _ in have.items() ^ seen["direct"][kind].items()})]
        (world.logs / "dumps.json").write_text(json.dumps({who: {kind: list(have.values()) for kind, have in all.items()}
                                                           for who, all in seen.items()}))
        raise Failed(f"the Envoys differ in {apart}") from None
