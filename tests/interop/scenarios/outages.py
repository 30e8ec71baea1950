"""The control plane goes away, the relay is restarted, everything starts in the wrong order."""

from peers import resources as make
from peers.control_plane import ControlPlane
from peers.envoy import AGGREGATED
from peers.process import free_port
from peers.relay import Relay
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster

RELAY = "it is about the relay"


def successor(world):
    """A control plane at the address of the one that was stopped, without resources yet."""
    return world.start(ControlPlane(world.programs.go, world.logs, world.cache, world.control_plane.address))


@scenario("G-19, E-04, K-22", AGGREGATED, relay_only=RELAY)
def control_plane_restarts(world, dialect):
    """Nothing is deleted while it is away, and what it says afterwards reaches everybody."""
    envoy, traffic = proxy(world, dialect)
    before = envoy.stat("cluster_manager.cds.update_success")
    world.control_plane.stop()
    traffic.reaches("a")
    world.control_plane = successor(world)
    world.control_plane.apply(put=single_cluster(world, dialect, "b"))
    traffic.reaches("b")
    assert envoy.stat("cluster_manager.cds.update_success") == before, "equal clusters were sent again"


@scenario("K-09, K-14, L-12, L-18, G-20", AGGREGATED, relay_only=RELAY)
def relay_restarts(world, dialect):
    """Envoy comes back to an empty relay at the same address; clusters and endpoints arrive in any order."""
    envoy, traffic = proxy(world, dialect)
    address = world.relay.address
    world.relay.stop()
    traffic.reaches("a")
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"]), make.cluster("x", dialect.source(), "4s")])
    world.relay = world.start(Relay(world.programs.relay, world.logs, world.control_plane.address, address))
    traffic.reaches("b")
    assert envoy.clusters()["x"]["connect_timeout"] == "4s"


@scenario("G-20, B-20, L-18", AGGREGATED, relay_only=RELAY)
def everything_starts_backwards(world, dialect):
    """First Envoy, then the relay, then the control plane: nobody is told that nothing exists."""
    world.control_plane.stop()
    address = f"127.0.0.1:{free_port()}"
    world.xds = address
    envoy = world.envoy(dialect)
    world.relay = world.start(Relay(world.programs.relay, world.logs, world.control_plane.address, address, ready=False))
    world.control_plane = successor(world)
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    envoy.ready(within=40)
    world.traffic().reaches("a")
