# SPDX-License-Identifier: Apache-2.0
"""What one client rejects is nobody else's content: Envoys that show their errors, gRPC clients, and relays in a row."""

import json

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster
from scenarios.envoy_nack import LOOPS, mends_routes, settled, times, uses
from scenarios.grpc_traffic import service

# How long a call of grpcio takes at the most.
CALL_TIMEOUT = 20
REJECTED, TAKEN = (f"listener_manager.lds.update_{what}" for what in ("rejected", "success"))


def error(envoy):
    """What Envoy says is wrong with its listener `web`."""
    dump = json.loads(envoy.get("/config_dump?resource=dynamic_listeners"))
    found = [one.get("error_state", {}).get("details", "") for one in dump.get("configs", ()) if one.get("name") == "web"]
    return found[0] if found else ""


@scenario("K-37, B-22", AGGREGATED, relay_only=LOOPS, where="sotw/snapshot")
def its_error_stays(world, dialect):
    """Envoy rejects a change of its listener. It shows why until the change is mended, has rejected once, and has taken no listeners
    since, whatever else changes."""
    world.expect_rejections()
    envoy, traffic = proxy(world, dialect)
    web, taken = single_cluster(world, dialect, "a")[-1], envoy.stat(TAKEN)
    world.control_plane.apply(put=[{**web, "filter_chains": []}])
    eventually("Envoy rejects it", lambda: envoy.stat(REJECTED))
    for backend in "ba":
        world.control_plane.apply(put=[make.endpoints("x", world.backends.http[backend])])
        traffic.reaches(backend)
    settled(lambda: (envoy.stat(REJECTED), envoy.stat(TAKEN)))
    times(1, envoy, REJECTED)
    if (found := envoy.stat(TAKEN)) != taken or not error(envoy):
        raise Failed(f"it took listeners {found - taken} times since, and shows {error(envoy)!r}")
    world.control_plane.apply(put=[{**web, "traffic_direction": "INBOUND"}])
    eventually("Envoy has the mended listener", lambda: envoy.stat(TAKEN) > taken and not error(envoy))
    times(1, envoy, REJECTED)
    traffic.reaches("a")


@scenario("K-37, B-22", AGGREGATED, relay_only="Envoy takes nothing of a response in which something is not valid")
def nine_of_ten(world, dialect):
    """Ten clusters change, and one of them is bad: the other nine arrive, and so does that one when it is mended."""
    world.expect_rejections()
    names = [f"y{number}" for number in range(10)]
    source, ports = dialect.source(), world.backends.http

    def all_with(timeout, bad=None):
        return [make.cluster(name, source, timeout="0s" if name == bad else timeout) for name in names]

    world.control_plane.apply(put=[*all_with("5s"), *(make.endpoints(name, ports["b"]) for name in names)])
    envoy, traffic = proxy(world, dialect)
    eventually("Envoy has them", lambda: set(names) <= set(envoy.clusters()))
    world.control_plane.apply(put=all_with("4s", bad="y7"))

    def changed():
        return {name for name, cluster in envoy.clusters().items() if cluster["connect_timeout"] == "4s"}

    eventually("nine have changed", lambda: changed() == set(names) - {"y7"})
    world.control_plane.apply(put=[make.cluster("y7", source, timeout="4s")])
    eventually("all have changed", lambda: changed() == set(names))
    traffic.reaches("a")


def goes_on(world, start):
    """A client rejects its cluster and then its listener, and its calls go on; one that comes meanwhile is answered too; both take what is
    mended, and obey when the listener goes. The first call of a grpcio that has rejected its listener is lost, whatever it is sent then."""
    world.expect_rejections()
    target, ports = "xds:///shop", world.backends.grpc
    good = service("shop", ports["a"])
    listener, _, cluster, _ = good
    world.control_plane.apply(put=good)
    world.through_relay()
    clients = [start(target)]
    records = [clients[0].records[target]]
    records[0].reaches("a")
    for bad, mended in (({**cluster, "lb_policy": "MAGLEV"}, {**cluster, "connect_timeout": "4s"}),
                        ({**listener, "api_listener": {}}, {**listener, "stat_prefix": "mended"})):
        before = len(world.control_plane.complaints())
        world.control_plane.apply(put=[bad])
        eventually("the control plane hears of it", lambda before=before: len(world.control_plane.complaints()) > before)
        newcomer = start(target)
        records.append(newcomer.records[target])
        for backend in "ba":
            world.control_plane.apply(put=[make.endpoints("shop-cluster", ports[backend])])
            for record in records:
                record.reaches(backend, within=CALL_TIMEOUT + 20)
        world.control_plane.apply(put=[mended])
        eventually("nobody rejects anything", lambda: not json.loads(world.relay.page("/nacks"))["rejections"])
    records[0].unbroken()
    lost = [len(record.failures) for record in records]
    if max(lost) > 1:
        raise Failed(f"lost calls: {lost}")
    world.control_plane.apply(remove=[("lds", "shop")])
    for record, before in zip(records, lost, strict=True):
        eventually(f"{record.name} obeys the removal", lambda record=record, before=before: len(record.failures) > before)


