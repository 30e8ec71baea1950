// SPDX-License-Identifier: Apache-2.0
//! `distributary bootstrap --from`: the bootstrap that a client has, with the relay in place of whom it asks.

use distributary::config::{Config, Flags};
use serde_json::{Value, json};

use crate::{fails, file, has, output};

/// Returns what is printed, read again, and what is said about it.
fn printed(args: &[&str]) -> (Value, String, String) {
    let (code, printed, notes) = output(args);
    assert_eq!(code, Some(0), "{notes}");
    let read = serde_json::from_str(&printed).ok();
    let read = read.unwrap_or_else(|| serde_saphyr::from_str(&printed).unwrap());
    (read, notes, printed)
}

/// A configuration of a relay that can be used. Who may have what is left to its reader, and said.
fn is_valid(name: &str, text: &str) {
    let config = Config::parse(text, name, &Flags::default()).unwrap();
    for open in &config.warnings {
        assert!(open.contains("whoever reaches 0.0.0.0:15010 is served"), "{open}");
    }
}

const GRPC: &str = r#"{
  "xds_servers": [
    { "server_uri": "cp-1:443", "channel_creds": [ { "type": "tls", "config": { "ca_certificate_file": "/cp/ca.pem" } } ],
      "call_creds": [ { "type": "jwt_token_file", "config": { "jwt_token_file": "/token" } } ],
      "server_features": [ "xds_v3", "fail_on_data_errors" ] },
    { "server_uri": "cp-2:443", "channel_creds": [ { "type": "tls" } ], "server_features": [ "trusted_xds_server" ] }
  ],
  "authorities": {
    "a.example.com": { "xds_servers": [ { "server_uri": "other:1", "channel_creds": [ { "type": "insecure" } ] } ] },
    "b.example.com": { "client_listener_resource_name_template": "xdstp://b.example.com/x/%s" }
  },
  "node": { "id": "shop-7", "cluster": "shop", "metadata": { "team": [ 1, "two" ] }, "locality": { "zone": "z" } },
  "certificate_providers": {
    "mesh": { "plugin_name": "file_watcher", "config": { "certificate_file": "/id.pem", "refresh_interval": "600s" } }
  },
  "server_listener_resource_name_template": "grpc/server?xds.resource.listening_address=%s",
  "of_tomorrow": 12345678901234567
}"#;

/// Whom a gRPC client asks is replaced, everywhere; everything else stays, unknown fields and what concerns the client itself too.
#[test]
fn of_a_grpc_client() {
    let path = file("adopted.json", GRPC);
    let from = ["bootstrap", "grpc", "--from", path.to_str().unwrap()];
    #[rustfmt::skip]
    let relays = ["--relay", "https://relay-1:15010", "--relay", "https://relay-2:15010", "--ca", "/ca.pem"];
    let (found, notes, _) = printed(&[&from[..], &relays].concat());
    let mut expected: Value = serde_json::from_str(GRPC).unwrap();
    let tls = json!([{"type": "tls", "config": {"ca_certificate_file": "/ca.pem"}}]);
    let servers = |more: Value| -> Value {
        let one = |uri: &str| {
            let mut server = json!({"server_uri": uri, "channel_creds": tls});
            let more = more.as_object().unwrap().clone();
            server.as_object_mut().unwrap().extend(more);
            server
        };
        json!([one("relay-1:15010"), one("relay-2:15010")])
    };
    expected["xds_servers"] = servers(json!({
        "call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/token"}}],
        "server_features": ["fail_on_data_errors", "trusted_xds_server", "xds_v3"],
    }));
    expected["authorities"]["a.example.com"]["xds_servers"] = servers(json!({}));
    assert_eq!(found, expected);
    for note in [
        "xds_servers: relay-1:15010, relay-2:15010 in place of cp-1:443, cp-2:443\n",
        "xds_servers: channel_creds tls in place of tls\n",
        "xds_servers: call_creds go to the relay, which does not pass them on\n",
        "xds_servers: fail_on_data_errors stays, and the relay needs it as well (--relay-config)\n",
        "authorities.a.example.com.xds_servers: relay-1:15010, relay-2:15010 in place of other:1\n",
        "node: stays; the control plane sees the relay's own node instead",
    ] {
        has(&notes, note);
    }

    let (relay, _, text) = printed(&[&from[..], &relays, &["--relay-config"]].concat());
    is_valid("adopted-relay.yaml", &text);
    assert_eq!(relay["listeners"], json!([{"address": "0.0.0.0:15010"}]));
    let given: Value = serde_json::from_str(GRPC).unwrap();
    for key in ["xds_servers", "authorities", "server_listener_resource_name_template"] {
        assert_eq!(relay["upstream"][key], given[key], "{key}");
    }
    assert!(relay["upstream"].get("node").is_none() && relay["upstream"].get("certificate_providers").is_none());
}

