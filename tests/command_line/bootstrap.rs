// SPDX-License-Identifier: Apache-2.0
//! `distributary bootstrap`, and the bootstrap that gRPC clients on the same machine find.

use distributary::config::{Bootstrap, Config, Credentials, Flags, Reach, Supply, Tls};

use crate::{Relay, fails, file, has, output, prints, program, ran};

/// The bootstrap for gRPC clients can be read by the relay itself: it has no unknown fields, the relay in every list, and the
/// authorities of the relay's configuration.
#[test]
fn the_bootstrap_for_grpc_is_one() {
    let text = "upstream:
  xds_servers: [{server_uri: cp:1}]
  authorities:
    a.example.com: {xds_servers: [{server_uri: other:1}], fallback_on_reachability_only: true}
    b.example.com: {client_listener_resource_name_template: 'xdstp://b.example.com/x/%s'}
  client_default_listener_resource_name_template: xdstp://a.example.com/envoy.config.listener.v3.Listener/%s
  server_listener_resource_name_template: server/%s
";
    let config = file("federated.yaml", text);
    let relays = ["--relay", "https://relay-1:15010", "--relay", "https://[::1]:15010"];
    let grpc = [
        "bootstrap",
        "grpc",
        "--config",
        config.to_str().unwrap(),
        "--ca",
        "/ca.pem",
    ];
    let node = ["--node-id", "n\"1", "--node-cluster", "c"];
    let printed = prints(&[&grpc[..], &node, &relays].concat());
    let flags = Flags {
        bootstrap: Some(Bootstrap::Text(printed)),
        ..Flags::default()
    };
    let read = Config::load(None, &flags).unwrap();
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    assert_eq!((read.node.id.as_str(), read.node.cluster.as_str()), ("n\"1", "c"));
    let upstream = read.upstream;
    let uris: Vec<&str> = upstream.servers.iter().map(|server| server.uri.as_str()).collect();
    assert_eq!(uris, ["relay-1:15010", "[::1]:15010"]);
    let Some(Reach::Grpc(grpc)) = upstream.servers.first().map(|server| &server.reach) else {
        panic!("a server that streams");
    };
    let tls = Tls {
        authorities: Some(Supply::Files("/ca.pem".into())),
        ..Tls::default()
    };
    assert_eq!(grpc.credentials, Credentials::Tls(tls));
    let usual = "xdstp://a.example.com/envoy.config.listener.v3.Listener/%s";
    for (name, only, template) in [
        ("a.example.com", true, usual),
        ("b.example.com", false, "xdstp://b.example.com/x/%s"),
    ] {
        let authority = &upstream.authorities[name];
        assert_eq!(
            (&authority.servers[..], authority.reachability_only),
            (&[0, 1][..], only)
        );
        assert_eq!(authority.client_listener_resource_name_template, template);
    }
    assert_eq!(upstream.authorities.len(), 2);
    let template = upstream.client_default_listener_resource_name_template;
    assert_eq!(template.as_deref(), Some(usual));
    let template = upstream.server_listener_resource_name_template;
    assert_eq!(template.as_deref(), Some("server/%s"));
}

