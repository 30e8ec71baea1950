// SPDX-License-Identifier: Apache-2.0
//! The configuration from the outside: what the shipped files mean, the errors of bad ones, and which setting overrides which.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bootstrap;
mod certificates;
mod class_servers;
mod classes;
mod complaints;
mod credentials;
mod doors;
mod holds;
mod reference;
mod rules;
mod sources;
mod spiffe;
mod stories;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use distributary::config::{
    Address, CertificateFiles, Config, Credentials, Flags, Grpc, Listener, ListenerTls, Reach, Server, Supply, Tls,
    TlsVersion,
};

const SERVER: &str = "upstream: {xds_servers: [{server_uri: cp:1}]}\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "relay.yaml", &Flags::default()).map_err(|error| error.to_string())
}

/// The servers of the top list, in order.
fn top(config: &Config) -> Vec<&Server> {
    let all = config.upstream.top.iter();
    all.map(|at| &config.upstream.servers[*at]).collect()
}

/// Returns the first server's settings; it must be a gRPC server.
fn first(config: &Config) -> &Grpc {
    match &top(config)[0].reach {
        Reach::Grpc(grpc) => grpc,
        other @ (Reach::Files(_) | Reach::Rest(_)) => panic!("{other:?}"),
    }
}

fn good(text: &str) -> Config {
    parse(text).unwrap()
}

/// Returns the error for a file with `text` and a good server after it.
fn complaint(text: &str) -> String {
    parse(&format!("{text}{SERVER}")).unwrap_err()
}

/// The configuration with which the README begins.
#[test]
fn the_configuration_of_the_readme_loads() {
    let readme = std::fs::read_to_string(folder().join("../README.md")).unwrap();
    let (_, text) = readme.split_once("```yaml\nlisteners:").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let config = good(&format!("listeners:{text}"));
    assert_eq!((config.listeners.len(), top(&config).len()), (1, 1));
}

/// C-21: if the operator configures the field that names virtual hosts, the relay can request them in SotW.
#[test]
fn a_name_for_virtual_hosts() {
    let hosts = "envoy.config.route.v3.VirtualHost";
    let types = |field: &str| {
        good(&format!(
            "{SERVER}types: [{{type_url: {hosts}, wildcard: true{field}}}]\n"
        ))
        .types
    };
    assert!(types("")[hosts].delta_only);
    assert!(!types(", name_field: 1")[hosts].delta_only);
}

#[test]
fn zero_is_off() {
    let config = good(&format!(
        "limits: {{request: 0, views: 0}}\ntimers: {{linger: 0, keepalive: 0s}}\nchunk: 0\n{SERVER}"
    ));
    assert_eq!((config.limits.request, config.limits.views), (0, 0));
    assert_eq!([config.timers.linger, config.timers.keepalive], [Duration::ZERO; 2]);
    assert_eq!(config.chunk, usize::MAX);
}

#[test]
fn credentials_follow_scheme_and_list() {
    let (clear, tls) = (Credentials::Insecure, Credentials::Tls(Tls::default()));
    for (entry, credentials) in [
        ("server_uri: cp:1", &clear),
        ("server_uri: 'http://cp:1'", &clear),
        ("server_uri: 'https://cp'", &tls),
        (
            "server_uri: cp:1, channel_creds: [{type: google_default}, {type: tls}]",
            &tls,
        ),
        (
            "server_uri: cp:1, channel_creds: [{type: insecure}, {type: tls}]",
            &clear,
        ),
    ] {
        let config = good(&format!("upstream: {{xds_servers: [{{{entry}}}]}}"));
        assert_eq!(first(&config).credentials, *credentials, "{entry}");
    }
}

#[test]
fn flags_replace_the_file() {
    let file = "listeners: [{address: '10.0.0.1:1'}]\nadmin: {address: '10.0.0.1:2'}\nlogging: {level: debug}\n";
    let flags = Flags {
        listen: vec!["127.0.0.1:3".to_owned(), "unix:/run/x".to_owned()],
        upstream: vec!["https://other".to_owned()],
        admin: Some("[::1]:4".to_owned()),
        log_level: Some("warn".to_owned()),
        ..Flags::default()
    };
    let config = Config::parse(&format!("{file}{SERVER}"), "relay.yaml", &flags).unwrap();
    let addresses = [
        Address::Socket("127.0.0.1:3".parse().unwrap()),
        Address::Unix("/run/x".into()),
    ];
    assert_eq!(config.listeners, addresses.map(Listener::plain));
    assert_eq!(top(&config)[0].uri, "https://other");
    assert_eq!(config.admin, Address::Socket("[::1]:4".parse().unwrap()));
    assert_eq!(config.log_filter.as_str(), "warn");
    let config = Config::load(None, &flags).unwrap();
    assert_eq!(first(&config).credentials, Credentials::Tls(Tls::default()));
}

