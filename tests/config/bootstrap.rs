// SPDX-License-Identifier: Apache-2.0
//! Bootstraps in the configuration, in a file of their own and in the environment: what they mean, and the errors of bad ones.

use std::path::PathBuf;

use distributary::config::{Bootstrap, Config, Flags, Upstream};

use crate::{first, good, parse};

/// A bootstrap as gRPC clients get it, with tabs, and with fields that the relay knows and some that it does not.
const CLIENTS: &str = r#"{
	"xds_servers": [
		{
			"server_uri": "cp.example.com:443",
			"channel_creds": [{"type": "google_default", "config": {"a": 1}}, {"type": "tls", "config": {}}],
			"call_creds": [{"type": "oauth"}, {"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}],
			"server_features": ["xds_v3", "warp", "resource_timer_is_transient_failure"],
			"colour": {"red": [1, 2]}
		}
	],
	"node": {
		"id": "bootstrap-id", "cluster": "bootstrap-cluster", "build": 7,
		"locality": {"region": "r", "zone": "z", "sub_zone": "s", "planet": "p"},
		"metadata": {"A": "theirs", "B": "theirs"}
	},
	"authorities": {"x.example.com": {"xds_servers": [], "fallback_on_reachability_only": true}, "": {}},
	"certificate_providers": {"default": {"plugin_name": "file_watcher", "config": {"refresh_interval": "600s"}}},
	"client_default_listener_resource_name_template": "xdstp://x.example.com/envoy.config.listener.v3.Listener/%s",
	"server_listener_resource_name_template": "server/%s",
	"mystery": "m"
}
"#;

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn with(text: &str, bootstrap: Bootstrap) -> Result<Config, String> {
    let flags = Flags {
        bootstrap: Some(bootstrap),
        ..Flags::default()
    };
    Config::parse(text, "relay.yaml", &flags).map_err(|error| error.to_string())
}

fn uris(upstream: &Upstream) -> Vec<&str> {
    upstream.servers.iter().map(|server| server.uri.as_str()).collect()
}

/// By path, by the variable with a path and by the variable with the text: the same result, and a warning for unknown fields.
#[test]
fn the_bootstrap_of_clients_is_taken_as_it_is() {
    let path = file("clients.json", CLIENTS);
    let (shown, text) = (path.display().to_string(), Bootstrap::Text(CLIENTS.to_owned()));
    for (config, origin) in [
        (good(&format!("upstream: {shown}\n")), shown.as_str()),
        (with("", Bootstrap::File(path)).unwrap(), &shown),
        (with("", text).unwrap(), "GRPC_XDS_BOOTSTRAP_CONFIG"),
    ] {
        assert_eq!(uris(&config.upstream), ["cp.example.com:443"]);
        assert_eq!(first(&config).token, Some("/t".into()));
        let server = &config.upstream.servers[0];
        assert!(server.features.resource_timer_is_transient_error);
        let authority = &config.upstream.authorities["x.example.com"];
        assert_eq!((&authority.servers[..], authority.reachability_only), (&[0][..], true));
        let template = &config.upstream.authorities[""].client_listener_resource_name_template;
        assert_eq!(template, "xdstp:///envoy.config.listener.v3.Listener/%s");
        let template = config.upstream.server_listener_resource_name_template;
        assert_eq!(template.as_deref(), Some("server/%s"));
        assert_eq!(config.node.id, "bootstrap-id");
        let warnings = [
            ":6:28: xds_servers[0].call_creds[0]: `oauth` is not supported; write jwt_token_file; ignored",
            ":7:34: xds_servers[0].server_features: `warp` is not a server feature; write fail_on_data_errors, \
             ignore_resource_deletion, resource_timer_is_transient_error or trusted_xds_server; ignored",
            ":8:4: xds_servers[0].colour: unknown field `colour`; ignored",
            ":12:57: node.build: unknown field `build`; ignored",
            ":13:61: node.locality.planet: unknown field `planet`; ignored",
            ":20:2: mystery: unknown field `mystery`; ignored",
        ];
        let expected: Vec<_> = warnings.iter().map(|warning| format!("{origin}{warning}")).collect();
        assert_eq!(config.warnings, expected);
    }
}

/// The same in the relay's own file: an unknown field is an error at its place.
#[test]
fn a_pasted_bootstrap_is_strict() {
    let said = parse(&format!("upstream: {}", CLIENTS.replace('\n', "\n  "))).unwrap_err();
    for line in [
        "relay.yaml:20:4: upstream.mystery: unknown field `mystery`, expected one of xds_servers, authorities, node, \
         client_default_listener_resource_name_template, server_listener_resource_name_template, certificate_providers, \
         allowed_grpc_services",
        "relay.yaml:13:63: upstream.node.locality.planet: unknown field `planet`, expected one of region, zone, sub_zone",
        "relay.yaml:6:30: upstream.xds_servers[0].call_creds[0]: `oauth` is not supported; write jwt_token_file",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n\n{said}");
    }
    assert_eq!(said.lines().count(), 6, "{said}");
}

/// The relay's own node, field by field, over that of its bootstrap.
#[test]
fn the_own_node_wins() {
    let own = "node: {cluster: own, locality: {zone: own}, metadata: {B: own, C: own}}\n";
    let node = with(own, Bootstrap::Text(CLIENTS.to_owned())).unwrap().node;
    let locality = node.locality.unwrap();
    let place = [locality.region, locality.zone, locality.sub_zone].join("/");
    assert_eq!([&*node.id, &*node.cluster, &*place], ["bootstrap-id", "own", "r/own/s"]);
    let fields = node.metadata.unwrap().fields.into_iter();
    let metadata: Vec<String> = fields
        .map(|(key, value)| format!("{key}={:?}", value.kind.unwrap()))
        .collect();
    let expected = [
        r#"A=StringValue("theirs")"#,
        r#"B=StringValue("own")"#,
        r#"C=StringValue("own")"#,
    ];
    assert_eq!(metadata, expected);
}

/// The configuration wins over the environment of gRPC clients.
#[test]
fn the_environment_stands_in_only() {
    let configured = "upstream: {xds_servers: [{server_uri: own:1}]}";
    let config = with(configured, Bootstrap::Text("{".to_owned())).unwrap();
    assert_eq!(uris(&config.upstream), ["own:1"]);
    let flags = Flags {
        upstream: vec!["flag:1".to_owned()],
        bootstrap: Some(Bootstrap::Text("{".to_owned())),
        ..Flags::default()
    };
    let config = Config::parse("", "relay.yaml", &flags).unwrap();
    assert_eq!(uris(&config.upstream), ["flag:1"]);
    // A flag replaces the list and keeps the rest of the bootstrap.
    let authorities = "upstream: {xds_servers: [{server_uri: own:1}], authorities: {a: {}}}";
    let upstream = Config::parse(authorities, "relay.yaml", &flags).unwrap().upstream;
    assert_eq!((uris(&upstream), upstream.authorities.len()), (vec!["flag:1"], 1));
}

/// Errors in a bootstrap outside of the configuration name its place.
#[test]
fn bad_bootstraps_elsewhere() {
    let advice = "no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
    #[rustfmt::skip]
    let rows = [
        ("", format!("xds_servers: {advice}")),
        ("{}", format!("xds_servers: {advice}")),
        (r#"{"xds_servers": []}"#, format!("xds_servers: {advice}")),
        (r#"{"xds_servers": [{}]}"#, "1:18: xds_servers[0]: missing field `server_uri`".to_owned()),
        (r#"{"xds_servers": [{"server_uri": ""}]}"#,
            "1:33: xds_servers[0].server_uri: `` is not a server; write host:port, such as cp.example.com:18000".to_owned()),
        (r#"{"xds_servers": 5}"#, "1:17: xds_servers: expected a list, found `5`".to_owned()),
        ("{\"node\": {},\n \"node\": {}}",
            "2:2: the key `node` is there twice, first in line 1; remove one".to_owned()),
    ];
    for (text, said) in rows {
        let place = [": ", ":"][usize::from(said.starts_with(|c: char| c.is_ascii_digit()))];
        let expected = format!("GRPC_XDS_BOOTSTRAP_CONFIG{place}{said}");
        let error = with("", Bootstrap::Text(text.to_owned())).unwrap_err();
        assert_eq!(error, expected, "{text}");
    }
    let missing = "the bootstrap /nowhere/b.json cannot be read: No such file";
    for (said, words) in [
        (
            with("", Bootstrap::File("/nowhere/b.json".into())),
            format!(" GRPC_XDS_BOOTSTRAP: {missing}"),
        ),
        (parse("upstream: /nowhere/b.json"), format!("1:11: upstream: {missing}")),
        (
            parse("upstream: [5]"),
            "1:11: upstream: expected a single value, or a mapping, found a list".to_owned(),
        ),
    ] {
        let said = said.unwrap_err();
        assert!(said.starts_with(&format!("relay.yaml:{words}")), "{said}");
    }
}

/// A file that names itself as its bootstrap.
#[test]
fn a_bootstrap_that_leads_back() {
    let path = file("cyclic.yaml", "");
    std::fs::write(&path, format!("upstream: {}\n", path.display())).unwrap();
    let said = Config::load(Some(&path), &Flags::default()).unwrap_err().to_string();
    let path = path.display();
    assert_eq!(
        said,
        format!("{path}:1:11: upstream: {path} is this file itself; write the path of a bootstrap")
    );
}

/// Names, templates and servers that cannot be intended.
#[test]
#[rustfmt::skip]
fn bad_authorities_and_lists() {
    for (text, said) in [
        ("xds_servers: [{server_uri: a:1}, {server_uri: a:1}]", "1:58: upstream.xds_servers[1].server_uri: `a:1` is in the \
            list twice; remove one"),
        ("xds_servers: [{server_uri: a:1}], authorities: {b: {client_listener_resource_name_template: 'xdstp://a/x/%s'}}",
            "1:104: upstream.authorities.b.client_listener_resource_name_template: `xdstp://a/x/%s` is not under its \
            authority; it must begin with xdstp://b/"),
        ("xds_servers: [{server_uri: a:1}], client_default_listener_resource_name_template: 'xdstp://c/x/%s'", "1:94: \
            upstream.client_default_listener_resource_name_template: `c` is not in `authorities`, so clients would not know \
            which server to ask for their listeners; add it there"),
        ("xds_servers: [{server_uri: a:1}], authorities: {b: {servers: []}}", "1:64: upstream.authorities.b.servers: unknown \
            field `servers`, expected one of xds_servers, fallback_on_reachability_only, \
            client_listener_resource_name_template"),
        ("xds_servers: [{server_uri: a:1}], authorities: {b: {}, b: {}}", "1:67: the key `b` is there twice, first in line 1; remove one"),
    ] {
        assert_eq!(parse(&format!("upstream: {{{text}}}")).unwrap_err(), format!("relay.yaml:{said}"), "{text}");
    }
}

/// The relay as its own upstream, as far as the configuration shows it; K-25 finds longer loops.
#[test]
fn the_relay_is_not_its_own_upstream() {
    let said = |listener: &str, server: &str| {
        let file =
            format!("listeners: [{{address: '{listener}'}}]\nupstream: {{xds_servers: [{{server_uri: '{server}'}}]}}");
        parse(&file).err()
    };
    for (listener, server) in [
        ("0.0.0.0:15010", "127.0.0.1:15010"),
        ("0.0.0.0:15010", "localhost:15010"),
        ("[::]:15010", "[::1]:15010"),
        ("127.0.0.1:15010", "0.0.0.0:15010"),
        ("127.0.0.1:15010", "http://localhost:15010"),
        ("10.0.0.1:15010", "dns:///10.0.0.1:15010"),
        ("unix:/run/x", "unix:///run/x"),
    ] {
        let said = said(listener, server).unwrap();
        let expected = format!("`{server}` is this relay itself, by its listener {listener}; name a control plane");
        assert!(said.ends_with(&expected), "{said}");
    }
    for (listener, server) in [
        ("0.0.0.0:15010", "127.0.0.1:15011"),
        ("127.0.0.1:15010", "127.0.0.2:15010"),
        ("10.0.0.1:15010", "127.0.0.1:15010"),
        ("0.0.0.0:15010", "cp:15010"),
        ("unix:/run/x", "unix:/run/y"),
    ] {
        assert_eq!(said(listener, server), None, "{listener} {server}");
    }
}

/// F-11: an authority without servers of its own uses the servers of the top list. F-12: equal entries of several lists are
/// one server; entries with other credentials or other server features are different servers.
#[test]
fn authorities_share_equal_servers() {
    let config = good(
        "upstream:
  xds_servers: [{server_uri: a:1}, {server_uri: b:1}]
  authorities:
    one: {}
    two: {xds_servers: [{server_uri: c:1}, {server_uri: b:1, server_features: [xds_v3]}], fallback_on_reachability_only: true}
    three: {xds_servers: [{server_uri: b:1, channel_creds: [{type: tls}]}]}
    four: {xds_servers: [{server_uri: b:1, server_features: [trusted_xds_server]}]}
",
    );
    let upstream = config.upstream;
    assert_eq!(uris(&upstream), ["a:1", "b:1", "b:1", "b:1", "c:1"]);
    let names: Vec<String> = (0..5).map(|at| upstream.name(at)).collect();
    assert_eq!(names, ["a:1", "b:1", "b:1 (2)", "b:1 (3)", "c:1"]);
    assert_eq!(upstream.top, [0, 1]);
    assert_eq!(upstream.authorities.len(), 4);
    for (name, servers, only) in [
        ("four", &[2][..], false),
        ("one", &[0, 1], false),
        ("three", &[3], false),
        ("two", &[4, 1], true),
    ] {
        let authority = &upstream.authorities[name];
        assert_eq!(
            (&authority.servers[..], authority.reachability_only),
            (servers, only),
            "{name}"
        );
    }
    let template = &upstream.authorities["one"].client_listener_resource_name_template;
    assert_eq!(template, "xdstp://one/envoy.config.listener.v3.Listener/%s");
}

/// Deep nesting, bombs, bytes that are not UTF-8: an error within a short time, and never a panic.
#[test]
fn hostile_bootstraps_are_refused() {
    let bomb: String = (0..12)
        .map(|level| match level {
            0 => "b0: &b0 [x, x]\n".to_owned(),
            level => format!(
                "b{level}: &b{level} [{}]\n",
                vec![format!("*b{}", level - 1); 9].join(", ")
            ),
        })
        .collect();
    for (text, said) in [
        ("[".repeat(200_000), "make it flatter"),
        (format!("{{\"x\": {}", "[".repeat(200_000)), "make it flatter"),
        ("{\"x\": ".repeat(200_000), "make it flatter"),
        (bomb, "the aliases make the text too large"),
        ("\0".to_owned(), "a value cannot begin with"),
        ("xds_servers: [*x]".to_owned(), "no anchor of this name"),
        (
            "xds_servers: &x [{server_uri: cp:1, y: *x}]".to_owned(),
            "inside the value that it refers to",
        ),
        (r#"{"xds_servers": [null]}"#.to_owned(), "missing field `server_uri`"),
    ] {
        let error = with("", Bootstrap::Text(text)).unwrap_err();
        assert!(error.contains(said), "{said}: {error}");
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bytes.json");
    std::fs::write(&path, b"{\"xds_servers\": \"\xff\"}").unwrap();
    let error = with("", Bootstrap::File(path)).unwrap_err();
    assert!(error.contains("not UTF-8"), "{error}");

    // A good one, cut at every place, and with each character replaced.
    for at in 0..CLIENTS.len() {
        let _ = with("", Bootstrap::Text(CLIENTS[..at].to_owned()));
        for wrong in ["{", "]", "\"", ":", "\n", "&", "*", "0"] {
            let text = format!("{}{wrong}{}", &CLIENTS[..at], &CLIENTS[at + 1..]);
            let _ = with("", Bootstrap::Text(text));
        }
    }
}