@scenario("K-37", relay_only="it is about the relay", upstreams=(None, "sotw"), caches=("linear",))
def grpc_go_goes_on(world):
    goes_on(world, world.grpc_go)


@scenario("K-37", relay_only="it is about the relay", upstreams=(None, "sotw"), caches=("linear",))
def grpc_python_goes_on(world):
    goes_on(world, world.grpc_python)


@scenario("K-37, B-22", relay_only="it is about the relay", upstreams=(None, "sotw"), caches=("linear",), needs="js")
def grpc_js_goes_on(world):
    """What grpc-js's own tests of invalid updates show, which its package does not contain: each resource is replaced by one that the client
    rejects, and calls go on to both backends."""
    world.expect_rejections()
    ports = world.backends.grpc
    listener, routes, cluster, _ = service("shop", ports["a"])
    endpoints = make.endpoints("shop-cluster", ports["a"], ports["b"])
    world.control_plane.apply(put=[listener, routes, cluster, endpoints])
    world.through_relay()
    calls = world.watch(world.grpc_js("xds:///shop").records["xds:///shop"])
    calls.reaches("a", "b")

    def rejected():
        return [one["type"] for one in json.loads(world.relay.page("/nacks"))["rejections"]]

    for good, bad in ((endpoints, {"endpoints": [{}]}), (cluster, {}), (routes, {"virtual_hosts": [{"domains": ["**"]}]}), (listener, {})):
        named = {key: value for key, value in good.items() if key in ("@type", "name", "cluster_name")}
        before = len(world.control_plane.complaints())
        world.control_plane.apply(put=[{**named, **bad}])
        eventually("the client rejects it", lambda good=good: [good["@type"].rsplit("/")[-1]] == rejected())
        eventually("the control plane hears of it", lambda before=before: len(world.control_plane.complaints()) > before)
        calls.reaches("a", "b")
        world.control_plane.apply(put=[good])
        eventually("nothing is rejected", lambda: not rejected())
        calls.reaches("a", "b")


@scenario("K-37, E-24", AGGREGATED, caches=("linear",), relay_only="it is about relays")
def below_two_relays(world, dialect):
    """Behind two relays two Envoys reject a change of their routes and go on; one that starts meanwhile answers as they do. The control
    plane hears once, and the mended routes reach all."""
    world.expect_rejections()
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    world.through_relay().through_relay()
    envoys = [world.envoy(dialect, node=name).ready() for name in ("first", "second")]
    world.control_plane.apply(put=[make.routes("main", {"match": {"safe_regex": {"regex": "("}}, "route": {"cluster": "x"}})])
    rejected, taken = (f"http.interop.rds.main.update_{what}" for what in ("rejected", "success"))
    for envoy in envoys:
        eventually(f"{envoy.name} rejects it", lambda envoy=envoy: envoy.stat(rejected))
    uses(world, "rds", 2)
    eventually("the control plane hears of it", world.control_plane.complaints)
    envoys.append(world.envoy(dialect, node="third").ready(5.0))
    traffic = world.traffic()
    traffic.reaches("a")
    for envoy in envoys:
        times(1, envoy, rejected)
    mends_routes(world, dialect, envoys, taken, 5.0)
    traffic.reaches("b")
    uses(world, "rds", 0)
    if len(told := world.control_plane.complaints()) != 1 or "reject" not in told[0]:
        raise Failed(f"the control plane was told {told}")
