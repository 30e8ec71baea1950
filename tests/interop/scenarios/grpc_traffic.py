# SPDX-License-Identifier: Apache-2.0
"""gRPC clients with an xds:/// target, calling all the time."""

from peers import resources as make
from scenario import scenario


def service(name, port):
    """The four resources that make a gRPC target."""
    return [make.api_listener(name, make.rds(f"{name}-routes")), make.routes(f"{name}-routes", make.to(f"{name}-cluster", "")),
            make.cluster(f"{name}-cluster"), make.endpoints(f"{name}-cluster", port)]


def story(world, start):
    """Endpoints move, then the route moves to another cluster and the old one goes."""
    ports = world.backends.grpc
    world.control_plane.apply(put=service("shop", ports["a"]))
    client = start(world.through_relay(), "xds:///shop")
    calls = world.watch(client.records["xds:///shop"])
    calls.reaches("a")
    for backend in "bca":
        world.control_plane.apply(put=[make.endpoints("shop-cluster", ports[backend])])
        calls.reaches(backend)
    world.control_plane.apply(put=[make.endpoints("shop-cluster", ports["a"], ports["b"])])
    calls.reaches("a", "b")
    world.control_plane.apply(put=[make.cluster("next"), make.endpoints("next", ports["c"])])
    world.control_plane.apply(put=[make.routes("shop-routes", make.to("next", ""))])
    calls.reaches("c")
    world.control_plane.apply(remove=[("cds", "shop-cluster"), ("eds", "shop-cluster")])
    world.control_plane.apply(put=[make.endpoints("next", ports["a"])])
    calls.reaches("a")


@scenario("B-11, B-18, A-11")
def grpc_go(world):
    story(world, lambda world, target: world.grpc_go(target))


@scenario("B-11, B-18, M-07")
def grpc_python(world):
    story(world, lambda world, target: world.grpc_python(target))


@scenario("B-11, B-18", needs="java")
def grpc_java(world):
    story(world, lambda world, target: world.grpc_java(target))


@scenario("D-07, M-06, K-23", caches=("linear",))
def grpc_python_with_two_targets(world):
    """Two targets of one process: two independent streams with one node id over one connection."""
    ports = world.backends.grpc
    world.control_plane.apply(put=[*service("shop", ports["a"]), *service("bank", ports["b"])])
    client = world.through_relay().grpc_python("xds:///shop", "xds:///bank")
    shop, bank = (world.watch(client.records[target]) for target in ("xds:///shop", "xds:///bank"))
    shop.reaches("a")
    bank.reaches("b")
    world.control_plane.apply(put=[make.endpoints("shop-cluster", ports["c"])])
    shop.reaches("c")
    bank.reaches("b")
    world.control_plane.apply(put=[make.endpoints("bank-cluster", ports["a"])])
    bank.reaches("a")


@scenario("D-07, K-23, L-16", caches=("linear",))
def everybody_together(world):
    """grpc-go and grpcio on the same resources, and one of them goes."""
    ports = world.backends.grpc
    world.control_plane.apply(put=service("shop", ports["a"]))
    world.through_relay()
    go, python = world.grpc_go("xds:///shop"), world.grpc_python("xds:///shop")
    calls = [world.watch(client.records["xds:///shop"]) for client in (go, python)]
    for backend in "abc":
        world.control_plane.apply(put=[make.endpoints("shop-cluster", ports[backend])])
        for record in calls:
            record.reaches(backend)
    go.stop()
    world.control_plane.apply(put=[make.endpoints("shop-cluster", ports["a"])])
    calls[1].reaches("a")


@scenario("B-14, K-15, L-14", caches=("linear",))
def grpc_go_target_is_created_later(world):
    """A client asks for a target before it exists."""
    world.control_plane.apply(put=service("other", world.backends.grpc["b"]))
    client = world.through_relay().grpc_go("xds:///shop")
    calls = world.watch(client.records["xds:///shop"])
    world.control_plane.wait_for_request("lds", "shop")
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    calls.reaches("a")
