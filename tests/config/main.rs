//! The configuration from the outside: what the shipped files mean, the errors of bad ones, and which setting overrides which.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bootstrap;
mod certificates;
mod classes;
mod credentials;
mod folder;
mod stories;

use std::path::{Path, PathBuf};
use std::time::Duration;

use distributary::config::{
    Address, Config, Credentials, Endpoint, Flags, Grpc, Identity, Limits, Listener, ListenerTls, Server, Source,
    Timers, Tls, Transport,
};
use distributary::proto::google::protobuf::value::Kind;
use distributary::xds::{self, Classes, NameRule, Piece, Rule, Selector};
use serde_json::Value;

const SERVER: &str = "upstream: {xds_servers: [{server_uri: cp:1}]}\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "relay.yaml", &Flags::default()).map_err(|error| error.to_string())
}

/// The servers of the top list, in order.
fn top(config: &Config) -> Vec<&Server> {
    config
        .upstream
        .top
        .iter()
        .map(|at| &config.upstream.servers[*at])
        .collect()
}

/// Returns the first server's settings; it must be a gRPC server.
fn first(config: &Config) -> &Grpc {
    match &top(config)[0].source {
        Source::Grpc(grpc) => grpc,
        other @ (Source::Files(_) | Source::Rest(_)) => panic!("{other:?}"),
    }
}

fn good(text: &str) -> Config {
    parse(text).unwrap()
}

/// Returns the error for a file with `text` and a good server after it.
fn complaint(text: &str) -> String {
    parse(&format!("{text}{SERVER}")).unwrap_err()
}

#[test]
fn every_shipped_file_loads() {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        if let Err(error) = Config::load(Some(&file), &Flags::default()) {
            panic!("{error}");
        }
    }
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

#[test]
fn the_reference_states_the_defaults() {
    let reference = Config::load(Some(&folder().join("reference.yaml")), &Flags::default()).unwrap();
    let least = good(SERVER);
    let addresses = |config: &Config| -> Vec<_> { config.listeners.iter().map(|one| one.address.clone()).collect() };
    assert_eq!(addresses(&reference), addresses(&least));
    assert_eq!(reference.admin, least.admin);
    assert_eq!(reference.limits, least.limits);
    assert_eq!(reference.limits, Limits::default());
    assert_eq!(reference.timers, least.timers);
    assert_eq!(reference.timers, Timers::default());
    assert_eq!(reference.chunk, least.chunk);
    assert_eq!(reference.transport_v2, least.transport_v2);
    assert_eq!(reference.anonymous, least.anonymous);
    assert_eq!(
        least.listeners,
        [Listener::plain(Address::Socket("127.0.0.1:15010".parse().unwrap()))]
    );
    assert_eq!(least.admin, Address::Socket("127.0.0.1:9901".parse().unwrap()));
    assert!(!least.node.id.is_empty(), "the host's name");
}

/// A wrong key makes the parser list the right ones, so the reference can be compared with the schema at every depth.
#[test]
fn the_reference_shows_every_key() {
    let text = std::fs::read_to_string(folder().join("reference.yaml")).unwrap();
    let whole: Value = serde_saphyr::from_str(&text).unwrap();
    let mut paths = vec![String::new()];
    collect(&whole, "", &mut paths);
    let mut checked = 0;
    for path in &paths {
        let mut changed = whole.clone();
        let Some(Value::Object(members)) = changed.pointer_mut(path) else {
            panic!("{path} is no mapping");
        };
        members.insert("zzz".to_owned(), Value::Null);
        let Err(error) = parse(&serde_json::to_string(&changed).unwrap()) else {
            let free = [
                "/node/metadata",
                "/upstream/authorities",
                "/upstream/node/metadata",
                "/upstream/certificate_providers",
                "/upstream/allowed_grpc_services",
            ];
            assert!(free.contains(&path.as_str()), "{path} takes any key");
            continue;
        };
        let Some((_, listed)) = error.split_once("unknown field `zzz`, expected one of ") else {
            assert_eq!(path, "/classes/0/match", "{error}");
            continue;
        };
        for key in listed.split(", ") {
            // A server has the same keys in every list; one shows them.
            let pointer =
                format!("{path}/{key}").replace("/authorities/endpoints.example.com/xds_servers", "/xds_servers");
            assert!(
                whole.pointer(&pointer).is_some(),
                "config/reference.yaml lacks {pointer}"
            );
        }
        checked += 1;
    }
    assert!(checked >= 12, "only {checked} mappings");
}

