# SPDX-License-Identifier: Apache-2.0
"""Clients with the bootstrap that they had, in which the relay stands in place of whom they asked (`bootstrap --from`)."""

import json

from peers import resources as make
from peers.control_plane import Secured, certificate
from peers.envoy import ADS_DELTA, ADS_SOTW, bootstrap
from peers.process import Failed, free_port
from scenario import scenario
from scenarios.bootstraps import follows
from scenarios.envoy_http import single_cluster
from scenarios.grpc_traffic import service

RELAY = "it is about the relay"
HTTP2 = """
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: { connection_keepalive: { interval: 30s, timeout: 5s } } }
"""


def envoy_gateway(api_type, port):
    """The bootstrap of Envoy Gateway's proxies, without its own listeners for readiness and statistics."""
    return f"""
node: {{ id: gateway, cluster: gateway }}
admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: 0 }} }} }}
layered_runtime:
  layers: [ {{ name: global, static_layer: {{ envoy.restart_features.use_eds_cache_for_ads: true }} }} ]
dynamic_resources:
  ads_config:
    api_type: {api_type}
    transport_api_version: V3
    grpc_services: [ {{ envoy_grpc: {{ cluster_name: xds_cluster }} }} ]
    set_node_on_first_message_only: true
  lds_config: {{ ads: {{}}, resource_api_version: V3 }}
  cds_config: {{ ads: {{}}, resource_api_version: V3 }}
static_resources:
  clusters:
  - name: xds_cluster
    connect_timeout: 10s
    type: STRICT_DNS{HTTP2}    load_assignment:
      cluster_name: xds_cluster
      endpoints:
      - load_balancing_weight: 1
        lb_endpoints:
        - load_balancing_weight: 1
          endpoint: {{ address: {{ socket_address: {{ address: localhost, port_value: {port} }} }} }}
"""


def istio(api_type, port):
    """What pilot-agent makes of its template, with camel case, in JSON."""
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    options = {"@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
               "explicitHttpConfig": {"http2ProtocolOptions": {}}}
    return json.dumps({
        "node": {"id": "sidecar~10.0.0.1~shop~interop", "cluster": "shop", "metadata": {"ISTIO_VERSION": "1.30.0"}},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
        "dynamicResources": {
            "ldsConfig": {"ads": {}, "initialFetchTimeout": "0s", "resourceApiVersion": "V3"},
            "cdsConfig": {"ads": {}, "initialFetchTimeout": "0s", "resourceApiVersion": "V3"},
            "adsConfig": {"apiType": api_type, "setNodeOnFirstMessageOnly": True, "transportApiVersion": "V3",
                          "grpcServices": [{"envoyGrpc": {"clusterName": "xds-grpc"}}]}},
        "staticResources": {"clusters": [{
            "name": "xds-grpc", "type": "STATIC", "connectTimeout": "1s",
            "typedExtensionProtocolOptions": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
            "loadAssignment": {"clusterName": "xds-grpc", "endpoints": [{"lbEndpoints": [{"endpoint": {"address": address}}]}]},
            "maxRequestsPerConnection": 100000}]},
    })


def sample(api_type, port):
    """The sample of go-control-plane, as the suite's own Envoys have it."""
    dialect = ADS_DELTA if api_type == "DELTA_GRPC" else ADS_SOTW
    return json.dumps(bootstrap(dialect, f"127.0.0.1:{port}", {"id": "sample", "cluster": "interop"}, ()))


@scenario("F-11", (ADS_SOTW, ADS_DELTA), caches=("linear",), relay_only=RELAY)
def envoys_adopt_the_relay(world, dialect):
    """Envoy Gateway's bootstrap, istio's and a sample: each asks nobody, then the relay. The relay's own file comes from the first one."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    port = int(world.control_plane.address.rpartition(":")[2])
    address = f"127.0.0.1:{free_port()}"
    flags = ["--relay", address]
    relay = None
    for written, suffix in ((envoy_gateway, "yaml"), (istio, "json"), (sample, "json")):
        name = written.__name__
        given = world.logs / f"given-{name}.{suffix}"
        given.write_text(written(dialect.api_type, port))
        if relay is None:
            text = world.printed("bootstrap", "envoy", "--from", given, "--relay-config", *flags)
            relay = world.start_relay(None, address=address, text=text.replace("0.0.0.0", "127.0.0.1"), listens=True)
        text = world.printed("bootstrap", "envoy", "--from", given, *flags)
        if f'"port_value": {port}' in text or f"port_value: {port}" in text:
            raise Failed("the control plane is still asked")
        follows(world, dialect, name, text)


def secured_cluster(name, port):
    """The resources of a service that speaks TLS both ways, by the certificate provider `mesh` (A29)."""
    instance = {"instance_name": "mesh"}
    context = {"@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
               "common_tls_context": {"tls_certificate_provider_instance": instance,
                                      "validation_context": {"ca_certificate_provider_instance": instance}}}
    socket = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    listener, routes, _, assignment = service(name, port)
    return [listener, routes, make.cluster(f"{name}-cluster", transport_socket=socket), assignment]


def proxyless(world, start):
    """A proxyless client with mTLS (A29): its certificate provider is kept, so it takes the secured cluster through the relay."""
    files = {}
    for name, of in (("backend", "127.0.0.1"), ("client", "client.test")):
        pair = certificate(world.programs.go, of)
        for kind, text in pair.items():
            files[name, kind] = world.logs / f"{name}.{kind}"
            files[name, kind].write_text(text)
    backend = Secured(world.programs.go, world.logs, "s", files["backend", "certificate"], files["backend", "key"])
    world.control_plane.apply(put=secured_cluster("vault", backend.grpc))
    given = world.logs / "given.json"
    provider = {"certificate_file": str(files["client", "certificate"]), "private_key_file": str(files["client", "key"]),
                "ca_certificate_file": str(files["backend", "certificate"])}
    given.write_text(json.dumps({
        "xds_servers": [{"server_uri": world.control_plane.address, "channel_creds": [{"type": "insecure"}],
                         "server_features": ["xds_v3"]}],
        "node": {"id": "proxyless", "cluster": "interop", "metadata": {"team": "vault"}, "locality": {"zone": "z"}},
        "certificate_providers": {"mesh": {"plugin_name": "file_watcher", "config": provider}},
    }))
    world.through_relay()
    text = world.relay.bootstrap("grpc", "--from", given)
    client = start("xds:///vault", text=text)
    world.watch(client.records["xds:///vault"]).reaches("s")


@scenario("F-11", caches=("linear",), relay_only=RELAY)
def grpc_adopts_the_relay(world):
    proxyless(world, world.grpc_go)


@scenario("F-11", caches=("linear",), relay_only=RELAY, needs="java")
def grpc_java_adopts_the_relay(world):
    proxyless(world, world.grpc_java)
