"""Envoy rejects what is bad; everybody else, and the control plane, never notice."""

from peers import resources as make
from peers.envoy import AGGREGATED, EVERY
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.envoy_http import proxy

LOOPS = "go-control-plane sends a rejected resource again at once, without end"


@scenario("B-22, K-07, K-08, L-6, L-16", EVERY, relay_only=LOOPS)
def bad_cluster(world, dialect):
    """A cluster that Envoy rejects comes once, others keep changing, and its repair gets through."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    bad = make.cluster("z", source, timeout="0s")
    world.control_plane.apply(put=[bad, make.endpoints("z", http["c"])])
    rejected = "cluster_manager.cds.update_rejected"
    eventually("Envoy rejects the cluster", lambda: envoy.stat(rejected))

    for backend in "bab":
        world.control_plane.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)
    once(envoy, rejected)

    world.control_plane.apply(put=[make.cluster("z", source), make.routes("main", make.to("z"))])
    traffic.reaches("c")
    once(envoy, rejected)


@scenario("C-25, L-26", AGGREGATED, relay_only=LOOPS)
def bad_endpoints(world, dialect):
    """Good and bad endpoints in one response: the good ones are not forgotten when the bad ones are repaired."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.cluster("z", source), make.endpoints("z", http["b"])])
    eventually("Envoy has cluster z", lambda: "z" in envoy.clusters())

    bad = make.endpoints("z", http["c"], load_balancing_weight=0)
    world.control_plane.apply(put=[bad, make.endpoints("x", http["c"])])
    eventually("Envoy rejects the endpoints", lambda: rejections(envoy))
    seen = rejections(envoy)

    world.control_plane.apply(put=[make.endpoints("z", http["a"])])
    traffic.reaches("c")
    world.control_plane.apply(put=[make.routes("main", make.to("z"))])
    traffic.reaches("a")
    if rejections(envoy) != seen:
        raise Failed(f"Envoy rejected endpoints {rejections(envoy)} times, at first {seen} times")


@scenario("B-22, K-07, L-16", AGGREGATED, relay_only=LOOPS)
def two_envoys_reject(world, dialect):
    """Two Envoys reject one listener; each gets it once, and both follow when it is repaired."""
    source = dialect.source()
    first, traffic = proxy(world, dialect)
    # The second Envoy cannot bind the port of the first: it rejects the very listener that the first one runs.
    second = world.envoy(dialect, node="second")
    eventually("the second Envoy rejects the listener", lambda: second.stat("listener_manager.lds.update_rejected"))
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", world.backends.http["b"])])
    for envoy in (first, second):
        eventually(f"{envoy.name} has cluster y", lambda envoy=envoy: "y" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("b")
    once(second, "listener_manager.lds.update_rejected")


def once(envoy, stat):
    if (count := envoy.stat(stat)) != 1:
        raise Failed(f"{envoy.name} rejected {count} updates ({stat})")


def rejections(envoy):
    return envoy.stat("cluster.x.update_rejected") + envoy.stat("cluster.z.update_rejected")