/// What cannot be replaced is an error with the file and the line, and nothing is printed.
#[test]
fn of_what_is_no_bootstrap() {
    let refused = |client: &str, name: &str, text: &str, words: &str| {
        let path = file(name, text);
        let path = path.to_str().unwrap();
        for more in [&[][..], &["--relay-config"]] {
            let args = [&["bootstrap", client, "--from", path, "--relay", "relay:1"], more].concat();
            has(&fails(1, &args, path), words);
        }
    };
    refused("grpc", "adopted-broken.json", "{\n  \"xds_servers\": [\n}", " 3:1: ");
    let yaml = "xds_servers:\n  - {server_uri: 'cp:1'}";
    refused("grpc", "adopted-yaml.json", yaml, " 1:1: expected a value");
    refused("grpc", "adopted-none.json", "{\"node\": {}}", "xds_servers");
    let unknown = "{\"xds_servers\": [{\n\"server_uri\": \"cp:1\",\n\"channel_creds\": [{\"type\": \"magic\"}]}]}";
    refused("grpc", "adopted-creds.json", unknown, ":3:");
    refused("envoy", "adopted-broken.yaml", "node: {id: x\nadmin: ]", "2");
    let template = "{\n  \"node\": {\n    \"id\": {{ .nodeID }},\n    {{ if .x }}";
    let words = "if it is a template, fill it in first";
    refused("envoy", "adopted-template.json", template, words);
    let fixed = "node: {id: x}\nstatic_resources: {}";
    refused("envoy", "adopted-static.yaml", fixed, "name a cluster to ask");
    let missing =
        "node: {}\ndynamic_resources:\n  ads_config:\n    grpc_services: [{envoy_grpc: {cluster_name: cp}}]\n";
    refused(
        "envoy",
        "adopted-missing.yaml",
        missing,
        "line 4: the cluster `cp` is asked",
    );
    let google = "dynamic_resources:\n  ads_config: {grpc_services: [{google_grpc: {target_uri: 'cp:1'}}]}\n";
    let words = "line 2: dynamic_resources.ads_config: google_grpc";
    refused("envoy", "adopted-google.yaml", google, words);

    let path = file("adopted-token.json", GRPC);
    let args = [
        "bootstrap",
        "grpc",
        "--from",
        path.to_str().unwrap(),
        "--relay",
        "relay:1",
    ];
    fails(1, &args, "line 4: xds_servers: call_creds are sent over TLS only");
}

/// As Envoy Gateway writes it, shortened.
const ENVOY: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 19000 } } }
layered_runtime: { layers: [ { name: global, static_layer: { envoy.restart_features.use_eds_cache_for_ads: true } } ] }
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [ { envoy_grpc: { cluster_name: xds_cluster }, initial_metadata: [ { key: x-tenant, value: t } ] } ]
    set_node_on_first_message_only: true
  lds_config: { ads: {}, resource_api_version: V3 }
  cds_config: { ads: {}, resource_api_version: V3 }
static_resources:
  clusters:
  - connect_timeout: 10s
    type: STRICT_DNS
    load_assignment:
      cluster_name: xds_cluster
      endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: envoy-gateway, port_value: 18000 } } } } ] } ]
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: { connection_keepalive: { interval: 30s, timeout: 5s } } }
    name: xds_cluster
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: envoy-gateway
        common_tls_context:
          tls_certificates: [ { certificate_chain: { filename: /certs/tls.crt }, private_key: { filename: /certs/tls.key } } ]
          validation_context: { trusted_ca: { filename: /certs/ca.crt } }
  - name: local
    type: STATIC
    load_assignment: { cluster_name: local, endpoints: [ { lb_endpoints: [ { endpoint: { address: { pipe: { path: /x } } } } ] } ] }
cluster_manager:
  load_stats_config: { api_type: GRPC, transport_api_version: V3, grpc_services: [ { envoy_grpc: { cluster_name: xds_cluster } } ] }
"#;

