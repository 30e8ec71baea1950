"""What moves: a client to another server and back, and an address to another listener."""

import time

from peers import resources as make
from peers.control_plane import certificate
from peers.envoy import ADS_DELTA, AGGREGATED
from peers.process import Failed, eventually
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
