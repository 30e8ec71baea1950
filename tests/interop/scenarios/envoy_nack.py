# SPDX-License-Identifier: Apache-2.0
"""Envoy rejects bad resources; other clients and the control plane are not affected."""

import json
import socket
import ssl

from peers import resources as make
from peers.control_plane import certificate
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


@scenario("K-37", AGGREGATED, relay_only="a newcomer of the control plane itself has no listener")
def newcomers(world, dialect):
    """Two Envoys reject a change of their listener and go on with what they had. One that starts afterwards rejects it once, is sent
    what they have, and answers; the repaired listener reaches it."""
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
    uses(world, "lds", 2)
    eventually("the control plane hears of it", world.control_plane.complaints)
    for envoy in old:
        envoy.stop()
    newcomer = world.envoy(dialect, node="third").ready(5.0)
    eventually("the newcomer has a listener", lambda: newcomer.stat("listener_manager.total_listeners_active"), 2.0)
    traffic = world.traffic()
    traffic.reaches("a")
    times(1, newcomer, "listener_manager.lds.update_rejected")
    before = newcomer.stat("listener_manager.lds.update_success")
    world.control_plane.apply(put=[{**listener, "traffic_direction": "INBOUND"}])
    eventually("the newcomer has the repaired listener", lambda: newcomer.stat("listener_manager.lds.update_success") > before)
    eventually("no client uses older content", lambda: not any(
        view["older"] for view in json.loads(world.relay.page("/views"))["views"]))
    traffic.reaches("a")


@scenario("K-37, B-18", AGGREGATED, relay_only="it is about the relay")
def one_bad_key(world, dialect):
    """envoy gateway 9463: a key that does not belong to its certificate, one of 32 secrets. Two Envoys reject it. One that starts
    afterwards is sent no older key; over delta it shows the others; with the repaired one it shows all."""
    world.expect_rejections()
    source, names = dialect.source(), [f"s{number:02}.test" for number in range(32)]
    good, other = (certificate(world.programs.go, f"{name}.test") for name in ("good", "other"))
    listener = make.listener("web", world.port, make.rds("main", source))
    listener["filter_chains"] = [chain_of(listener["filter_chains"][0], name, source) for name in names]
    listener["listener_filters"] = [{"name": "inspector", "typed_config": {
        "@type": make.PREFIX + "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}]
    world.control_plane.apply(put=[*single_cluster(world, dialect, "a")[:-1], *(make.secret(name, good) for name in names), listener])
    world.through_relay()
    old = [world.envoy(dialect, node=name).ready() for name in ("first", "second")]
    for name in names:
        eventually(f"{name} is shown", lambda name=name: shown(world.port, name) == good["certificate"].strip())
    mixed = {"certificate": other["certificate"], "key": good["key"]}
    world.control_plane.apply(put=[make.secret(names[7], mixed)])
    for envoy in old:
        eventually(f"{envoy.name} rejects it", envoy.rejected)
    for envoy in old:
        envoy.stop()
    newcomer = world.envoy(dialect, node="third").ready(5.0)
    eventually("the newcomer rejects it", newcomer.rejected)
    for name in names[:7] + names[8:] if dialect.api_type == "DELTA_GRPC" else ():
        eventually(f"the newcomer shows {name}", lambda name=name: shown(world.port, name) == good["certificate"].strip())
    if shown(world.port, names[7]):
        raise Failed("the newcomer shows an older certificate")
    world.control_plane.apply(put=[make.secret(names[7], other)])
    eventually("the newcomer shows the repaired one", lambda: shown(world.port, names[7]) == other["certificate"].strip())


@scenario("K-37", AGGREGATED, relay_only="a newcomer of the control plane itself has no routes")
def mended_route(world, dialect):
    """kgateway 14264: two Envoys reject a change of their routes and go on. One that starts meanwhile answers as they do, and a second
    after the routes are mended, all of them have them."""
    world.expect_rejections()
    web = single_cluster(world, dialect, "a")
    world.control_plane.apply(put=web)
    world.through_relay()
    envoys = [world.envoy(dialect, node=name).ready() for name in ("first", "second")]
    broken = {"match": {"safe_regex": {"regex": "("}}, "route": {"cluster": "x"}}
    world.control_plane.apply(put=[make.routes("main", broken)])
    rejected, taken = (f"http.interop.rds.main.update_{what}" for what in ("rejected", "success"))
    for envoy in envoys:
        eventually(f"{envoy.name} rejects it", lambda envoy=envoy: envoy.stat(rejected))
    uses(world, "rds", 2)
    newcomer = world.envoy(dialect, node="third").ready(5.0)
    eventually("the newcomer has the older routes", lambda: newcomer.stat(taken))
    traffic = world.traffic()
    traffic.reaches("a")
    times(1, newcomer, rejected)
    envoys.append(newcomer)
    mends_routes(world, dialect, envoys, taken, 1.0)
    traffic.reaches("b")
    uses(world, "rds", 0)


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


def mends_routes(world, dialect, envoys, taken, seconds):
    """The control plane sends routes that lead to a new cluster, and all take them in so many seconds."""
    before = [envoy.stat(taken) for envoy in envoys]
    source = dialect.source()
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", world.backends.http["b"])])
    for envoy in envoys:
        eventually(f"{envoy.name} has cluster y", lambda envoy=envoy: "y" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    eventually("all have the mended routes", lambda: all(
        envoy.stat(taken) > count for envoy, count in zip(envoys, before, strict=True)), seconds)


def uses(world, kind, clients):
    """Waits until so many clients use older content of this type."""
    def used():
        found = json.loads(world.relay.page("/holds?format=json"))["older"]
        return sum(one["clients"] for one in found if one["id"].endswith(f"-{kind}-older"))

    eventually(f"{clients} clients use older content", lambda: used() == clients)


def times(count, envoy, stat):
    if (found := envoy.stat(stat)) != count:
        raise Failed(f"{envoy.name} rejected {found} updates instead of {count} ({stat})")


def chain_of(chain, name, source):
    """The filter chain for one name, which shows the certificate of that name."""
    tls = {"@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
           "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": name, "sds_config": source}]}}
    return {**chain, "filter_chain_match": {"server_names": [name]}, "transport_socket": {"name": "tls", "typed_config": tls}}


def shown(port, name):
    """The certificate that a listener shows for a name."""
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            with context.wrap_socket(plain, server_hostname=name) as secured:
                return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True)).strip()
    except OSError:
        return None


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
