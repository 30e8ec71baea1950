# SPDX-License-Identifier: Apache-2.0
"""Control planes and the relay die one after another and come back, and traffic is not affected."""

import json

from peers import resources as make
from peers.envoy import AGGREGATED, BACK_OFF
from peers.process import DEADLINE, Failed, eventually
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service
from scenarios.outages import successor

RELAY = "it is about the relay"
TEAM = "team.example.com"


def everything(world, dialect, backend):
    """The resources of both control planes: a proxy's configuration and a gRPC target."""
    return [*single_cluster(world, dialect, backend), *service("shop", world.backends.grpc[backend])]


def two_servers(world, second):
    """A gRPC bootstrap with the relay first, and a control plane as a fallback for the relay."""
    servers = [{"server_uri": address, "channel_creds": [{"type": "insecure"}]} for address in (world.xds, second)]
    return json.dumps({"node": {"id": "grpc-python", "cluster": "interop"}, "xds_servers": servers})


@scenario("G-03, G-07, G-08, G-11, G-17, G-19, L-19, L-20", AGGREGATED, caches=("linear",), relay_only=RELAY)
def control_planes_fail_in_turn(world, dialect):
    """A primary, a fallback and the relay: each of them goes and returns, under an Envoy and a gRPC client."""
    second = world.another_control_plane("fallback")
    world.control_plane.apply(put=everything(world, dialect, "a"))
    second.apply(put=everything(world, dialect, "a"))
    relay = world.start_relay([world.control_plane.address, second.address])
    envoy = world.envoy(dialect).ready()
    client = world.grpc_python("xds:///shop", text=two_servers(world, second.address))
    records = [world.traffic(), world.watch(client.records["xds:///shop"])]

    def all_reach(backend):
        for record in records:
            record.reaches(backend)

    all_reach("a")
    updates = envoy.stat("cluster_manager.cds.update_success")

    # The primary goes: clients that lack nothing get nothing from the fallback. A new client gets from it what it lacks.
    world.control_plane.stop()
    eventually("the relay has noticed", lambda: f'upstream_connected{{server="http://{world.control_plane.address}"}} 0' in relay.page("/metrics"))
    second.apply(put=service("bank", world.backends.grpc["c"]))
    other = world.grpc_go("xds:///bank")
    records.append(world.watch(other.records["xds:///bank"]))
    records[2].reaches("c")
    records[0].reaches("a")

    # The fallback goes too, and after a while the primary returns with other content.
    second.stop()
    records[0].reaches("a")
    records[2].reaches("c")
    if envoy.stat("cluster_manager.cds.update_success") != updates:
        raise Failed("clusters were sent again although nothing had changed")
    successor(world).apply(put=[*everything(world, dialect, "b"), *service("bank", world.backends.grpc["b"])])
    all_reach("b")

    # The relay restarts while only the fallback is there.
    second = world.another_control_plane("fallback-again", second.address)
    second.apply(put=[*everything(world, dialect, "b"), *service("bank", world.backends.grpc["b"])])
    world.control_plane.stop()
    address = relay.address
    relay.drain()
    all_reach("b")
    world.start_relay([world.control_plane.address, second.address], address=address)
    second.apply(put=[make.endpoints("x", world.backends.http["c"])])
    records[0].reaches("c", within=BACK_OFF + DEADLINE)

    # The primary returns with the fallback's content, and from then on its content counts.
    successor(world).apply(put=[*everything(world, dialect, "b"), *service("bank", world.backends.grpc["b"]),
                                make.endpoints("x", world.backends.http["c"])])
    world.control_plane.wait_for_request("eds", "x")
    records[0].reaches("c")
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["a"])])
    records[0].reaches("a")
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    records[1].reaches("a")


def named(kind, name):
    return f"xdstp://{TEAM}/envoy.config.{kind}/{name}"


def team_service(port):
    """A gRPC target all of whose resources are under the authority."""
    listener, routes = named("listener.v3.Listener", "shop"), named("route.v3.RouteConfiguration", "shop")
    cluster, endpoints = named("cluster.v3.Cluster", "shop"), named("endpoint.v3.ClusterLoadAssignment", "shop")
    eds = {"eds_config": make.ADS, "service_name": endpoints}
    return [make.api_listener(listener, make.rds(routes)), make.routes(routes, make.to(cluster, "")),
            make.cluster(cluster, eds_cluster_config=eds), make.endpoints(endpoints, port)]


@scenario("F-11, F-12, F-09, G-04, G-08", caches=("linear",), relay_only=RELAY)
def an_authority_of_its_own(world):
    """Federated grpc-go and grpcio clients: one target without an authority, one under an authority with failing control planes."""
    team, spare = world.another_control_plane("team"), world.another_control_plane("team-spare")
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    for control_plane in (team, spare):
        control_plane.apply(put=team_service(world.backends.grpc["b"]))
    servers = ", ".join(f"{{ server_uri: 'http://{one.address}' }}" for one in (team, spare))
    relay = world.start_relay(None, text=(
        "upstream:\n"
        f"  xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}]\n"
        f"  authorities: {{ {TEAM}: {{ xds_servers: [{servers}], fallback_on_reachability_only: true }} }}\n"
    ))
    targets = "xds:///shop", f"xds://{TEAM}/shop"
    text = relay.bootstrap("grpc", "--node-id", "federated", "--config", str(relay.config))
    clients = [start(*targets, text=text) for start in (world.grpc_go, world.grpc_python)]
    records = [[world.watch(client.records[target]) for client in clients] for target in targets]

    def reach(which, backend):
        for record in records[which]:
            record.reaches(backend)

    reach(0, "a")
    reach(1, "b")
    team.stop()
    spare.wait_for_request("eds", named("endpoint.v3.ClusterLoadAssignment", "shop"))
    spare.apply(put=[make.endpoints(named("endpoint.v3.ClusterLoadAssignment", "shop"), world.backends.grpc["c"])])
    reach(1, "c")
    reach(0, "a")
    team = world.another_control_plane("team-again", team.address)
    team.apply(put=team_service(world.backends.grpc["a"]))
    reach(1, "a")
    spare.stop()
    team.apply(put=[make.endpoints(named("endpoint.v3.ClusterLoadAssignment", "shop"), world.backends.grpc["b"])])
    reach(1, "b")
    reach(0, "a")
