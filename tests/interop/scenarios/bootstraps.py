"""Clients start with what `distributary bootstrap` prints."""

from peers import resources as make
from peers.envoy import AGGREGATED
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service

RELAY = "the relay prints it"


def federated(world):
    """A configuration of the relay with an authority, for which clients come to the relay as well."""
    file = world.logs / "federated.yaml"
    file.write_text(
        "upstream:\n"
        f"  xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}]\n"
        "  authorities: { endpoints.example.com: { fallback_on_reachability_only: true } }\n"
    )
    return ["--config", str(file)]


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only=RELAY)
def envoy_with_the_printed_bootstrap(world, dialect):
    """A plain one, and one that asks the relay for an authority too."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    world.through_relay()
    word = dialect.name.removeprefix("ads-")
    for node, more in (("plain", []), ("federated", federated(world))):
        text = world.relay.bootstrap("envoy", "--dialect", word, "--node-id", node, "--admin-port", "0", *more)
        envoy = world.envoy(dialect, node=node, text=text).ready()
        traffic = world.traffic()
        traffic.reaches("a")
        world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"])])
        traffic.reaches("b")
        world.control_plane.apply(put=[make.endpoints("x", world.backends.http["a"])])
        traffic.reaches("a")
        traffic.stop()
        envoy.stop()


@scenario("F-11", caches=("linear",), relay_only=RELAY)
def grpc_with_the_printed_bootstrap(world):
    """grpc-go and grpcio read it, with authorities and without."""
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    world.through_relay()
    plain = world.relay.bootstrap("grpc", "--node-id", "plain")
    more = world.relay.bootstrap("grpc", "--node-id", "federated", "--node-cluster", "c", *federated(world))
    for start, text in ((world.grpc_go, plain), (world.grpc_python, more)):
        client = start("xds:///shop", text=text)
        world.watch(client.records["xds:///shop"]).reaches("a")