/// The bootstrap for Envoy is valid YAML, whatever the names; the interop suite starts real Envoys with it.
#[test]
fn the_bootstrap_for_envoy_is_yaml() {
    let read = |more: &[&str]| {
        let args = [
            "bootstrap",
            "envoy",
            "--node-id",
            "{\"x\": y}",
            "--node-cluster",
            "a: b # c",
        ];
        let printed = prints(&[&args[..], more].concat());
        serde_saphyr::from_str::<serde_json::Value>(&printed).unwrap()
    };
    let relays = ["--relay", "127.0.0.1:15010", "--relay", "unix:/run/x.sock"];
    let plain = read(&[&relays[..], &["--dialect", "sotw"]].concat());
    assert_eq!(plain["node"]["id"], "{\"x\": y}");
    assert_eq!(plain["node"]["cluster"], "a: b # c");
    assert_eq!(plain["dynamic_resources"]["ads_config"]["api_type"], "GRPC");
    assert!(plain.get("config_sources").is_none());
    let cluster = &plain["static_resources"]["clusters"][0];
    assert_eq!(cluster["type"], "STATIC");
    assert!(cluster.get("transport_socket").is_none());
    let endpoints = &cluster["load_assignment"]["endpoints"];
    let priorities = [0, 1].map(|at| endpoints[at]["priority"].clone());
    assert_eq!(priorities, [0, 1]);
    let address = |at: usize| &endpoints[at]["lb_endpoints"][0]["endpoint"]["address"];
    assert_eq!(address(0)["socket_address"]["port_value"], 15010);
    assert_eq!(address(1)["pipe"]["path"], "/run/x.sock");
    assert!(cluster["health_checks"][0]["tcp_health_check"].is_object(), "{cluster}");
    let service = |text: &serde_json::Value| text["grpc_services"][0]["envoy_grpc"].clone();
    let ads = service(&plain["dynamic_resources"]["ads_config"]);
    assert_eq!(ads["retry_policy"]["retry_back_off"]["max_interval"], "16s");

    let text = "upstream: {xds_servers: [{server_uri: cp:1}], authorities: {a: {}, b: {}}}";
    let config = file("two-authorities.yaml", text);
    let federated = read(&["--relay", "https://relay", "--config", config.to_str().unwrap()]);
    assert_eq!(federated["dynamic_resources"]["ads_config"]["api_type"], "DELTA_GRPC");
    let source = &federated["config_sources"][0];
    assert_eq!(source["authorities"], serde_json::json!([{"name": "a"}, {"name": "b"}]));
    assert_eq!(source["api_config_source"]["api_type"], "AGGREGATED_DELTA_GRPC");
    let cluster = &federated["static_resources"]["clusters"][0];
    let family = ["type", "dns_lookup_family"].map(|key| cluster[key].clone());
    assert_eq!(family, ["STRICT_DNS", "ALL"]);
    assert!(cluster.get("health_checks").is_none(), "there is nothing to turn to");
    assert_eq!(service(&source["api_config_source"]), ads);
    assert_eq!(cluster["transport_socket"]["typed_config"]["sni"], "relay");
}

/// The relay's configuration determines whether the bootstrap uses TLS and a client certificate.
#[test]
fn the_transport_follows_the_listener() {
    let config = file(
        "secure-listeners.yaml",
        "listeners:
  - address: 0.0.0.0:1
  - {address: '0.0.0.0:2', tls: {certificate: c.pem, private_key: k.pem}}
  - {address: '0.0.0.0:3', tls: {certificate: c.pem, private_key: k.pem, client_ca: ca.pem}}
upstream: {xds_servers: [{server_uri: cp:1}]}
",
    );
    let print = |kind: &str, more: &[&str]| {
        let args = [&["bootstrap", kind, "--config", config.to_str().unwrap()], more].concat();
        let (code, printed, error) = output(&args);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{args:?}");
        serde_saphyr::from_str::<serde_json::Value>(&printed).unwrap()
    };
    let creds = |more: &[&str]| print("grpc", more)["xds_servers"][0]["channel_creds"][0].clone();
    let insecure = serde_json::json!({"type": "insecure"});
    assert_eq!(creds(&["--relay", "relay:1"]), insecure);
    assert_eq!(creds(&["--relay", "http://relay:2"]), insecure, "the scheme says more");
    assert_eq!(creds(&["--relay", "relay:2"]), serde_json::json!({"type": "tls"}));
    let shown = ["--relay", "relay:3", "--ca", "a", "--cert", "b", "--key", "c"];
    let files = serde_json::json!({"ca_certificate_file": "a", "certificate_file": "b", "private_key_file": "c"});
    assert_eq!(creds(&shown), serde_json::json!({"type": "tls", "config": files}));

    let socket = |more: &[&str]| print("envoy", more)["static_resources"]["clusters"][0]["transport_socket"].clone();
    assert!(socket(&["--relay", "relay:1"]).is_null());
    let context = &socket(&shown)["typed_config"]["common_tls_context"];
    let files = serde_json::json!([{"certificate_chain": {"filename": "b"}, "private_key": {"filename": "c"}}]);
    assert_eq!(context["tls_certificates"], files);
    assert_eq!(context["validation_context"]["trusted_ca"]["filename"], "a");
    let bare = socket(&["--relay", "relay:2"])["typed_config"]["common_tls_context"].clone();
    assert!(bare.get("tls_certificates").is_none());

    let args = [
        "bootstrap",
        "grpc",
        "--config",
        config.to_str().unwrap(),
        "--relay",
        "relay:3",
    ];
    fails(
        1,
        &args,
        "`relay:3` asks clients for a certificate (client_ca); add --cert and --key",
    );
}

