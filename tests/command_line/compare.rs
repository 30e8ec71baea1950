// SPDX-License-Identifier: Apache-2.0
//! `distributary compare`: what it finds, what it does not find, and its exit codes.

use std::path::PathBuf;
use std::time::Duration;

use distributary::get::Contents;
use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::Resource;
use distributary::proto::google::protobuf::Any;
use distributary::xds::{Name, Resource as Content, ResourceParts, TypeUrl};
use serde_json::Value;

use crate::get::{CDS, Outcome, cluster, delta};
use crate::plane::{Call, Plane, soon};
use crate::{PATIENCE, Relay, fails, file, has, now, output, replace, serve};

/// All that a client comes to know of a server: eleven resources of eleven kinds, each named by another one, or listed.
const WORLD: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: edge
  address: { socket_address: { address: 127.0.0.1, port_value: 1 } }
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: edge
        rds: { route_config_name: main, config_source: { ads: {} } }
        http_filters:
        - name: limits
          config_discovery:
            config_source: { ads: {} }
            type_urls: [ type.googleapis.com/envoy.extensions.filters.http.router.v3.Router ]
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
        common_tls_context:
          tls_certificate_sds_secret_configs: [ { name: cert, sds_config: { ads: {} } } ]
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: scoped
  address: { socket_address: { address: 127.0.0.1, port_value: 2 } }
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: scoped
        scoped_routes:
          name: tenants
          scope_key_builder: { fragments: [ { header_value_extractor: { name: x, index: 0 } } ] }
          rds_config_source: { ads: {} }
          scoped_rds: { scoped_rds_config_source: { ads: {} } }
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: main
  vhds: { config_source: { ads: {} } }
  virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: a } } ] } ]
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: tenant
  virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: b } } ] } ]
- "@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration
  name: scope
  route_configuration_name: tenant
  key: { fragments: [ { string_key: one } ] }
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: main/shop.example
  resource:
    "@type": type.googleapis.com/envoy.config.route.v3.VirtualHost
    name: main/shop.example
    domains: [ shop.example ]
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: { eds_config: { ads: {} } }
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: b
  connect_timeout: 1s
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: a
  endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } } } ] } ]
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: cert
  generic_secret: { secret: { inline_string: most-secret-one } }
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: limits
  typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, suppress_envoy_headers: true }
"#;
const LISTENER: &str = r#"- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: further
  address: { socket_address: { address: 127.0.0.1, port_value: 3 } }
"#;

/// What is planted: a text of the world, what takes its place, and the lines that are expected. `@1` and `@2` are the servers.
#[rustfmt::skip]
const PLANTED: [(&str, &str, &[&str]); 12] = [
    ("stat_prefix: edge", "stat_prefix: other",
        &["lds edge differs: # at @1; # at @2", "  filter_chains[0].filters[0].typed_config.stat_prefix: \"edge\" -> \"other\""]),
    ("resources:\n", "ADD", &["lds further differs: nothing at @1; # at @2"]),
    ("resources:\n", "LACK", &["lds scoped differs: # at @1; nothing at @2"]),
    ("route: { cluster: a }", "route: { cluster: c }",
        &["rds main differs: # at @1; # at @2", "  virtual_hosts[0].routes[0].route.cluster: \"a\" -> \"c\""]),
    ("name: tenant\n", "name: gone\n", &["rds tenant differs: # at @1; nothing at @2"]),
    ("string_key: one", "string_key: two",
        &["srds scope differs: # at @1; # at @2", "  key.fragments[0].string_key: \"one\" -> \"two\""]),
    ("domains: [ shop.example ]", "domains: [ shop.example, shop.test ]",
        &["vhds main/shop.example in delta differs: # at @1; # at @2", "  domains[1]: nothing -> \"shop.test\""]),
    ("name: b\n  connect_timeout: 1s", "name: b\n  connect_timeout: 5s",
        &["cds b differs: # at @1; # at @2", "  connect_timeout: \"1s\" -> \"5s\""]),
    ("name: b\n", "name: d\n", &["cds b differs: # at @1; nothing at @2", "cds d differs: nothing at @1; # at @2"]),
    ("address: 10.0.0.1", "address: 10.0.0.2",
        &["eds a differs: # at @1; # at @2",
            "  endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: \"10.0.0.1\" -> \"10.0.0.2\""]),
    ("most-secret-one", "most-secret-two",
        &["sds cert differs: # at @1; # at @2", "  secrets are compared by their hashes"]),
    ("suppress_envoy_headers: true", "start_child_span: true",
        &["ecds limits differs: # at @1; # at @2", "  typed_config.start_child_span: nothing -> true",
            "  typed_config.suppress_envoy_headers: true -> nothing"]),
];

