"""Envoy rejects bad resources; other clients and the control plane are not affected."""

from peers import resources as make
from peers.envoy import AGGREGATED, EVERY
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster

LOOPS = "go-control-plane sends a rejected resource again at once, without end"


@scenario("B-22, E-24, K-06, K-07, L-6, L-16", EVERY, relay_only=LOOPS, where="sotw/snapshot")
def bad_cluster(world, dialect):
    """Envoy gets a cluster that it rejects once; others keep changing, and the repaired cluster arrives. Through a relay, the control
    plane hears of it once, and sends nothing again."""
    world.expect_rejections()
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    bad = make.cluster("z", source, timeout="0s")
    world.control_plane.apply(put=[bad, make.endpoints("z", http["c"])])
    rejected = "cluster_manager.cds.update_rejected"
    eventually("Envoy rejects the cluster", lambda: envoy.stat(rejected))
    if not world.direct:
        eventually("the control plane hears of it", world.control_plane.complaints)

    for backend in "bab":
        world.control_plane.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)
    times(1, envoy, rejected)

    world.control_plane.apply(put=[make.cluster("z", source)])
    eventually("Envoy has the repaired cluster", lambda: "z" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("z"))])
    traffic.reaches("c")
    times(1, envoy, rejected)
    told = world.control_plane.complaints()
    if not world.direct and not (len(told) == 1 and told[0].startswith("1 of 1 client (envoy ") and " rejects cluster z: " in told[0]):
        raise Failed(f"the control plane was told {told}")


@scenario("E-24, K-06", AGGREGATED, upstreams=(None, "sotw"), relay_only="it is about what the relay says")
def heard(world, dialect):
    """The control plane hears once of a change that Envoy rejects, in either dialect, sends nothing again for it, and its next
    changes arrive."""
    world.expect_rejections()
    _, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.cluster("x", source, timeout="0s")])
    eventually("the control plane hears of it", world.control_plane.complaints)
    sent = len(world.control_plane.responses("cds"))
    for backend in "bab":
        world.control_plane.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)
    if len(world.control_plane.responses("cds")) != sent:
        raise Failed("the control plane sent clusters again although none had changed")
    world.control_plane.apply(put=[make.cluster("x", source)])
    eventually("the control plane sends the repaired cluster", lambda: len(world.control_plane.responses("cds")) > sent)
    if len(told := world.control_plane.complaints()) != 1:
        raise Failed(f"the control plane was told {told}")


@scenario("E-26", AGGREGATED, relay_only="a newcomer of the control plane itself has no listener")
def newcomers(world, dialect):
    """Two Envoys reject a change of their listener and go on with what they had. One that starts afterwards is served that, too, and
    answers; the repaired listener reaches it."""
    world.expect_rejections()
    web = single_cluster(world, dialect, "a")
    world.control_plane.apply(put=web)
    world.through_relay()
    old = [world.envoy(dialect, node=name).ready() for name in ("first", "second")]
    for envoy in old:
        eventually(f"{envoy.name} has the listener", lambda envoy=envoy: envoy.stat("listener_manager.total_listeners_active"))
    listener = web[-1]
    world.control_plane.apply(put=[{**listener, "filter_chains": []}])
    for envoy in old:
        eventually(f"{envoy.name} rejects it", lambda envoy=envoy: envoy.stat("listener_manager.lds.update_rejected"))
    eventually("the listener is condemned", lambda: "-lds-condemned" in world.relay.page("/holds"))
    eventually("the control plane hears of it", world.control_plane.complaints)
    for envoy in old:
        envoy.stop()
    newcomer = world.envoy(dialect, node="third").ready(5.0)
    traffic = world.traffic()
    traffic.reaches("a")
    times(0, newcomer, "listener_manager.lds.update_rejected")
    before = newcomer.stat("listener_manager.lds.update_success")
    world.control_plane.apply(put=[{**listener, "traffic_direction": "INBOUND"}])
    eventually("the newcomer has the repaired listener", lambda: newcomer.stat("listener_manager.lds.update_success") > before)
    eventually("nothing is condemned", lambda: "condemned" not in world.relay.page("/holds"))
    traffic.reaches("a")


@scenario("C-25, L-26", AGGREGATED, relay_only=f"{LOOPS}, or forgets what else it held")
def bad_endpoints(world, dialect):
    """Good and bad endpoints in one response: the good ones are not forgotten when the bad ones are repaired."""
    world.expect_rejections()
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.cluster("z", source), make.endpoints("z", http["b"])])
    eventually("Envoy has cluster z", lambda: "z" in envoy.clusters())

    bad = make.endpoints("z", http["c"], load_balancing_weight=0)
    world.control_plane.apply(put=[bad, make.endpoints("x", http["c"])])
    eventually("Envoy rejects the endpoints", lambda: rejections(envoy))
    seen = settled(lambda: rejections(envoy))

    world.control_plane.apply(put=[make.endpoints("z", http["a"])])
    traffic.reaches("c")
    world.control_plane.apply(put=[make.routes("main", make.to("z"))])
    traffic.reaches("a")
    if rejections(envoy) != seen:
        raise Failed(f"Envoy rejected endpoints {rejections(envoy)} times, at first {seen} times")


@scenario("B-22, K-07, L-16", AGGREGATED, relay_only=LOOPS, where="sotw")
def one_of_two_rejects(world, dialect):
    """Two Envoys on one machine cannot both bind one port: the first runs the listener, the second rejects it. The
    second gets it once, and once more when it changes, and meanwhile takes all other changes."""
    world.expect_rejections()
    rejected, source = "listener_manager.lds.update_rejected", dialect.source()
    web = single_cluster(world, dialect, "a", enable_reuse_port=False)
    world.control_plane.apply(put=web)
    first = world.through_relay().envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    second = world.envoy(dialect, node="second")
    eventually("the second Envoy rejects the listener", lambda: second.stat(rejected))

    for name in ("y", "z"):
        world.control_plane.apply(put=[make.cluster(name, source), make.endpoints(name, world.backends.http["b"])])
        for envoy in (first, second):
            eventually(f"{envoy.name} has cluster {name}", lambda envoy=envoy, name=name: name in envoy.clusters())
    times(1, second, rejected)

    before = first.stat("listener_manager.lds.update_success")
    world.control_plane.apply(put=[{**web[-1], "traffic_direction": "INBOUND"}])
    eventually("the first Envoy took the change", lambda: first.stat("listener_manager.lds.update_success") > before)
    eventually("the second Envoy rejects the change", lambda: second.stat(rejected) > 1)
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("b")
    times(2, second, rejected)
    times(0, first, rejected)


def times(count, envoy, stat):
    if (found := envoy.stat(stat)) != count:
        raise Failed(f"{envoy.name} rejected {found} updates instead of {count} ({stat})")


def settled(count):
    """The count once it has stayed the same for a second: the bad member is searched for in further responses (B-22)."""
    seen = []

    def same():
        seen.append(count())
        return seen[-10:] == [seen[-1]] * 10

    eventually("the tries end", same)
    return seen[-1]


def rejections(envoy):
    return envoy.stat("cluster.x.update_rejected") + envoy.stat("cluster.z.update_rejected")