fn collect(value: &Value, path: &str, paths: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (format!("{path}/{key}"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (format!("{path}/{at}"), value))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (path, child) in children {
        if child.is_object() {
            paths.push(path.clone());
        }
        collect(child, &path, paths);
    }
}

/// The class in the reference file.
fn reference_rule() -> Rule {
    let path = |file: &str| {
        let [before, after] = ["/etc/distributary/tenants/".to_owned(), format!("/{file}")].map(Piece::Text);
        vec![before, Piece::Key(2), after]
    };
    Rule {
        matches: vec![
            (Selector::Cluster, "edge-*".to_owned()),
            (Selector::Metadata(xds::Path::new(["TIER"])), "gold".to_owned()),
        ],
        key: vec![
            Selector::Cluster,
            Selector::Zone,
            Selector::Metadata(xds::Path::new(["TENANT"])),
        ],
        id: Some(
            [0, 1, 2]
                .map(|at| {
                    [
                        Piece::Text(if at == 0 { "relay/" } else { "/" }.to_owned()),
                        Piece::Key(at),
                    ]
                })
                .concat(),
        ),
        cluster: Some(vec![Piece::Key(0)]),
        passes: xds::Passes::Parts(xds::Parts {
            metadata: xds::Members::These(vec![
                xds::Member {
                    path: xds::Path::new(["TENANT"]),
                    below: false,
                },
                xds::Member {
                    path: xds::Path::new(["LABELS"]),
                    below: true,
                },
            ]),
            locality: true,
            user_agent: true,
        }),
        credentials: Some(xds::Credentials {
            identity: Some((path("cert.pem"), path("key.pem"))),
            token: Some(path("token")),
        }),
    }
}

#[test]
fn the_reference_means_what_it_says() {
    let config = Config::load(Some(&folder().join("reference.yaml")), &Flags::default()).unwrap();
    assert_eq!(config.node.id, "relay-1");
    assert_eq!(config.node.locality.as_ref().unwrap().zone, "eu-1a");
    let role = config.node.metadata.as_ref().unwrap().fields["ROLE"].kind.clone();
    assert_eq!(role, Some(Kind::StringValue("relay".to_owned())));
    let [server] = top(&config)[..] else {
        panic!("one server")
    };
    let grpc = first(&config);
    assert_eq!(
        grpc.endpoint,
        Endpoint::Tcp {
            host: "cp-1.example.com".to_owned(),
            port: 18000
        }
    );
    let ca = Some("/etc/distributary/ca.pem".into());
    assert_eq!(
        grpc.credentials,
        Credentials::Tls(Tls {
            ca_certificate_file: ca,
            server_name: Some("control-plane.example.com".to_owned()),
            identity: Some(Identity {
                certificate_file: "/etc/distributary/relay.pem".into(),
                private_key_file: "/etc/distributary/relay.key".into(),
            }),
        })
    );
    assert_eq!(grpc.token, Some("/var/run/secrets/tokens/xds".into()));
    assert!(server.features.fail_on_data_errors && server.features.resource_timer_is_transient_error);
    assert_eq!(grpc.transport, Transport::Delta);
    assert_eq!(config.classes, Classes::new(vec![reference_rule()]));
    assert_eq!(config.types["acme.config.v1.Policy"].name, NameRule::Field(1));
    assert_eq!(config.descriptors, [Path::new("/etc/distributary/acme.binpb")]);
    let snapshot = config.snapshot.as_ref().unwrap();
    assert_eq!(snapshot.dir, Path::new("/var/lib/distributary"));
    assert_eq!(
        (snapshot.interval, snapshot.include_secrets),
        (Duration::from_secs(30), false)
    );
}

/// C-21: if the operator configures the field that names virtual hosts, the relay can request them in SotW.
#[test]
fn a_name_for_virtual_hosts() {
    let hosts = "envoy.config.route.v3.VirtualHost";
    let types = |field: &str| {
        let text = format!(
            "upstream: {{xds_servers: [{{server_uri: 'cp:1'}}]}}\ntypes: [{{type_url: {hosts}, wildcard: true{field}}}]\n"
        );
        good(&text).types
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
    assert_eq!(
        (config.timers.linger, config.timers.keepalive),
        (Duration::ZERO, Duration::ZERO)
    );
    assert_eq!(config.chunk, usize::MAX);
}

#[test]
fn credentials_follow_scheme_and_list() {
    let credentials = |entry: &str| {
        first(&good(&format!("upstream: {{xds_servers: [{{{entry}}}]}}")))
            .credentials
            .clone()
    };
    let tls = Credentials::Tls(Tls::default());
    assert_eq!(credentials("server_uri: cp:1"), Credentials::Insecure);
    assert_eq!(credentials("server_uri: 'http://cp:1'"), Credentials::Insecure);
    assert_eq!(credentials("server_uri: 'https://cp'"), tls);
    assert_eq!(
        credentials("server_uri: cp:1, channel_creds: [{type: google_default}, {type: tls}]"),
        tls
    );
    assert_eq!(
        credentials("server_uri: cp:1, channel_creds: [{type: insecure}, {type: tls}]"),
        Credentials::Insecure
    );
}

#[test]
fn flags_replace_the_file() {
    let file = "listeners: [{address: '10.0.0.1:1'}]\nadmin: {address: '10.0.0.1:2'}\n";
    let flags = Flags {
        listen: vec!["127.0.0.1:3".to_owned(), "unix:/run/x".to_owned()],
        upstream: vec!["https://other".to_owned()],
        admin: Some("[::1]:4".to_owned()),
        bootstrap: None,
    };
    let config = Config::parse(&format!("{file}{SERVER}"), "relay.yaml", &flags).unwrap();
    assert_eq!(
        config.listeners,
        [
            Listener::plain(Address::Socket("127.0.0.1:3".parse().unwrap())),
            Listener::plain(Address::Unix("/run/x".into()))
        ]
    );
    assert_eq!(top(&config)[0].uri, "https://other");
    assert_eq!(config.admin, Address::Socket("[::1]:4".parse().unwrap()));
    let config = Config::load(None, &flags).unwrap();
    assert_eq!(first(&config).credentials, Credentials::Tls(Tls::default()));
}

/// TLS is in the file alone, so a listener that a flag replaces must not lose it unnoticed.
#[test]
fn listeners_with_tls() {
    let file =
        "listeners: [{address: '10.0.0.1:1', tls: {certificate: c.pem, private_key: k.pem, client_ca: ca.pem}}]\n";
    let config = good(&format!("{file}{SERVER}"));
    let tls = ListenerTls {
        identity: Identity {
            certificate_file: "c.pem".into(),
            private_key_file: "k.pem".into(),
        },
        client_ca: Some("ca.pem".into()),
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
        "relay.yaml:1:23: listeners: not in use: --listen replaces the listeners of the file, and is without TLS";
    assert_eq!(config.warnings, [said]);
}

#[test]
fn bad_flags_are_named() {
    let flags = Flags {
        listen: vec!["localhost:1".to_owned()],
        upstream: vec!["cp".to_owned()],
        admin: Some("x".to_owned()),
        bootstrap: None,
    };
    assert_eq!(
        Config::load(None, &flags).unwrap_err().to_string(),
        "command line: --listen: `localhost:1` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name\n\
         command line: --admin: `x` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name\n\
         command line: --upstream: `cp` is not a server; write host:port, such as cp.example.com:18000"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Some(Path::new("/nowhere/relay.yaml")), &Flags::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nowhere/relay.yaml: cannot be read: "), "{error}");
}

#[test]
fn nothing_to_ask_is_an_error() {
    let advice = "upstream.xds_servers: no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
    assert_eq!(parse("").unwrap_err(), format!("relay.yaml: {advice}"));
    assert_eq!(
        Config::load(None, &Flags::default()).unwrap_err().to_string(),
        format!("command line: {advice}")
    );
}

/// Unknown keys and wrong kinds of values, each at its place.
#[test]
#[rustfmt::skip]
fn what_the_parser_says() {
    for (text, said) in [
        ("listenerz: []\n", "1:1: listenerz: unknown field `listenerz`, expected one of node, listeners, admin, upstream, \
            classes, limits, timers, chunk, transport_v2, anonymous, types, descriptors, snapshot, unknown_fields"),
        ("timers:\n  linger: 30s\n  lingers: 30s\n", "3:3: timers.lingers: unknown field `lingers`, expected one of linger, \
            does_not_exist, unanswered, wildcard_quiet, order_gate, removal_quiet, write_stall, keepalive, stream_age, stream_age_jitter, \
            rest_poll, rest_interval, reconnect_max, drain_announce, drain, pace"),
        ("listeners: 5\n", "1:12: listeners: expected sequence start"),
        ("listeners:\n  - tlz: x\n", "2:5: listeners[0].tlz: unknown field `tlz`, expected one of address, tls"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c}}]\n", "1:42: listeners[0].tls: missing field `private_key`"),
        ("listeners: [{}]\n", "1:13: listeners[0]: missing field `address`"),
        ("chunk: [1]\n", "1:8: chunk: expected string scalar"),
        ("anonymous: yes\n", "1:12: anonymous: invalid boolean (strict mode expects true/false)"),
        ("chunk: 1MiB\nchunk: 2MiB\n", "2:1: duplicate mapping key: chunk"),
        ("node: {id: x\n", "2:9: node: while parsing a flow mapping, did not find expected ',' or '}'"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

/// Values that are well-formed YAML and still wrong, each with its place and what to write instead.
#[test]
#[rustfmt::skip]
fn what_the_check_says() {
    for (text, said) in [
        ("timers:\n  linger: 30 parsecs\n", "2:11: timers.linger: `30 parsecs` is not a duration; write a whole number and a \
            unit, such as 250ms, 30s, 5m or 1h (0 = off, at most 8760h)"),
        ("timers: {unanswered: 0s}\n", "1:22: timers.unanswered: 0 would make clients wait forever; write the \
            longest wait, such as 8s"),
        ("limits: {request: 16MB}\n", "1:19: limits.request: `16MB` is not a size; write bytes or a unit, such as 4096, \
            64KiB, 16MiB or 1GiB (0 = off)"),
        ("limits: {views: -1}\n", "1:17: limits.views: `-1` is not a number; write a whole number such as 4096 (0 = off)"),
        ("node: {id: ''}\n", "1:12: node.id: the id is empty; leave `id` out to use the host's name"),
        ("listeners: []\n", ": listeners: the list is empty; add `- address: 0.0.0.0:15010` or leave the key out"),
        ("listeners: [{address: 'localhost:1'}]\n", "1:23: listeners[0].address: `localhost:1` is not an address; write \
            ip:port, [v6]:port or unix:/path, with an IP, not a name"),
        ("listeners:\n- address: 1.1.1.1:1\n- address: 1.1.1.1:1\n", "3:12: listeners[1].address: 1.1.1.1:1 is there \
            twice; remove one"),
        ("listeners: [{address: 'unix:/x', tls: {certificate: c, private_key: k}}]\n", "1:53: listeners[0].tls: a Unix \
            socket has no TLS; its file permissions decide who may connect; remove `tls`"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: '', private_key: k}}]\n", "1:55: listeners[0].tls.certificate: \
            the path is empty; write a PEM file"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c, private_key: k, client_ca: ''}}]\n", "1:85: \
            listeners[0].tls.client_ca: the path is empty; write a PEM file"),
        ("admin: {address: '127.0.0.1:15010'}\n", ": admin.address: 127.0.0.1:15010 is also a listener; give the admin \
            its own address"),
        ("classes: [{match: {zone: x}}]\n", "1:26: classes[0].match: `zone` is not a field of a node; write id, cluster, \
            locality.region, locality.zone, locality.sub_zone, user_agent_name or metadata.KEY"),
        ("classes:\n- key: [id,\n    metadata]\n", "3:5: classes[0].key: `metadata` is not a field of a node; write id, \
            cluster, locality.region, locality.zone, locality.sub_zone, user_agent_name or metadata.KEY"),
        ("classes: [{key: [id, id]}]\n", "1:22: classes[0].key: `id` is there twice; remove one"),
        ("classes: [{key: [cluster], node: {id: 'r/{id}'}}]\n", "1:39: classes[0].node.id: `{id}` is not in `key`, so \
            clients that share a view may differ in it; add it there"),
        ("classes: [{node: {cluster: '{'}}]\n", "1:28: classes[0].node.cluster: `{` has an unmatched brace; \
            write {{ or }} for a literal brace"),
        ("types: [{type_url: 'a b'}]\n", "1:20: types[0].type_url: `a b` is not a type; write type.googleapis.com/ and \
            the message's full name"),
        ("types: [{type_url: a.B, name_field: name}]\n", "1:37: types[0].name_field: `name` is not a field number; write \
            1 to 536870911, or 0 for no name in the body"),
        ("unknown_fields: no\n", "1:17: unknown_fields: `no` is not a way to treat a field; write error or warning"),
        ("descriptors: ['']\n", "1:15: descriptors[0]: the path is empty; write the file of a FileDescriptorSet"),
        ("descriptors: [a.binpb, a.binpb]\n", "1:24: descriptors[1]: `a.binpb` is there twice; remove one"),
        ("snapshot: {dir: ''}\n", "1:17: snapshot.dir: it is empty; write a directory such as /var/lib/distributary"),
        ("snapshot: {dir: d, interval: 0}\n", "1:30: snapshot.interval: 0 would write without end; leave `snapshot` out to write nothing"),
        ("types: [{type_url: a.B}, {type_url: type.googleapis.com/a.B}]\n", "1:37: types[1].type_url: `a.B` is there twice; remove one"),
    ] {
        let place = if said.starts_with(':') { "" } else { ":" };
        assert_eq!(complaint(text), format!("relay.yaml{place}{said}"), "{text}");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_servers() {
    for (entry, said) in [
        ("server_uri: 'ftp://x'", "39: server_uri: `ftp://x` has the unknown scheme `ftp`; write host:port, \
            dns:///host:port, unix:/path, http://host:port, https://host:port, rest+http://host:port, \
            rest+https://host:port or file:///path"),
        ("server_uri: cp", "39: server_uri: `cp` is not a server; write host:port, such as cp.example.com:18000"),
        ("server_uri: cp:1, transport: rest", "56: transport: `rest` is not a transport; write delta or sotw"),
        ("server_uri: cp:1, server_features: [fast]", "63: server_features: `fast` is not a server feature; write \
            fail_on_data_errors, ignore_resource_deletion, resource_timer_is_transient_error or trusted_xds_server"),
        ("server_uri: cp:1, channel_creds: [{type: xds}]", "68: channel_creds: `xds` is not supported; write insecure or tls"),
        ("server_uri: 'https://cp', channel_creds: [{type: insecure}]", "76: channel_creds: `insecure` contradicts the \
            scheme of server_uri; remove one"),
        ("server_uri: cp:1, channel_creds: [{type: insecure, config: {ca_certificate_file: x}}]", "108: \
            channel_creds[0].config.ca_certificate_file: ca_certificate_file has no use with insecure; remove it or write tls"),
        ("server_uri: cp:1, channel_creds: [{type: google_default}]", "68: channel_creds: `google_default` is not supported: \
            it needs Google's own credentials; write insecure or tls"),
        ("server_uri: cp:1, channel_creds: [{config: {}}]", "61: channel_creds[0]: missing field `type`"),
        ("server_uri: cp:1, channel_creds: [{type: tls, config: {certificate_file: x}}]", "100: channel_creds[0].config: \
            certificate_file and private_key_file go together; write both or none"),
        ("server_uri: cp:1, channel_creds: [{type: tls, config: {ca: x}}]", "82: channel_creds[0].config.ca: unknown field \
            `ca`, expected one of ca_certificate_file, certificate_file, private_key_file, server_name, refresh_interval"),
        ("server_uri: 'https://cp', call_creds: [{type: jwt_token_file}]", "66: call_creds[0]: missing field \
            `jwt_token_file` in `config`"),
        ("server_uri: 'https://cp', call_creds: [{type: oauth}]", "73: call_creds[0]: `oauth` is not supported; write \
            jwt_token_file"),
        ("server_uri: cp:1, call_creds: [{type: jwt_token_file, config: {jwt_token_file: t}}]", "58: call_creds[0]: a token \
            is only sent over TLS; write tls in channel_creds"),
        ("server_uri: 127.0.0.1:15010", "39: server_uri: `127.0.0.1:15010` is this relay itself, by its listener \
            127.0.0.1:15010; name a control plane"),
        ("server_uri: cp:1, colour: red", "45: colour: unknown field `colour`, expected one of server_uri, channel_creds, \
            call_creds, server_features, transport"),
        ("server_uri: 'file:///x', channel_creds: [{type: tls}]", "68: channel_creds: channel_creds has no use with files; remove it"),
        ("server_uri: ./x, call_creds: [{type: jwt_token_file, config: {jwt_token_file: t}}]", "57: call_creds: call_creds has no \
            use with files; remove it"),
        ("server_uri: a.yaml, server_features: [ignore_resource_deletion]", "65: server_features: server_features has no use \
            with files; remove it"),
        ("server_uri: a.yaml, transport: delta", "58: transport: transport has no use with files; remove it"),
        ("server_uri: a.yaml, transport_api_version: V3", "47: transport_api_version: unknown field `transport_api_version`, \
            expected one of server_uri, channel_creds, call_creds, server_features, transport"),
        ("server_uri: 'rest+http://cp', transport: delta", "68: transport: transport has no use with a server that is polled; \
            remove it"),
        ("transport: sotw", "26: missing field `server_uri`"),
    ] {
        let (column, said) = said.split_once(": ").unwrap();
        let dot = if said.starts_with("missing") { ": " } else { "." };
        let expected = format!("relay.yaml:1:{column}: upstream.xds_servers[0]{dot}{said}");
        assert_eq!(parse(&format!("upstream: {{xds_servers: [{{{entry}}}]}}")).unwrap_err(), expected);
    }
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

#[test]
fn every_problem_is_told_at_once() {
    let said = complaint("limits:\n  views: x\ntimers:\n  linger: y\nadmin: {address: z}\n");
    let starts: Vec<_> = said.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(starts, ["admin.address", "limits.views", "timers.linger"], "{said}");
}
