# SPDX-License-Identifier: Apache-2.0
"""The control plane goes away, the relay is restarted, everything starts in the wrong order."""

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually, free_port
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster
from scenarios.grpc_traffic import service

RELAY = "it is about the relay"


def successor(world):
    """A control plane at the address of the one that was stopped, without resources yet."""
    return world.new_control_plane(world.control_plane.address)


def stale_types(relay):
    """How many types the relay serves without the word of a control plane, over all of its control planes."""
    shown = [line for line in relay.page("/metrics").splitlines() if line.startswith("distributary_stale_serving{")]
    return sum(int(line.rsplit(" ", 1)[1]) for line in shown) if shown else None


def connected(relay):
    """Whether the control plane counts as one that answers."""
    return any(line.startswith("distributary_upstream_connected{") and line.endswith(" 1") for line in relay.page("/metrics").splitlines())


@scenario("G-19, E-04, K-22", AGGREGATED, relay_only=RELAY)
def control_plane_restarts(world, dialect):
    """Nothing is deleted while it is away, and later changes reach all clients."""
    envoy, traffic = proxy(world, dialect)
    before = envoy.stat("cluster_manager.cds.update_success")
    world.control_plane.stop()
    traffic.reaches("a")
    successor(world).apply(put=single_cluster(world, dialect, "b"))
    traffic.reaches("b")
    if envoy.stat("cluster_manager.cds.update_success") != before:
        raise Failed("clusters that did not change were sent again")


@scenario("E-04, E-25", AGGREGATED, upstreams=(None, "sotw"), relay_only=RELAY)
def what_is_gone_meanwhile(world, dialect):
    """A control plane comes back without a cluster, which is served no more, and goes on with the rest."""
    source = dialect.source()
    more = [make.cluster("more", source), make.endpoints("more", world.backends.http["b"])]
    world.control_plane.apply(put=[*single_cluster(world, dialect, "a"), *more])
    envoy = world.through_relay().envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    eventually("Envoy has both clusters", lambda: envoy.clusters().keys() == {"x", "more"})
    world.control_plane.stop()
    successor(world).apply(put=single_cluster(world, dialect, "a"))
    eventually("Envoy has the cluster that is there", lambda: envoy.clusters().keys() == {"x"}, within=60)
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["c"])])
    traffic.reaches("c")
    traffic.unbroken()


@scenario("E-04, G-02, G-08", caches=("linear", "snapshot"), relay_only=RELAY)
def control_plane_has_nothing_new(world):
    """A control plane that comes back with what it had is silent to a relay that brings the versions: that is no failure."""
    shop = service("shop", world.backends.grpc["a"])
    world.control_plane.apply(put=shop)
    go = world.through_relay().grpc_go("xds:///shop")
    world.watch(go.records["xds:///shop"]).reaches("a")
    world.control_plane.stop()
    eventually("the relay has noticed", lambda: not connected(world.relay), within=10)
    successor(world).apply(put=shop)
    eventually("the control plane counts as connected, and nothing as stale", lambda: connected(world.relay) and not stale_types(world.relay), within=10)


@scenario("K-09, K-13, K-26, L-12, L-18, G-20", AGGREGATED, relay_only=RELAY)
def relay_restarts(world, dialect):
    """Envoy comes back to an empty relay at the same address; clusters and endpoints arrive in any order."""
    envoy, traffic = proxy(world, dialect)
    address = world.relay.address
    world.relay.drain()
    traffic.reaches("a")
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"]), make.cluster("x", dialect.source(), "4s")])
    world.start_relay(world.control_plane.address, address=address)
    traffic.reaches("b")
    eventually("the changed cluster is active", lambda: envoy.clusters()["x"]["connect_timeout"] == "4s", within=5)


@scenario("G-20, B-20, L-18", AGGREGATED, relay_only=RELAY)
def everything_starts_backwards(world, dialect):
    """First Envoy, then the relay, then the control plane: no client is told that resources do not exist."""
    world.control_plane.stop()
    address = f"127.0.0.1:{free_port()}"
    world.xds = address  # Nobody listens there yet.
    envoy = world.envoy(dialect)
    world.start_relay(world.control_plane.address, address=address, ready=False)
    successor(world).apply(put=single_cluster(world, dialect, "a"))
    envoy.ready(within=40)
    world.traffic().reaches("a")


