# SPDX-License-Identifier: Apache-2.0
"""The last Envoy leaves and another one comes, while a gRPC client keeps the relay's stream to the control plane open."""

import time

from peers.envoy import AGGREGATED
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service

LINGER = 0.1


@scenario("E-17, E-20", AGGREGATED, upstreams=(None, "sotw"), relay_only="it is about the relay's stream to the control plane")
def an_envoy_comes_back(world, dialect):
    """go-control-plane does not answer for a wildcard that it has sent on the stream before."""
    world.control_plane.apply(put=[*single_cluster(world, dialect, "a"), *service("shop", world.backends.grpc["a"])])
    transport = f", transport: {world.upstream}" if world.upstream else ""
    server = f"{{ server_uri: 'http://{world.control_plane.address}'{transport} }}"
    world.start_relay(None, text=f"upstream: {{ xds_servers: [{server}] }}\ntimers: {{ linger: {LINGER * 1000:.0f}ms }}\n")
    first = world.envoy(dialect, "first").ready()
    world.grpc_go("xds:///shop").records["xds:///shop"].reaches("a")
    first.stop()
    time.sleep(10 * LINGER)
    world.envoy(dialect, "second").ready()
    world.traffic().reaches("a")