/// Not all gRPC clients can speak to a Unix socket of the relay: the bootstrap is printed with a warning.
#[test]
fn a_unix_socket_is_for_some() {
    let of = |client: &str| output(&["bootstrap", client, "--relay", "unix:/run/relay"]);
    let (code, out, error) = of("grpc");
    assert_eq!(code, Some(0));
    assert!(out.contains("\"unix:/run/relay\""), "{out}");
    assert!(error.contains("warning: ") && error.contains("`:authority`"), "{error}");
    let (code, _, error) = of("envoy");
    assert_eq!((code, error.as_str()), (Some(0), ""));
}

/// Options that would give an unusable bootstrap are refused with a clear error.
#[test]
#[rustfmt::skip]
fn bad_bootstraps_are_not_printed() {
    for (args, said) in [
        (&["grpc", "--relay", "cp"][..], "--relay: `cp` is not a server; write host:port"),
        (&["grpc", "--relay", "file:///x"], "--relay: `file:///x` is not a gRPC server"),
        (&["grpc", "--relay", "a:1", "--relay", "https://b"], "must either all use https or none"),
        (&["grpc", "--relay", "a:1", "--ca", "x"], "--ca has no effect without TLS"),
        (&["grpc", "--relay", "a:1", "--cert", "x", "--key", "y"], "--cert has no effect without TLS"),
        (&["envoy", "--relay", "a:1", "--relay", "unix:/x"], "cannot mix host names and unix:"),
        (&["envoy", "--relay", "https://a", "--relay", "https://b"], "expects the same host name for all relays"),
        (&["grpc", "--relay", "a:1", "--config", "/nowhere/x"], "/nowhere/x: cannot be read"),
    ] {
        fails(1, &[&["bootstrap"], args].concat(), said);
    }
}

/// The bootstrap of gRPC clients replaces a missing `upstream`, the file before the text; unknown fields in it are a warning,
/// at the start and here.
#[test]
fn the_bootstrap_of_clients_is_found() {
    let empty = file("empty.yaml", "chunk: 1MiB\n");
    let text = r#"{"xds_servers": [{"server_uri": "cp:1", "colour": "red"}]}"#;
    let bootstrap = file("found.json", text);
    let validate = |path: &str, text: &str| {
        let mut command = program(&["validate", empty.to_str().unwrap()]);
        ran(command
            .env("GRPC_XDS_BOOTSTRAP", path)
            .env("GRPC_XDS_BOOTSTRAP_CONFIG", text))
    };
    let (code, out, error) = validate(bootstrap.to_str().unwrap(), "{");
    assert_eq!((code, out.as_str()), (Some(0), "OK\n"), "{error}");
    assert!(error.starts_with("warning: "), "{error}");
    has(
        &error,
        &format!("{}:1:41: xds_servers[0].colour: unknown field", bootstrap.display()),
    );
    let (code, _, error) = validate("", r#"{"xds_servers": []}"#);
    assert_eq!(code, Some(1));
    has(&error, "GRPC_XDS_BOOTSTRAP_CONFIG: xds_servers: no control plane");

    let mut command = program(&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.env("GRPC_XDS_BOOTSTRAP", &bootstrap);
    let relay = Relay::start(command);
    assert!(relay.line("xds_servers[0].colour").contains("level=warn"));
}