/// An admin address that others reach is open, unless it has rules or asks for certificates.
#[test]
fn an_open_admin_address() {
    let tls = "tls: {certificate: c.pem, private_key: k.pem";
    for (admin, open) in [
        ("{address: '127.0.0.1:1'}".to_owned(), false),
        ("{address: '[::1]:1'}".to_owned(), false),
        ("{address: 'unix:/run/admin.sock'}".to_owned(), false),
        ("{address: '0.0.0.0:1'}".to_owned(), true),
        (format!("{{address: '0.0.0.0:1', {tls}}}}}"), true),
        ("{address: '0.0.0.0:1', rules: [{allow: read}]}".to_owned(), false),
        (format!("{{address: '0.0.0.0:1', {tls}, client_ca: ca.pem}}}}"), false),
    ] {
        let config = good(&format!("admin: {admin}\n{SERVER}"));
        assert_eq!(config.admin_is_open(), open, "{admin}");
        assert_eq!(config.admin_tls.is_some(), admin.contains("tls"));
    }
}

/// TLS is in the file alone, so a listener that a flag replaces must not lose it unnoticed.
#[test]
fn listeners_with_tls() {
    let tls = "certificate: c.pem, private_key: k.pem, client_ca: ca.pem, client_crl: crl.pem, minimum_tls_version: 1.3, \
        certificates: [{certificate: d.pem, private_key: l.pem}]";
    let file = format!("listeners: [{{address: '10.0.0.1:1', tls: {{{tls}}}}}]\n");
    let config = good(&format!("{file}{SERVER}"));
    let tls = ListenerTls {
        identity: Supply::Files(CertificateFiles {
            certificate_file: "c.pem".into(),
            private_key_file: "k.pem".into(),
        }),
        others: vec![CertificateFiles {
            certificate_file: "d.pem".into(),
            private_key_file: "l.pem".into(),
        }],
        oldest: TlsVersion::V1_3,
        client_ca: Some(Supply::Files("ca.pem".into())),
        client_crl: Some("crl.pem".into()),
    };
    assert_eq!(config.listeners[0].tls, Some(tls));
    assert!(config.warnings.is_empty());
    let flags = Flags {
        listen: vec!["127.0.0.1:3".to_owned()],
        ..Flags::default()
    };
    let config = Config::parse(&format!("{file}{SERVER}"), "relay.yaml", &flags).unwrap();
    assert_eq!(config.listeners[0].tls, None);
    let said =
        "relay.yaml:1:42: listeners: not in use: --listen replaces the listeners of the file, and is without TLS";
    assert_eq!(config.warnings, [said]);
}

/// Each listener with port 0 gets a free port of its own.
#[test]
fn several_listeners_with_a_free_port() {
    let config = good(
        "upstream: {xds_servers: [{server_uri: a:1}]}\nlisteners: [{address: '127.0.0.1:0'}, {address: '127.0.0.1:0'}]\n",
    );
    assert_eq!(config.listeners.len(), 2);
}

#[test]
fn bad_flags_are_named() {
    let flags = Flags {
        listen: vec!["localhost:1".to_owned()],
        upstream: vec!["cp".to_owned()],
        admin: Some("x".to_owned()),
        log_level: Some("loud".to_owned()),
        ..Flags::default()
    };
    let error = Config::load(None, &flags).unwrap_err().to_string();
    let expected = "command line: --listen: `localhost:1` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name\n\
         command line: --admin: `x` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name\n\
         command line: --upstream: `cp` is not a server; write host:port, such as cp.example.com:18000\n\
         command line: --log-level: `loud` is not a log level; write error, warn, info, debug, trace, off or target=level,...";
    assert_eq!(error, expected);
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Some(Path::new("/nowhere/relay.yaml")), &Flags::default());
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/relay.yaml: cannot be read: "), "{error}");
}

#[test]
fn nothing_to_ask_is_an_error() {
    let advice = "upstream.xds_servers: no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
    assert_eq!(parse("").unwrap_err(), format!("relay.yaml: {advice}"));
    let error = Config::load(None, &Flags::default()).unwrap_err().to_string();
    assert_eq!(error, format!("command line: {advice}"));
}

#[test]
fn servers_keep_their_order() {
    let text = "upstream: {xds_servers: [{server_uri: a:1}, {server_uri: b:1}]}";
    let config = good(text);
    let uris: Vec<&str> = top(&config).into_iter().map(|server| server.uri.as_str()).collect();
    assert_eq!(uris, ["a:1", "b:1"]);
    let flags = Flags {
        upstream: vec!["c:1".to_owned(), "d:1".to_owned()],
        ..Flags::default()
    };
    let config = Config::parse(text, "relay.yaml", &flags).unwrap();
    assert_eq!(config.upstream.top.len(), 2);
    assert_eq!(top(&config)[0].uri, "c:1");
}
