# SPDX-License-Identifier: Apache-2.0
"""Routes of one control plane lead to clusters whose endpoints another one has, late or early, or not while it is away: no request fails."""

import json
import os
import time
import urllib.request

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually
from peers.subscribers import Subscribers
from scenario import scenario
from scenarios.grpc_traffic import service
from scenarios.moves import RELAY

# How many moves there are, and for how long the registry is away in the middle of some of them. `tests/interop/apart` has more.
MOVES = int(os.environ.get("DISTRIBUTARY_MOVES", "8"))
AWAY = 30.0 if MOVES > 50 else 3.0
# How late the endpoints are, in seconds; below zero, they are there before the route.
LATE = (0, 0.3, -0.3, 0.7, 1.5, -1, 1.1)


def two_sources(world, registry, more=""):
    """Starts a relay that takes endpoints from the registry and all else from the control plane."""
    server = "{{ server_uri: 'http://{}' }}".format
    return world.start_relay(None, text=f"""
upstream: {{ xds_servers: [{server(world.control_plane.address)}] }}
sources:
  - {{ name: registry, types: [eds], xds_servers: [{server(registry.address)}] }}
{more}""")


def holds(relay):
    """What waits for the registry."""
    found = json.loads(relay.page("/holds?format=json"))["holds"]
    return [hold for hold in found if hold["reason"] == "unready"]


class Target:
    """What all requests lead to: an HTTP cluster for an Envoy, or a gRPC one, of a number that grows."""

    def __init__(self, world, registry, ports, source, name, route):
        self.world, self.registry, self.ports, self.source, self.name, self.route = world, registry, ports, source, name, route
        self.step = 0

    def cluster(self, step=None):
        return f"{self.name}{self.step if step is None else step}"

    def start(self, backend):
        self.registry.apply(put=[make.endpoints(self.cluster(), self.ports[backend])])
        self.world.control_plane.apply(put=[make.cluster(self.cluster(), *self.source), self.routes()])

    def routes(self):
        return make.routes(self.route, make.to(self.cluster(), *(() if self.source else ("",))))

    def move(self, backend, late):
        """All requests go to a new cluster, whose endpoints come so many seconds after the route; then the old one goes."""
        self.step += 1
        endpoints = [make.endpoints(self.cluster(), self.ports[backend])]
        gone = [("eds", self.cluster(self.step - 1))]
        if late <= 0:
            self.registry.apply(put=endpoints)
            time.sleep(-late)
        self.world.control_plane.apply(put=[make.cluster(self.cluster(), *self.source), self.routes()],
                                       remove=[("cds", self.cluster(self.step - 1))])
        if late > 0:
            time.sleep(late)
            self.registry.apply(put=endpoints)
        self.registry.apply(remove=gone)


def web_of_two(world, dialect):
    """A target whose endpoints are the registry's, with the relay, an Envoy and traffic through both."""
    registry, source = world.another_control_plane("registry"), dialect.source()
    web = Target(world, registry, world.backends.http, (source,), "x", "main")
    web.start("a")
    world.control_plane.apply(put=[make.listener("web", world.port, make.rds("main", source))])
    relay = two_sources(world, registry)
    envoy = world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    return web, relay, envoy, traffic


@scenario("D-11, D-12", AGGREGATED, caches=("linear",), relay_only=RELAY)
def routes_move_between_two_control_planes(world, dialect):
    """The endpoints of each new cluster are late or early; the old cluster and its endpoints go at once."""
    web, relay, envoy, traffic = web_of_two(world, dialect)
    for step in range(MOVES):
        web.move("bca"[step % 3], LATE[step % len(LATE)])
        traffic.reaches("bca"[step % 3])
        eventually("Envoy has one cluster", lambda: set(envoy.clusters()) == {web.cluster()})
    eventually("nothing is held", lambda: not json.loads(relay.page("/holds?format=json"))["holds"])
    print(f"         {len(traffic.answers)} requests over {MOVES} moves, {len(traffic.failures)} failed", flush=True)


