# SPDX-License-Identifier: Apache-2.0
"""Clients start with the output of `distributary bootstrap`, in plaintext and over TLS."""

from peers import resources as make
from peers.control_plane import certificate
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually, free_port
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service

RELAY = "the relay prints it"
# Two health checks of 5 s, and the pause until Envoy connects again.
FAILOVER = 40.0


def follows(world, dialect, node, text):
    """An Envoy with this bootstrap is given changes."""
    envoy = world.envoy(dialect, node=node, text=text).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    for backend in "ba":
        world.control_plane.apply(put=[make.endpoints("x", world.backends.http[backend])])
        traffic.reaches(backend)
    traffic.stop()
    envoy.stop()


def federated(world):
    """A configuration of the relay with an authority, which clients also get from the relay."""
    file = world.logs / "federated.yaml"
    file.write_text(
        "upstream:\n"
        f"  xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}]\n"
        "  authorities: { endpoints.example.com: { fallback_on_reachability_only: true } }\n"
    )
    return ["--config", str(file)]


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only=RELAY)
def envoy_with_the_printed_bootstrap(world, dialect):
    """A plain bootstrap, and one that asks the relay for an authority too."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    world.through_relay()
    word = dialect.name.removeprefix("ads-")
    for node, more in (("plain", []), ("federated", federated(world))):
        text = world.relay.bootstrap("envoy", "--dialect", word, "--node-id", node, "--admin-port", "0", *more)
        follows(world, dialect, node, text)


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only=RELAY)
def envoy_with_two_relays(world, dialect):
    """The first one is away when Envoy starts; it comes, and goes: Envoy has changes all the while."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    first = f"127.0.0.1:{free_port()}"
    second = world.start_relay(world.control_plane.address)
    word = dialect.name.removeprefix("ads-")
    text = second.bootstrap("envoy", "--dialect", word, "--node-id", "two", "--admin-port", "0",
                            "--relay", first, "--relay", second.address)
    world.envoy(dialect, node="two", text=text).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    preferred = world.start_relay(world.control_plane.address, address=first)
    second.kill()
    streams = 'distributary_streams{dialect="delta"} 1' if word == "delta" else 'distributary_streams{dialect="sotw"} 1'
    eventually("it asks the first relay", lambda: streams in preferred.page("/metrics"), within=FAILOVER)
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"])])
    traffic.reaches("b")
    other = world.start_relay(world.control_plane.address, address=second.address)
    preferred.kill()
    eventually("it asks the second relay", lambda: streams in other.page("/metrics"), within=FAILOVER)
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["a"])])
    traffic.reaches("a")


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only=RELAY)
def envoy_by_name_and_by_socket(world, dialect):
    """A relay is found as `localhost`, which may have an IPv6 address at which nobody listens, and at a Unix socket."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    path = world.logs / "relay.sock"
    address = f"127.0.0.1:{free_port()}"
    text = (
        f"listeners: [{{ address: '{address}' }}, {{ address: 'unix:{path}' }}]\n"
        f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
    )
    relay = world.start_relay(None, address=address, text=text, listens=True)
    word = dialect.name.removeprefix("ads-")
    port = address.rpartition(":")[2]
    for node, where in (("named", f"localhost:{port}"), ("local", f"unix:{path}")):
        printed = relay.bootstrap("envoy", "--dialect", word, "--node-id", node, "--admin-port", "0", "--relay", where)
        envoy = world.envoy(dialect, node=node, text=printed).ready()
        traffic = world.traffic()
        traffic.reaches("a")
        traffic.stop()
        envoy.stop()


@scenario("F-11", caches=("linear",), relay_only=RELAY)
def grpc_with_the_printed_bootstrap(world):
    """grpc-go and grpcio read it, with authorities and without."""
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    world.through_relay()
    plain = world.relay.bootstrap("grpc", "--node-id", "plain")
    more = world.relay.bootstrap("grpc", "--node-id", "federated", "--node-cluster", "c", *federated(world))
    for start, text in ((world.grpc_go, plain), (world.grpc_python, more)):
        client = start("xds:///shop", text=text)
        world.watch(client.records["xds:///shop"]).reaches("a")


def secured(world):
    """A relay that admits only clients with a certificate, and the flags of `bootstrap` for such a client."""
    files = {}
    for name, of in (("relay", "127.0.0.1"), ("client", "client.test"), ("stranger", "stranger.test")):
        pair = certificate(world.programs.go, of)
        for kind, text in pair.items():
            files[name, kind] = world.logs / f"{name}.{kind}"
            files[name, kind].write_text(text)
    address = f"127.0.0.1:{free_port()}"
    tls = f"certificate: '{files['relay', 'certificate']}', private_key: '{files['relay', 'key']}', client_ca: '{files['client', 'certificate']}'"
    text = (
        f"listeners: [{{ address: '{address}', tls: {{ {tls} }} }}]\n"
        f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
    )
    world.start_relay(None, address=address, text=text, listens=True)

    def shows(name):
        return ["--config", world.relay.config, "--ca", files["relay", "certificate"],
                "--cert", files[name, "certificate"], "--key", files[name, "key"]]

    return shows


def handshakes(world, result):
    """How many handshakes ended with this result."""
    wanted = f'distributary_tls_handshakes_total{{result="{result}"}} '
    found = [line for line in world.relay.page("/metrics").splitlines() if line.startswith(wanted)]
    return int(found[0].removeprefix(wanted)) if found else 0


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only=RELAY)
def envoy_over_tls(world, dialect):
    """Both sides have certificates; a client with one of another authority is not admitted, and others are not affected."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    shows = secured(world)
    word = dialect.name.removeprefix("ads-")

    def printed(name):
        return world.relay.bootstrap("envoy", "--dialect", word, "--node-id", name, "--admin-port", "0", *shows(name))

    world.envoy(dialect, node="client", text=printed("client")).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.envoy(dialect, node="stranger", text=printed("stranger"))
    eventually("the stranger is refused", lambda: handshakes(world, "bad_certificate") > 0)
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["b"])])
    traffic.reaches("b")
    if not handshakes(world, "full"):
        raise Failed("no handshake was counted")


@scenario("F-11", caches=("linear",), relay_only=RELAY)
def grpc_over_tls(world):
    """The same for grpc-go and grpcio; they read the printed files themselves."""
    world.control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    shows = secured(world)
    records = []
    for start, name in ((world.grpc_go, "go"), (world.grpc_python, "python")):
        client = start("xds:///shop", text=world.relay.bootstrap("grpc", "--node-id", name, *shows("client")))
        records.append(world.watch(client.records["xds:///shop"]))
        records[-1].reaches("a")
    world.control_plane.apply(put=service("shop", world.backends.grpc["b"]))
    for record in records:
        record.reaches("b")