/// The clusters that an Envoy asks get the addresses and the TLS of the relay; everything else stays, the dialect too.
#[test]
fn of_an_envoy() {
    let path = file("adopted.yaml", ENVOY);
    let from = ["bootstrap", "envoy", "--from", path.to_str().unwrap()];
    let (found, notes, _) = printed(&[&from[..], &["--relay", "relay:15010"]].concat());
    let mut expected: Value = serde_saphyr::from_str(ENVOY).unwrap();
    let cluster = &mut expected["static_resources"]["clusters"][0];
    cluster.as_object_mut().unwrap().remove("transport_socket");
    cluster["dns_lookup_family"] = json!("ALL");
    let address = json!({"socket_address": {"address": "relay", "port_value": 15010}});
    cluster["load_assignment"]["endpoints"] =
        json!([{"priority": 0, "lb_endpoints": [{"endpoint": {"address": address}}]}]);
    assert_eq!(found, expected);
    for note in [
        "cluster xds_cluster: relay:15010 in place of envoy-gateway:18000\n",
        "cluster xds_cluster: plaintext in place of TLS\n",
        "dynamic_resources.ads_config: the header x-tenant goes to the relay, which does not pass it on\n",
        "cluster_manager.load_stats_config: asks the cluster xds_cluster, and the relay refuses load reports",
    ] {
        has(&notes, note);
    }

    #[rustfmt::skip]
    let relays = ["--relay", "https://relay:1", "--relay", "https://relay:2", "--ca", "/ca.pem"];
    let (found, _, _) = printed(&[&from[..], &relays].concat());
    let cluster = &found["static_resources"]["clusters"][0];
    assert_eq!(cluster["transport_socket"]["typed_config"]["sni"], "relay");
    assert!(cluster["health_checks"][0]["tcp_health_check"].is_object());

    let (relay, _, text) = printed(&[&from[..], &["--relay", "relay:15010", "--relay-config"]].concat());
    is_valid("adopted-envoy-relay.yaml", &text);
    let files = json!({"ca_certificate_file": "/certs/ca.crt", "certificate_file": "/certs/tls.crt",
        "private_key_file": "/certs/tls.key", "server_name": "envoy-gateway"});
    let server = json!({"server_uri": "envoy-gateway:18000", "channel_creds": [{"type": "tls", "config": files}]});
    assert_eq!(relay["upstream"]["xds_servers"], json!([server]));
}

/// JSON as istio's agent fills it in: names in camel case are read, and a cluster for secrets of the machine is left alone.
#[test]
fn of_an_envoy_in_json() {
    let text = r#"{
  "node": {"id": "sidecar~10.0.0.1~shop~x", "metadata": {"ISTIO_VERSION": "1.30"}},
  "dynamicResources": {
    "ldsConfig": {"ads": {}, "resourceApiVersion": "V3"},
    "adsConfig": {"apiType": "DELTA_GRPC", "grpcServices": [{"envoyGrpc": {"clusterName": "xds-grpc"}}]}
  },
  "staticResources": {"clusters": [
    {"name": "sds-grpc", "type": "STATIC", "loadAssignment": {"clusterName": "sds-grpc",
      "endpoints": [{"lbEndpoints": [{"endpoint": {"address": {"pipe": {"path": "./sds"}}}}]}]}},
    {"name": "xds-grpc", "type": "STATIC", "loadAssignment": {"clusterName": "xds-grpc",
      "endpoints": [{"lbEndpoints": [{"endpoint": {"address": {"pipe": {"path": "./XDS"}}}}]}]}}
  ]},
  "configSources": [{"authorities": [{"name": "a.example.com"}],
    "apiConfigSource": {"apiType": "AGGREGATED_GRPC", "grpcServices": [{"envoyGrpc": {"clusterName": "xds-grpc"}}]}}]
}"#;
    let path = file("adopted-istio.json", text);
    let args = [
        "bootstrap",
        "envoy",
        "--from",
        path.to_str().unwrap(),
        "--relay",
        "unix:/run/relay",
    ];
    let (found, notes, printed_text) = printed(&args);
    assert!(printed_text.starts_with('{'), "{printed_text}");
    let given: Value = serde_json::from_str(text).unwrap();
    let first = |of: &Value| of["staticResources"]["clusters"][0].clone();
    assert_eq!(first(&found), first(&given));
    let endpoint = &found["staticResources"]["clusters"][1]["load_assignment"]["endpoints"][0]["lb_endpoints"][0];
    assert_eq!(endpoint["endpoint"]["address"]["pipe"]["path"], "/run/relay");
    has(&notes, "cluster xds-grpc: unix:/run/relay in place of unix:./XDS\n");
    let (relay, _, text) = printed(&[&args[..], &["--relay-config"]].concat());
    is_valid("adopted-istio-relay.yaml", &text);
    assert_eq!(relay["listeners"][0]["address"], "unix:/run/relay");
    let server = json!([{"server_uri": "unix:./XDS", "channel_creds": [{"type": "insecure"}]}]);
    assert_eq!(relay["upstream"]["xds_servers"], server);
    assert_eq!(relay["upstream"]["authorities"]["a.example.com"]["xds_servers"], server);
}