@scenario("D-11, D-12", caches=("linear",), relay_only=RELAY)
def grpc_routes_move_between_two_control_planes(world):
    """The same with grpc-go, which asks for a cluster once the route names it."""
    registry = world.another_control_plane("registry")
    shop = Target(world, registry, world.backends.grpc, (), "x", "shop-routes")
    shop.start("a")
    world.control_plane.apply(put=[make.api_listener("shop", make.rds("shop-routes"))])
    two_sources(world, registry)
    calls = world.watch(world.grpc_go("xds:///shop").records["xds:///shop"])
    calls.reaches("a")
    for step in range(MOVES):
        shop.move("bca"[step % 3], LATE[step % len(LATE)])
        calls.reaches("bca"[step % 3])
    print(f"         {len(calls.answers)} calls over {MOVES} moves, {len(calls.failures)} failed", flush=True)


@scenario("D-11, D-12, F-19", AGGREGATED, caches=("linear",), relay_only=RELAY)
def the_registry_is_away_during_moves(world, dialect):
    """The registry dies while the route goes on moving. Clients stay where they are, `/holds` says why, and the last route is served once
    the registry is back."""
    web, relay, envoy, traffic = web_of_two(world, dialect)
    registry, source = web.registry, dialect.source()
    updates = envoy.stat("http.interop.rds.main.update_success")
    registry.stop()
    eventually("the relay has noticed", lambda: f"#registry::http://{registry.address}::state::unreachable" in relay.page("/clusters"))
    moves, began = max(MOVES // 4, 2), time.monotonic()
    for step in range(1, moves + 1):
        world.control_plane.apply(put=[make.cluster(f"x{step}", source), make.routes("main", make.to(f"x{step}"))])
        time.sleep(max(0.0, AWAY / moves - 0.05))
    eventually("the route waits", lambda: holds(relay))
    if (late := time.monotonic() - began) < AWAY * 0.8:
        raise Failed(f"the registry was away for {late:.0f} s only")
    if envoy.stat("http.interop.rds.main.update_success") != updates:
        raise Failed("a route was served whose endpoints nobody has")
    again = world.another_control_plane("registry", registry.address)
    again.apply(put=[make.endpoints(f"x{step}", world.backends.http["ab"[step > 0]]) for step in range(moves + 1)])
    traffic.reaches("b", within=40)
    eventually("nothing waits", lambda: not holds(relay))
    if (sent := envoy.stat("http.interop.rds.main.update_success") - updates) != 1:
        raise Failed(f"the route was sent {sent} times")
    print(f"         {len(traffic.answers)} requests, {len(traffic.failures)} failed, {moves} moves in {AWAY:.0f} s", flush=True)


@scenario("G-21, G-22, G-23, G-24", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_share_moves_under_traffic(world, dialect):
    """A share of the clients reads a new control plane: 5 %, 50 %, 100 %, then all with the earlier one behind it, then all; and back. An
    Envoy, grpc-go and 200 plain clients are there."""
    second, source = world.another_control_plane("second"), dialect.source()
    for server, backend in ((world.control_plane, "a"), (second, "b")):
        server.apply(put=[make.cluster("x", source), make.endpoints("x", world.backends.http[backend]), make.routes("main", make.to("x")),
                          make.listener("web", world.port, make.rds("main", source)), *service("shop", world.backends.grpc[backend])])
    second.apply(put=[make.cluster("more", source), make.endpoints("more", world.backends.http["b"])])
    first, new = (f"{{ server_uri: 'http://{server.address}' }}" for server in (world.control_plane, second))

    def text(servers, share=None):
        canary = f"canary: {{ share: {share}%, xds_servers: [{new}] }}\n" if share else ""
        return f"upstream: {{ xds_servers: [{servers}] }}\n{canary}"

    steps = [text(first), text(first, 5), text(first, 50), text(first, 100), text(f"{new}, {first}"), text(new)]
    relay = world.start_relay(None, text=steps[0])
    envoy = world.envoy(dialect).ready()
    records = world.traffic(), world.watch(world.grpc_go("xds:///shop").records["xds:///shop"])
    Subscribers(world.programs.go, world.logs, "200", "2", [relay.address])
    for record in records:
        record.reaches("a")
    for step in [*range(1, 6), *range(4, -1, -1)]:
        relay.config.write_text(steps[step])
        order = urllib.request.Request(f"http://{relay.admin}/reload", method="POST")
        urllib.request.urlopen(order, timeout=10).close()
        for record in records:
            if step in (0, 3, 4, 5):
                record.reaches("b" if step else "a")
        if step in (0, 3):
            eventually("Envoy has the clusters of its control plane", lambda: ("more" in envoy.clusters()) == bool(step))
        time.sleep(0.5)
    for record in records:
        print(f"         {record.name}: {len(record.answers)} requests, {len(record.failures)} failed", flush=True)