/// A relay that serves a file.
struct Served {
    _relay: Relay,
    address: String,
    file: PathBuf,
}

fn started(upstream: &str) -> (Relay, String) {
    let text = format!(
        "listeners: [{{ address: 127.0.0.1:0 }}]\nadmin: {{ address: 127.0.0.1:0 }}\nsecrets: allow\nupstream: {{ xds_servers: [{{ server_uri: \"{upstream}\" }}] }}\n"
    );
    let sum = |sum: u64, byte: u8| sum * 31 % 1_000_003 + u64::from(byte);
    let name = format!("compare-{:x}.yaml", upstream.bytes().fold(7_u64, sum));
    let (relay, _, address) = serve(&[file(&name, &text).to_str().unwrap()]);
    (relay, address)
}

impl Served {
    fn start(name: &str, text: &str) -> Self {
        let file = file(&format!("compare-{name}-world.yaml"), text);
        let (relay, address) = started(&format!("file://{}", file.display()));
        Self {
            _relay: relay,
            address,
            file,
        }
    }
}

fn compared(one: &str, other: &str, more: &[&str]) -> Outcome {
    let args = ["compare", one, other, "--node-id", "edge-1", "--timeout", "30s"];
    output(&[&args[..], more].concat())
}

/// Returns what was printed without hashes and addresses.
fn plain(out: &str, one: &str, other: &str) -> Vec<String> {
    let is_hash = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let line = |line: &str| {
        let words = line.replace(one, "@1").replace(other, "@2");
        let words = words.split(' ').map(|word| if is_hash(&word) { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    out.lines().map(line).collect()
}

fn planted(text: &str, other: &str) -> String {
    let at = |what: &str| {
        WORLD
            .find(&format!("- \"@type\": type.googleapis.com/envoy.config.{what}"))
            .unwrap()
    };
    let (scoped, routes) = (
        at("listener.v3.Listener\n  name: scoped"),
        at("route.v3.RouteConfiguration"),
    );
    match other {
        "ADD" => format!("{WORLD}{LISTENER}"),
        "LACK" => format!("{}{}", &WORLD[..scoped], &WORLD[routes..]),
        other => WORLD.replacen(text, other, 1),
    }
}

/// Each of twelve differences is found, alone, as the only one, and in both dialects; what is the same again is the same.
#[test]
fn each_planted_difference() {
    let (one, two) = (Served::start("one", WORLD), Served::start("two", WORLD));
    let (same, out, error) = compared(&one.address, &two.address, &[]);
    assert_eq!(same, Some(0), "{out}{error}");
    assert_eq!(out, "the same: 11 resources, for node edge-1, in delta, sotw\n");
    for (text, other, expected) in PLANTED {
        let changed = planted(text, other);
        assert_ne!(changed, WORLD, "{text}");
        replace(&two.file, &changed);
        let end = now() + PATIENCE;
        loop {
            let (code, out, error) = compared(&one.address, &two.address, &["--settle", "200ms"]);
            let told = plain(&out, &one.address, &two.address);
            assert!(!format!("{out}{error}").contains("most-secret"), "{out}{error}");
            if code == Some(1) && told == expected {
                break;
            }
            assert!(now() < end, "{expected:?}: {code:?} {told:#?} {error}");
        }
    }
}

/// A relay says what it was told, in both dialects, in several runs, and as several nodes.
#[test]
fn a_relay_says_the_same() {
    let one = Served::start("origin", WORLD);
    let (_relay, address) = started(&one.address);
    for _ in 0..5 {
        let (code, out, error) = compared(&one.address, &address, &["--node-id", "edge-2"]);
        assert_eq!(code, Some(0), "{out}{error}");
        assert_eq!(out, "the same: 22 resources, for node edge-1, edge-2, in delta, sotw\n");
    }
}

/// While everything changes, a relay is behind all the time and nothing is named; what does not follow is, once, and in JSON too.
#[test]
fn what_stays_different_during_changes() {
    let (origin, still) = (Served::start("moving", WORLD), Served::start("still", WORLD));
    let (_relay, address) = started(&origin.address);
    let path = origin.file.clone();
    let (stop, stopped) = std::sync::mpsc::sync_channel::<()>(0);
    let moving = std::thread::spawn(move || {
        let mut round = 0_u32;
        while stopped.recv_timeout(Duration::from_millis(30)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            round += 1;
            let text = WORLD.replace("stat_prefix: edge", &format!("stat_prefix: \"{round}\""));
            replace(&path, &text.replace("10.0.0.1", &format!("10.0.1.{}", round % 250)));
        }
        round
    });
    let long = ["--for", "3s", "--settle", "1s"];
    let (follows, out, error) = compared(&origin.address, &address, &long);
    let (apart, json, _) = compared(&origin.address, &still.address, &[&long[..], &["-o", "json"]].concat());
    drop(stop);
    assert!(moving.join().unwrap() > 10);
    assert_eq!(follows, Some(0), "{out}{error}");
    assert_eq!(apart, Some(1), "{json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let all = json["differences"].as_array().unwrap();
    let names: Vec<&Value> = all.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "edge"], "{json}");
    assert_eq!([&json["equal"], &json["differences"][0]["over"]], [false; 2]);
}

/// A server that does not answer, that takes minutes, or is not there: nothing can be said.
#[tokio::test]
async fn a_server_that_is_not_reached() {
    let plane = Plane::start().await;
    let address = plane.address.to_string();
    for (other, words) in [("127.0.0.1:1", "Connection refused"), (&address, "raise --timeout")] {
        let (one, other) = (address.clone(), other.to_owned());
        let more = ["--node-id", "edge-1", "--timeout", "2s", "--dialect", "delta"];
        let asked = move || output(&[&["compare", &one, &other], &more[..]].concat());
        let asked = tokio::task::spawn_blocking(asked);
        let (code, out, error) = soon("an answer", asked).await.unwrap();
        assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

/// Answers the first two requests with a cluster, and if it is `bad` with what is none. Returns the node that asks.
async fn answered(plane: &mut Plane, bad: bool) -> (Node, Call) {
    let mut call = plane.call().await;
    let requests = [call.delta().await, call.delta().await];
    for request in &requests {
        let mut response = delta(&request.type_url, "1", &[], &[]);
        if request.type_url == CDS {
            response = delta(CDS, "1", &[("a", cluster("a"))], &[]);
            let resource = Some(Any {
                type_url: "other".to_owned(),
                value: vec![0xff; 3].into(),
            });
            response.resources.extend(bad.then(|| Resource {
                name: "bad".to_owned(),
                version: "1".to_owned(),
                resource,
                ..Resource::default()
            }));
        }
        call.send(&response);
    }
    let [first, _] = requests;
    (first.node.unwrap(), call)
}

/// A resource that is no resource of its type is rejected; the node is that of the bootstrap, and another one at the second server.
#[tokio::test]
async fn what_is_rejected_and_as_whom_is_asked() {
    let (mut one, mut two) = (Plane::start().await, Plane::start().await);
    let grpc = file(
        "compare-grpc.json",
        r#"{"xds_servers": [{"server_uri": "cp:1", "channel_creds": [{"type": "insecure"}]}],
            "node": {"id": "shop", "metadata": {"team": "red"}, "locality": {"zone": "z"}}}"#,
    );
    let envoy = file(
        "compare-envoy.yaml",
        "node: { id: edge, cluster: c }\ndynamic_resources: { ads_config: { grpc_services: [ { envoy_grpc: { cluster_name: x } } ] } }\nstatic_resources: { clusters: [ { name: x } ] }\n",
    );
    let asked = [one.address, two.address].map(|address| address.to_string());
    let asked = tokio::task::spawn_blocking(move || {
        let [grpc, envoy] = [grpc.to_str().unwrap(), envoy.to_str().unwrap()];
        let from = ["--from", grpc, "--relay-from", envoy, "--dialect", "delta"];
        output(&[&["compare", &asked[0], &asked[1], "--settle", "0s"], &from[..]].concat())
    });
    // Their streams stay open meanwhile.
    let (first, _one) = answered(&mut one, true).await;
    let (second, _two) = answered(&mut two, false).await;
    let (code, out, error) = soon("an answer", asked).await.unwrap();
    assert_eq!((code, error.as_str()), (Some(1), "1 response is rejected\n"), "{out}");
    assert!(
        out.starts_with(&format!("cds: {} sends what is rejected: ", one.address)),
        "{out}"
    );
    has(&out, "bad");
    let seen = [&first, &second].map(|node| {
        let metadata = node.metadata.as_ref();
        let team = metadata.is_some_and(|all| all.fields.contains_key("team"));
        (node.id.as_str(), node.cluster.as_str(), team)
    });
    assert_eq!(seen, [("shop", "", true), ("edge", "c", false)]);
}

/// A bootstrap with faults: the error has the file and, where there is one, the line. Nothing is asked.
#[test]
fn faulty_bootstraps() {
    for (text, words) in [
        ("{\n \"xds_servers\": [}", ": 2:"),
        ("{}", "xds_servers"),
        (
            "{\"node\": {\"id\": \"a\"},\n\"xds_servers\": [{\"server_uri\": \"cp:1\", \"channel_creds\": [{\"type\": \"magic\"}]}]}",
            "2",
        ),
        ("node: { id: a }\ndynamic_resources: {}\n", "line 2"),
        (
            "dynamic_resources: { ads_config: { grpc_services: [ { envoy_grpc: { cluster_name: x } } ] } }\nstatic_resources: { clusters: [ { name: x } ] }",
            "it names no node",
        ),
        ("{{ template }}", "template"),
    ] {
        let from = file("compare-faulty.json", text);
        let from = from.to_str().unwrap();
        has(
            &fails(2, &["compare", "127.0.0.1:1", "127.0.0.1:1", "--from", from], from),
            words,
        );
    }
    let from = file("compare-from.json", "{}");
    let from = from.to_str().unwrap();
    let twice = ["--from", from, "--from", from, "--relay-from", from];
    fails(2, &[&["compare", "a:1", "b:1"], &twice[..]].concat(), "");
}

fn encoded(short: &str, json: &str) -> Vec<u8> {
    let tree = Tree::json(json.as_bytes(), Bounds::FILE).unwrap();
    let name = TypeUrl::called(short).unwrap().full_name().to_owned();
    let parsed = Schemas::standard().encode(&name, &tree, "", Unknown::Deny).unwrap();
    parsed.value.to_vec()
}

/// A key that stands in a cluster itself is a difference, and nothing of it is told.
#[test]
fn a_key_in_a_cluster_is_not_shown() {
    let type_url = TypeUrl::called("cds").unwrap();
    let with = |key: &str| {
        let context = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
        let pair = format!("{{\"private_key\": {{\"inline_string\": \"{key}\"}}}}");
        let config =
            format!("{{\"@type\": \"{context}\", \"common_tls_context\": {{\"tls_certificates\": [{pair}]}}}}");
        let socket = format!("{{\"name\": \"tls\", \"typed_config\": {config}}}");
        let parts = ResourceParts {
            type_url: &type_url,
            name: Name::from("a"),
            aliases: Vec::new(),
            passed_on: &[],
            body: &encoded("cds", &format!("{{\"name\": \"a\", \"transport_socket\": {socket}}}")),
            endpoints: None,
            received: now(),
        };
        Content::new(parts, 0)
    };
    let contents = Contents::new(Schemas::standard());
    let told = contents.fields(&type_url, &with("most-secret-one"), &with("most-secret-two"));
    assert_eq!(told, Err("what is secret in it".to_owned()));
}