@scenario("K-25, K-09", AGGREGATED, relay_only=RELAY)
def relay_of_relays(world, dialect):
    """A relay is a control plane to another relay, even of the same host; every change goes through both."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    envoy = world.through_relay().through_relay().envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"])])
    traffic.reaches("b")
    world.control_plane.apply(put=[make.cluster("x", dialect.source(), "4s")])
    eventually("the changed cluster is active", lambda: envoy.clusters()["x"]["connect_timeout"] == "4s", within=5)
    world.control_plane.apply(put=[make.cluster("y", dialect.source()), make.endpoints("y", world.backends.http["c"])])
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    world.control_plane.apply(remove=[("cds", "x"), ("eds", "x")])
    traffic.reaches("c")
    eventually("Envoy dropped cluster x", lambda: set(envoy.clusters()) == {"y"})


@scenario("G-19, K-23, L-17", caches=("linear",), relay_only=RELAY)
def new_client_while_control_plane_is_away(world):
    """Resources that one client uses are available to the next one too, even while the control plane is away."""
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    go = world.through_relay().grpc_go("xds:///shop")
    world.watch(go.records["xds:///shop"]).reaches("a")
    world.control_plane.stop()
    python = world.grpc_python("xds:///shop")
    world.watch(python.records["xds:///shop"]).reaches("a")
    successor(world).apply(put=service("shop", world.backends.grpc["b"]))
    for client in (go, python):
        client.records["xds:///shop"].reaches("b")


@scenario("G-18, L-17, L-18", caches=("linear",), relay_only=RELAY)
def client_before_control_plane(world):
    """A gRPC client asks a relay that has nothing yet: its stream ends before it can conclude that nothing exists,
    and it gets its answer when there is one."""
    world.control_plane.stop()
    world.start_relay(world.control_plane.address, ready=False)
    client = world.grpc_go("xds:///shop")
    eventually("grpc-go's stream ended", client.lost_streams, within=14)
    successor(world).apply(put=service("shop", world.backends.grpc["a"]))
    world.watch(client.records["xds:///shop"]).reaches("a")


@scenario("G-19, G-20, K-09, K-16, L-17", AGGREGATED, relay_only=RELAY)
def fresh_envoy_from_a_snapshot(world, dialect):
    """The control plane is away and the relay was killed: a new Envoy is served from the snapshot, and gets only the difference
    when the control plane is back."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    folder = world.logs / "snapshots"
    text = (f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
            f"snapshot: {{ dir: '{folder}', interval: 100ms }}\n")
    relay = world.start_relay(None, text=text)
    first = world.envoy(dialect, "first").ready()
    for kind, *names in (("cds",), ("lds",), ("eds", "x"), ("rds", "main")):
        eventually(f"{kind} is in the snapshot", lambda: relay.snapshot_has(folder, kind, *names))
    first.stop()
    world.control_plane.stop()
    relay.kill()

    relay = world.start_relay(None, text=text, address=relay.address)  # It is ready because of its snapshot.
    fresh = world.envoy(dialect, "fresh").ready()
    traffic = world.traffic()
    traffic.reaches("a")
    eventually("the relay says that it serves from its snapshot", lambda: stale_types(relay) == 4)
    counts = [f"{kind}.update_success" for kind in ("cluster_manager.cds", "listener_manager.lds")]
    before = {count: fresh.stat(count) for count in counts}

    changed = [make.endpoints("x", world.backends.http["b"])]
    successor(world).apply(put=[*single_cluster(world, dialect, "a"), *changed])
    traffic.reaches("b")
    eventually("nothing is stale", lambda: stale_types(relay) == 0)
    for count in counts:
        if fresh.stat(count) != before[count]:
            raise Failed(f"{count}: unchanged resources were sent again")
    world.control_plane.apply(put=[make.cluster("x", dialect.source(), "4s")])
    eventually("the changed cluster is active", lambda: fresh.clusters()["x"]["connect_timeout"] == "4s")
