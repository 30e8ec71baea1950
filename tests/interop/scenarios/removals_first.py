# SPDX-License-Identifier: Apache-2.0
"""A control plane says that a cluster is gone before it says the route that leads elsewhere, and not one request fails."""

import time

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import eventually
from scenario import scenario
from scenarios.envoy_http import proxy
from scenarios.grpc_traffic import service

FIRST = "the control plane itself says removals first"
# The backend of each round, and how many milliseconds later the route follows.
ROUNDS = (("b", 0), ("c", 1), ("a", 5), ("b", 20), ("c", 20), ("a", 5), ("b", 1), ("c", 0))


def leave(world, old, new, routes, prefix, pause):
    """The old cluster goes, and then the route leaves it."""
    world.control_plane.apply(remove=[("cds", old), ("eds", old)])
    time.sleep(pause / 1000)
    world.control_plane.apply(put=[make.routes(routes, make.to(new, prefix))])


@scenario("D-03, K-20", AGGREGATED, upstreams=(None, "sotw"), relay_only=FIRST)
def envoy_keeps_its_routes(world, dialect):
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    old = "x"
    for round, (backend, pause) in enumerate(ROUNDS):
        new = f"y{round}"
        world.control_plane.apply(put=[make.cluster(new, source), make.endpoints(new, http[backend])])
        eventually(f"Envoy has cluster {new}", lambda: new in envoy.clusters())
        leave(world, old, new, "main", "/", pause)
        traffic.reaches(backend)
        eventually(f"Envoy dropped cluster {old}", lambda: set(envoy.clusters()) == {new})
        old = new


@scenario("D-03, K-20", upstreams=(None, "sotw"), relay_only=FIRST)
def grpc_python_keeps_its_routes(world):
    """The same with a gRPC client, which asks for clusters by name."""
    keeps_its_routes(world, lambda: world.grpc_python("xds:///shop"))


@scenario("D-03, K-20", upstreams=(None, "sotw"), relay_only=FIRST, needs="java")
def grpc_java_keeps_its_routes(world):
    keeps_its_routes(world, lambda: world.grpc_java("xds:///shop"))


def keeps_its_routes(world, start):
    ports = world.backends.grpc
    world.control_plane.apply(put=service("shop", ports["a"]))
    world.through_relay()
    client = start()
    calls = world.watch(client.records["xds:///shop"])
    calls.reaches("a")
    old = "shop-cluster"
    for round, (backend, pause) in enumerate(ROUNDS):
        new = f"next{round}"
        world.control_plane.apply(put=[make.cluster(new), make.endpoints(new, ports[backend])])
        leave(world, old, new, "shop-routes", "", pause)
        calls.reaches(backend)
        old = new
