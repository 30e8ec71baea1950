# SPDX-License-Identifier: Apache-2.0
"""An Envoy that polls: REST-JSON instead of streams."""

from peers import resources as make
from peers.envoy import AGGREGATED, POLLING
from peers.process import eventually
from scenario import scenario

from .envoy_http import proxy, single_cluster

ONLY = "go-control-plane's server here streams only"


@scenario("H-01, H-02, H-04, H-05, H-06", (POLLING,), relay_only=ONLY)
def polls(world, dialect):
    """Everything comes by polling, moves, and is replaced; not one request fails."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    for ports, answering in (("b", "b"), ("bc", "bc"), ("c", "c"), ("a", "a")):
        world.control_plane.apply(put=[make.endpoints("x", *(http[port] for port in ports))])
        traffic.reaches(*answering)
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", http["b"])])
    eventually("Envoy has cluster y", lambda: "y" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("b")
    world.control_plane.apply(remove=[("cds", "x"), ("eds", "x")])
    eventually("Envoy dropped cluster x", lambda: "x" not in envoy.clusters())
    traffic.reaches("b")
    eventually("Envoy was told that nothing is new", lambda: envoy.stat("cluster_manager.cds.update_attempt") > 10)
    if failed := envoy.stat("listener_manager.lds.update_failure"):
        raise AssertionError(f"{failed} polls for listeners failed")


@scenario("G-19, H-02", (POLLING,), relay_only=ONLY)
def polls_while_the_control_plane_is_away(world, dialect):
    envoy, traffic = proxy(world, dialect)
    before = envoy.stat("cluster_manager.cds.update_attempt")
    world.control_plane.stop()
    eventually("Envoy polls on", lambda: envoy.stat("cluster_manager.cds.update_attempt") > before + 10)
    traffic.reaches("a")


@scenario("H-07, K-20", AGGREGATED, relay_only=ONLY)
def a_relay_polls_a_relay(world, dialect):
    """A relay that polls another relay streams the same content to its Envoy."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    first = world.through_relay().relay
    world.start_relay(first.address, polls=True)
    envoy = world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.endpoints("x", http["c"])])
    traffic.reaches("c")
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", http["b"]), make.routes("main", make.to("y"))])
    traffic.reaches("b")
    world.control_plane.apply(remove=[("cds", "x"), ("eds", "x")])
    eventually("Envoy dropped cluster x", lambda: "x" not in envoy.clusters())
    traffic.reaches("b")
