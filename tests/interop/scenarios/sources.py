# SPDX-License-Identifier: Apache-2.0
"""Envoys read endpoints from another control plane than the rest, and secrets from a folder, each on its one stream."""

import json

from peers import resources as make
from peers.browser import Browser
from peers.control_plane import certificate
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually, free_port
from peers.subscribers import Subscribers
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.envoy_types import shown

RELAY = "a control plane alone has all types or none"
WITH_SECRET = {"name": "tls", "typed_config": {
    "@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "web", "sds_config": make.ADS}]}}}


def write(folder, secret):
    """Moves a file with this secret into its place."""
    new = folder.parent / f"{folder.name}.new"
    new.write_text(json.dumps([secret]))
    new.rename(folder / "web.json")


def with_sources(world, registry, folder):
    """Starts a relay that takes endpoints from the registry, secrets from the folder, and all else from the control plane."""
    server = "{{ server_uri: '{}' }}".format
    return world.start_relay(None, text=f"""
upstream: {{ xds_servers: [{server('http://' + world.control_plane.address)}] }}
sources:
  - {{ name: registry, types: [eds], xds_servers: [{server('http://' + registry.address)}] }}
  - {{ types: [sds], xds_servers: [{server(folder)}] }}
secrets: allow
""")


@scenario("F-18, F-19, G-19", AGGREGATED, caches=("linear",), relay_only=RELAY)
def endpoints_and_secrets_from_elsewhere(world, dialect):
    """Endpoints and a certificate move at their sources; the registry dies, and what the control plane says goes on."""
    registry = world.another_control_plane("registry")
    http, secure = world.backends.http, free_port()
    cluster, endpoints, routes, listener = single_cluster(world, dialect, "a")
    secured = make.listener("secured", secure, make.rds("main", dialect.source()), transport_socket=WITH_SECRET)
    world.control_plane.apply(put=[cluster, routes, listener, secured])
    registry.apply(put=[endpoints])
    folder = world.logs / f"secrets-{dialect.name}"
    folder.mkdir()
    pairs = [certificate(world.programs.go, f"{name}.test") for name in ("first", "second")]
    write(folder, make.secret("web", pairs[0]))

    relay = with_sources(world, registry, folder)
    envoy = world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    eventually("the first certificate is shown", lambda: shown(secure) == pairs[0]["certificate"].strip())
    for backend in "bca":
        registry.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)
    write(folder, make.secret("web", pairs[1]))
    eventually("the second certificate is shown", lambda: shown(secure) == pairs[1]["certificate"].strip())

    registry.stop()
    eventually("the relay has noticed", lambda: f"#registry::http://{registry.address}::state::unreachable" in relay.page("/clusters"))
    world.control_plane.apply(put=[make.routes("main", make.to("x", "/more"), make.to("x"))])
    world.control_plane.apply(put=[make.cluster("y", dialect.source())])
    traffic.reaches("a")

    again = world.another_control_plane("registry", registry.address)
    again.apply(put=[make.endpoints("x", http["b"]), make.endpoints("y", http["c"])])
    traffic.reaches("b")
    eventually("Envoy has cluster y", lambda: "y" in envoy.clusters())
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("c")
    if strangers := {request.get("node") for request in again.requests() if "node" in request and not request.get("relayed")}:
        raise Failed(f"clients other than the relay connected to the registry: {strangers}")


@scenario("F-18, F-19, G-23", caches=("linear",), relay_only=RELAY, needs="chromium")
def the_page_of_sources(world):
    """The page has a row for a source and one for a share of the clients, each with its servers and what is wrong with them."""
    registry, newer = world.another_control_plane("registry"), world.another_control_plane("newer")
    server = "{{ server_uri: 'http://{}' }}".format
    for control_plane in (world.control_plane, newer):
        control_plane.apply(put=[make.cluster("many-0")])
    registry.apply(put=[make.endpoints("many-0", 8080)])
    relay = world.start_relay(None, text=f"""
upstream: {{ xds_servers: [{server(world.control_plane.address)}] }}
canary: {{ share: 100%, xds_servers: [{server(newer.address)}] }}
sources: [{{ name: registry, types: [eds], xds_servers: [{server(registry.address)}] }}]
""")
    clients = Subscribers(world.programs.go, world.logs, 2, 1, [relay.address])
    eventually("all clients have everything", lambda: clients.settled([relay.address]))
    page = Browser(world.programs.chromium, world.logs).page()
    rows = {"#registry": ["source registry", registry.address], "canary 100%": ["canary 100%", newer.address]}
    for view in ("", "#servers"):
        page.go(f"http://{relay.admin}/{view}")
        for row, words in rows.items():
            page.sees(words, f"[data-key='{row}']")
    page.sees(["answering", "Sessions", "2"], "section[data-key='canary 100%']")
    page.sees(["answering", "eds", "1"], "section[data-key='#registry']")

    registry.stop()
    page.sees(["unreachable", "cannot connect"], "section[data-key='#registry']")
    page.sees("answering", "section[data-key='canary 100%']")
    page.go(f"http://{relay.admin}/")
    page.sees(["source registry", "unreachable"], "[data-key='#registry']")
    page.sees(f"{registry.address} is away", "#pulse.wrong")
    if page.errors:
        raise Failed(f"errors in the page: {page.errors}")
