# SPDX-License-Identifier: Apache-2.0
"""What moves: a client to another server and back, and an address to another listener."""

import time

from peers import resources as make
from peers.control_plane import certificate
from peers.envoy import ADS_DELTA, ADS_SOTW, AGGREGATED
from peers.process import Failed, eventually, free_port
from peers.traffic import ask
from scenario import scenario
from scenarios.envoy_http import proxy
from scenarios.grpc_traffic import service
from scenarios.outages import successor

RELAY = "it is about the relay"
# What a move may take on a busy machine. It takes a second where servers are silent about names that they do not have; waiting
# for answers about these would take eight (G-17).
MOVE = 5.0


@scenario("G-11, G-17", caches=("linear",), relay_only=RELAY)
def a_grpc_client_moves_and_returns(world):
    """Two control planes have other names of clusters for one target. grpc-go moves to the second one when it lacks something and
    the first one is gone, and back when that one returns."""
    second, ports = world.another_control_plane("second"), world.backends.grpc
    world.control_plane.apply(put=service("shop", ports["a"]))
    second.apply(put=[make.api_listener("shop", make.rds("shop-routes")), make.routes("shop-routes", make.to("other", "")),
                      make.cluster("other"), make.endpoints("other", ports["b"])])
    relay = world.start_relay([world.control_plane.address, second.address])
    calls = world.watch(world.grpc_go("xds:///shop").records["xds:///shop"])
    calls.reaches("a")

    # The first one tells of a cluster that it does not have, and goes. The client waits for that cluster.
    world.control_plane.apply(put=[make.routes("shop-routes", make.to("not-yet", ""))])
    world.control_plane.wait_for_request("cds", "not-yet")
    world.control_plane.stop()
    moves(calls, "b", "to the second server")

    successor(world).apply(put=service("shop", ports["c"]))
    connected = f'upstream_connected{{server="http://{world.control_plane.address}"}} 1'
    eventually("the first server is reached", lambda: connected in relay.page("/metrics"), within=40)
    moves(calls, "c", "back")


def moves(calls, backend, where):
    began = time.monotonic()
    calls.reaches(backend, within=MOVE)
    print(f"         grpc-go moves {where} in {time.monotonic() - began:.2f} s", flush=True)


@scenario("C-26, D-03", AGGREGATED, caches=("snapshot",))
def another_listener_takes_the_address(world, dialect):
    """One change removes a listener and adds another one on its address. Envoy has the new one, and rejects nothing."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", http["b"]), make.routes("second", make.to("y"))])
    world.control_plane.apply(put=[make.listener("next", world.port, make.rds("second", source))], remove=[("lds", "web")])
    traffic.reaches("b")
    if rejected := envoy.stat("listener_manager.lds.update_rejected"):
        raise Failed(f"Envoy rejected listeners {rejected} times")


NAMES = "the control plane removes a cluster while clients still use it"


@scenario("D-01, D-03, D-09", caches=("linear",), relay_only=NAMES)
def listeners_name_other_routes_for_grpc(world):
    """A cluster is removed, and held because its route leads to it. Then a listener names another route: no call fails before the
    client has that."""
    ports = world.backends.grpc
    put_target(world, 0, ports["a"])
    world.through_relay()
    clients = world.grpc_go("xds:///shop"), world.grpc_python("xds:///shop")
    records = [world.watch(client.records["xds:///shop"]) for client in clients]
    for record in records:
        record.reaches("a")
    for step, backend in enumerate("bcabcabc"):
        world.control_plane.apply(remove=[("cds", f"c{step}"), ("eds", f"c{step}")])
        time.sleep(0.3)
        put_target(world, step + 1, ports[backend], remove=[("rds", f"r{step}")])
        for record in records:
            record.reaches(backend)


def put_target(world, step, port, remove=()):
    """A gRPC target whose resources have names of their own in each step."""
    route, cluster = f"r{step}", f"c{step}"
    world.control_plane.apply(put=[make.api_listener("shop", make.rds(route)), make.routes(route, make.to(cluster, "")),
                                   make.cluster(cluster), make.endpoints(cluster, port)], remove=list(remove))


@scenario("D-01, D-03, D-09", AGGREGATED, caches=("linear", "snapshot"), relay_only=NAMES)
def listeners_name_other_routes(world, dialect):
    """The same with Envoy, which asks for the new route while the listener with the old one serves."""
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    route, cluster = "main", "x"
    for step, backend in enumerate("bcabcabc"):
        world.control_plane.apply(remove=[("cds", cluster), ("eds", cluster)])
        time.sleep(0.3)
        gone, route, cluster = route, f"r{step}", f"c{step}"
        world.control_plane.apply(put=[make.cluster(cluster, source), make.endpoints(cluster, http[backend]),
                                       make.routes(route, make.to(cluster)), make.listener("web", world.port, make.rds(route, source))],
                                  remove=[("rds", gone)])
        traffic.reaches(backend)
        eventually(f"Envoy has only {cluster}", lambda: set(envoy.clusters()) == {cluster})


@scenario("B-16, B-22", (ADS_SOTW,), relay_only="go-control-plane lists listeners in any order, and a rejected state again and again")
def an_address_that_a_new_listener_takes(world, dialect):
    """One change moves a listener to another port, and a new one, whose name sorts first, to the port that it leaves."""
    world.expect_rejections()
    _, traffic = proxy(world, dialect)
    source, other = dialect.source(), free_port()
    world.control_plane.apply(put=[make.cluster("y", source), make.endpoints("y", world.backends.http["b"]),
                                   make.routes("second", make.to("y"))])
    world.control_plane.apply(put=[make.listener("a-first", world.port, make.rds("second", source)),
                                   make.listener("web", other, make.rds("main", source))])
    eventually("the old listener answers at its new port", lambda: ask(other)[0] == "a", within=MOVE)
    eventually("the new listener has the old port", lambda: ask(world.port)[0] == "b", within=MOVE)
    traffic.failures.clear()
    traffic.reaches("b")


@scenario("B-22, C-25", (ADS_DELTA,), caches=("linear",), relay_only="go-control-plane sends a rejected resource again, without end")
def one_bad_secret_of_32(world, dialect):
    """Of 32 secrets in one change Envoy rejects one. It has the 31 others soon: the bad one is found in a few tries."""
    world.expect_rejections()
    envoy, _ = proxy(world, dialect)
    pair, names = certificate(world.programs.go, "secret.test"), [f"s{at}" for at in range(32)]
    bad = {"certificate": pair["certificate"], "key": "no key"}
    put = [make.secret(name, bad if name == "s13" else pair) for name in names]
    clusters = [make.cluster(name, dialect.source(), transport_socket=tls(name, dialect.source())) for name in names]
    world.control_plane.apply(put=[*put, *clusters, *(make.endpoints(name, world.backends.http["a"]) for name in names)])
    good = [name for name in names if name != "s13"]

    def used():
        lines = envoy.get("/stats?filter=ssl_context_update_by_sds$").splitlines()
        return {line.split(".")[1] for line in lines if not line.endswith(": 0")}

    eventually("Envoy rejects secrets", lambda: envoy.stat("sds.s13.update_rejected"))
    began = time.monotonic()
    eventually("all good secrets are used", lambda: used() == set(good))
    print(f"         31 of 32 secrets are used {time.monotonic() - began:.2f} s after the rejection", flush=True)


def tls(secret, source):
    """Connections that use a certificate of their own."""
    return {"name": "tls", "typed_config": {
        "@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": secret, "sds_config": source}]}}}
