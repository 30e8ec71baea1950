# SPDX-License-Identifier: Apache-2.0
"""HTTP through Envoy while resources change, and not one request fails."""

from peers import resources as make
from peers.envoy import AGGREGATED, EVERY
from peers.process import eventually, free_port
from peers.traffic import ask
from scenario import scenario


def single_cluster(world, dialect, backend, **listener):
    """A listener whose requests all go to cluster x at one backend."""
    source = dialect.source()
    return [make.cluster("x", source), make.endpoints("x", world.backends.http[backend]), make.routes("main", make.to("x")),
            make.listener("web", world.port, make.rds("main", source), **listener)]


def proxy(world, dialect):
    """An Envoy with one listener, all of whose requests go to cluster x at backend a, and its traffic."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    envoy = world.through_relay().envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    return envoy, traffic


@scenario("D-01, K-19, M-02", EVERY)
def endpoints_move(world, dialect):
    _, traffic = proxy(world, dialect)
    http = world.backends.http
    for ports, answering in (("b", "b"), ("bc", "bc"), ("c", "c"), ("a", "a")):
        world.control_plane.apply(put=[make.endpoints("x", *(http[port] for port in ports))])
        traffic.reaches(*answering)


@scenario("D-01, D-03, D-04, E-18", EVERY, where="streams-sotw/snapshot",
          relay_only="a snapshot cache in ADS mode withholds endpoints from a stream that does not ask for all of them")
def cluster_is_replaced(world, dialect):
    """A new cluster is added, the route moves to it, the old one is removed: each step when the one before is in use."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", http["b"])])
    eventually("Envoy has cluster y", lambda: "y" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("b")
    world.control_plane.apply(remove=[("cds", "x"), ("eds", "x")])
    eventually("Envoy dropped cluster x", lambda: "x" not in envoy.clusters())
    traffic.reaches("b")


@scenario("D-01, D-03, D-04, K-20, L-27", AGGREGATED, upstreams=(None, "sotw"),
          relay_only="go-control-plane sends the route while its cluster still lacks endpoints")
def cluster_is_replaced_at_once(world, dialect):
    """The same steps as fast as the control plane can take them, again and again: nothing may overtake."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    old = "x"
    for round, backend in enumerate("bcabcab"):
        new = f"y{round}"
        world.control_plane.apply(put=[make.cluster(new, source), make.endpoints(new, http[backend])])
        world.control_plane.apply(put=[make.routes("main", make.to(new))])
        world.control_plane.apply(remove=[("cds", old), ("eds", old)])
        traffic.reaches(backend)
        eventually(f"Envoy dropped cluster {old}", lambda: set(envoy.clusters()) == {new})
        old = new


@scenario("B-16, L-13", AGGREGATED)
def listeners_come_and_go(world, dialect):
    _, traffic = proxy(world, dialect)
    other = free_port()
    source = dialect.source()
    world.control_plane.apply(put=[make.listener("second", other, make.rds("main", source))])
    eventually("the second listener answers", lambda: ask(other)[0] == "a")
    world.control_plane.apply(remove=[("lds", "second")])
    eventually("the second listener is gone", lambda: ask(other)[1])
    traffic.reaches("a")


@scenario("K-13, M-01, L-11", EVERY, where="ads-", relay_only="go-control-plane does not repeat the endpoints of a changed cluster")
def changed_cluster_does_not_wait(world, dialect):
    """Envoy keeps a changed EDS cluster warming until its endpoints come again, though they did not change; 15 s
    later it gives up waiting."""
    envoy, traffic = proxy(world, dialect)
    for timeout in ("4s", "3s", "2s"):
        world.control_plane.apply(put=[make.cluster("x", dialect.source(), timeout)])
        eventually(f"the cluster with a timeout of {timeout} is active",
                   lambda: envoy.clusters()["x"]["connect_timeout"] == timeout, within=5)
    traffic.reaches("a")


@scenario("K-13, M-01, C-14, L-29", AGGREGATED, relay_only="go-control-plane does not repeat the endpoints of a new cluster")
def new_cluster_with_known_endpoints_does_not_wait(world, dialect):
    """A second cluster that names endpoints which Envoy already has must not wait for them to change."""
    envoy, traffic = proxy(world, dialect)
    twin = make.cluster("twin", dialect.source())
    twin["eds_cluster_config"]["service_name"] = "x"
    world.control_plane.apply(put=[twin])
    eventually("the twin is active", lambda: "twin" in envoy.clusters(), within=5)
    world.control_plane.apply(put=[make.routes("main", make.to("twin"))])
    world.control_plane.apply(remove=[("cds", "x")])
    eventually("Envoy dropped cluster x", lambda: set(envoy.clusters()) == {"twin"})
    traffic.reaches("a")


@scenario("C-26, L-29", AGGREGATED, caches=("linear",))
def many_clusters(world, dialect):
    """Four hundred clusters at once, each waiting for its endpoints."""
    envoy, traffic = proxy(world, dialect)
    source, port = dialect.source(), world.backends.http["b"]
    names = [f"many-{number}" for number in range(400)]
    world.control_plane.apply(put=[part for name in names for part in (make.cluster(name, source), make.endpoints(name, port))])
    eventually("all clusters are active", lambda: set(names) <= set(envoy.clusters()), within=12)
    world.control_plane.apply(put=[make.routes("main", make.to(names[-1]))])
    traffic.reaches("b")
