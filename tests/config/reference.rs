// SPDX-License-Identifier: Apache-2.0
//! The reference file: it states the defaults, shows every key, and means what its comments say.

use std::path::Path;
use std::time::Duration;

use distributary::classes::{Classes, Pattern, Piece, Rule, Selector};
use distributary::config::{
    Address, CertificateFiles, Config, Credentials, Effect, Endpoint, Flags, Limits, Listener, Reference, Supply,
    Timers, Tls, Transport,
};
use distributary::proto::google::protobuf::value::Kind;
use distributary::xds::{self, NameRule};
use regex::Regex;
use serde_json::Value;

use crate::{SERVER, first, folder, good, parse, top};

#[test]
fn the_reference_states_the_defaults() {
    let reference = Config::load(Some(&folder().join("reference.yaml")), &Flags::default()).unwrap();
    let least = good(SERVER);
    let addresses = |config: &Config| -> Vec<_> { config.listeners.iter().map(|one| one.address.clone()).collect() };
    assert_eq!(addresses(&reference), addresses(&least));
    assert_eq!(reference.admin, least.admin);
    assert_eq!(least.probes, None);
    assert_eq!(reference.limits, least.limits);
    assert_eq!(reference.limits, Limits::default());
    assert_eq!(reference.timers, least.timers);
    assert_eq!(reference.timers, Timers::default());
    assert_eq!((reference.guard.all, least.guard.all), Default::default());
    assert_eq!(reference.guard.classes, [Some(xds::GuardSettings::OFF)]);
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

/// The file is made from the rows: `distributary explain --file > config/reference.yaml`.
#[test]
fn the_reference_is_made_from_the_rows() {
    let file = std::fs::read_to_string(folder().join("reference.yaml")).unwrap();
    assert!(file == Reference::default().file(), "write config/reference.yaml anew");
}

/// Each key says what it means, and when a change of it takes effect; so does the page about reloads.
#[test]
fn each_key_has_its_text_and_its_effect() {
    let reference = Reference::default();
    let page = std::fs::read_to_string(folder().join("operations.md")).unwrap();
    let at_once = page.lines().find(|line| line.starts_with("| at once |")).unwrap();
    let keys = reference.keys();
    assert!(keys.len() > 200, "{}", keys.len());
    for (path, about, effect) in &keys {
        assert!(about.ends_with('.'), "{path}: {about}");
        assert!(effect.is_some(), "{path}");
        let (outer, key) = path.rsplit_once('.').unwrap_or(("", path));
        let outer = keys
            .iter()
            .find(|(path, ..)| path == outer)
            .and_then(|(.., effect)| *effect);
        if *effect == Some(Effect::Now) && outer != *effect && !path.starts_with("classes.") {
            assert!(at_once.contains(key), "{path}");
        }
    }
}

/// The class in the reference file.
fn reference_rule() -> Rule {
    let path = |file: &str| {
        let [before, after] = ["/etc/distributary/tenants/".to_owned(), format!("/{file}")].map(Piece::Text);
        vec![before, Piece::Key(2), after]
    };
    let pattern = |text: &str| Pattern::read(text).unwrap();
    Rule {
        matches: vec![
            (Selector::Cluster, pattern("edge-*")),
            (
                Selector::Identity("spiffe:"),
                pattern("spiffe://example.org/ns/{tenant}/sa/*"),
            ),
        ],
        key: vec![Selector::Cluster, Selector::Zone, Selector::Field("tenant".into())],
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
        passes: classes::Passes::Parts(classes::Parts {
            metadata: classes::Members::These(vec![
                classes::Member {
                    path: classes::Path::new(["TENANT"]),
                    below: false,
                },
                classes::Member {
                    path: classes::Path::new(["LABELS"]),
                    below: true,
                },
            ]),
            locality: true,
            user_agent: true,
        }),
        credentials: Some(classes::Credentials {
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
    let ca = Supply::Files("/etc/distributary/ca.pem".into());
    assert_eq!(
        grpc.credentials,
        Credentials::Tls(Tls {
            authorities: Some(ca),
            server_name: Some("control-plane.example.com".to_owned()),
            spiffe_id: None,
            identity: Some(Supply::Files(CertificateFiles {
                certificate_file: "/etc/distributary/relay.pem".into(),
                private_key_file: "/etc/distributary/relay.key".into(),
            })),
        })
    );
    assert_eq!(grpc.token, Some("/var/run/secrets/tokens/xds".into()));
    assert!(server.features.fail_on_data_errors && server.features.resource_timer_is_transient_error);
    assert_eq!(grpc.transport, Transport::Delta);
    assert_eq!(config.probes, Some(Address::Socket("0.0.0.0:9902".parse().unwrap())));
    assert_eq!(config.classes, Classes::new(vec![reference_rule()]));
    assert_eq!(config.types["acme.config.v1.Policy"].name, NameRule::Field(1));
    assert_eq!(config.descriptors, [Path::new("/etc/distributary/acme.binpb")]);
    let snapshot = config.snapshot.as_ref().unwrap();
    assert_eq!(snapshot.dir.as_deref(), Some(Path::new("/var/lib/distributary")));
    let [neighbour] = snapshot.from.as_slice() else {
        panic!("{snapshot:?}")
    };
    assert_eq!(neighbour.endpoint.to_string(), "relay-headless.xds.svc:9901");
    assert_eq!(
        (snapshot.interval, snapshot.include_secrets),
        (Duration::from_secs(30), false)
    );
}

/// Whether a value is of a schema, as far as schemas of the configuration go. An error says where it is not.
fn fits(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    if let Some(forms) = schema["anyOf"].as_array() {
        let fitting = forms.iter().any(|form| fits(value, form, path).is_ok());
        return fitting
            .then_some(())
            .ok_or_else(|| format!("{path}: no form fits {value}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = &schema["type"];
    let is = |one: &Value| one == kind || one == "integer" && (value.is_i64() || value.is_u64());
    let among = |kinds: &Vec<Value>| kinds.iter().any(is);
    if !(kinds.is_null() || is(kinds) || kinds.as_array().is_some_and(among)) {
        return Err(format!("{path}: {kind} is none of {kinds}"));
    }
    let words = schema["enum"].as_array();
    let right = words.is_none_or(|words| words.contains(value))
        && value
            .as_str()
            .zip(schema["pattern"].as_str())
            .is_none_or(|(text, pattern)| Regex::new(pattern).unwrap().is_match(text))
        && value.as_f64().is_none_or(|number| {
            let bound = |name: &str| schema[name].as_f64();
            bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most)
                && bound("exclusiveMinimum").is_none_or(|least| number > least)
                && bound("exclusiveMaximum").is_none_or(|most| number < most)
        })
        && (schema["not"].is_null() || fits(value, &schema["not"], path).is_err());
    if !right {
        return Err(format!("{path}: {value} is not {schema}"));
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(item, &schema["items"], &format!("{path}[{at}]"))?;
    }
    for key in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|_| value.is_object())
    {
        value
            .get(key.as_str().unwrap())
            .ok_or_else(|| format!("{path}: {key} is missing"))?;
    }
    for (name, item) in value.as_object().into_iter().flatten() {
        let inner = match schema["properties"].get(name) {
            Some(inner) => inner,
            None if schema["additionalProperties"] == false => return Err(format!("{path}: {name} is unknown")),
            None => &schema["additionalProperties"],
        };
        fits(item, inner, &format!("{path}.{name}"))?;
    }
    Ok(())
}

/// What the program takes, the schema takes, and what has a wrong key or kind it refuses.
#[test]
fn the_schema_takes_what_the_program_takes() {
    let schema = Reference::default().schema(None).unwrap();
    let mut checked = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let value: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(fits(&value, &schema, ""), Ok(()), "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 12, "only {checked} files");
    let good = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    for right in [
        "timers: {drain: 0}",
        "timers: {drain: 0s, keepalive: 1500ms}",
        "limits: {memory: auto, request: 0, views: 3, history_bytes: 5KiB, subscriptions: 7}",
        "guard: off",
        "guard: on",
        "guard:",
        "classes: [{guard: {within: never, references: off}, canary: {share: 0.25%, xds_servers: []}}]",
        "listeners: [{address: 'unix:/x', tls: {certificate: a, private_key: b, minimum_tls_version: 1.3}, mode: 0660}]",
        "rules: [{name: a, types: cds, dialects: delta}]",
        "upstream: /etc/bootstrap.json",
        "upstream: {xds_servers: [{server_uri: a, channel_creds: [{type: google_default, config: {any: thing}}]}]}",
    ] {
        assert_eq!(fits(&good(right), &schema, ""), Ok(()), "{right}");
    }
    for wrong in MISTAKES {
        let value = good(wrong);
        assert!(fits(&value, &schema, "").is_err(), "{wrong}");
        let server = if wrong.starts_with("upstream") { "" } else { SERVER };
        assert!(parse(&format!("{server}{wrong}\n")).is_err(), "{wrong}");
    }
}

/// What an editor that has the schema refuses, as the program does.
const MISTAKES: [&str; 50] = [
    "listener: []",
    "listeners: [{}]",
    "listeners: {address: a}",
    "listeners: [{address: '127.0.0.1:1', tls: true}]",
    "listeners: [{address: '127.0.0.1:1', require: token}]",
    "listeners: [{address: '127.0.0.1:1', tls: {certificate: a, private_key: b, minimum_tls_version: 1.1}}]",
    "listeners: [{address: '127.0.0.1:1', insecure_secrets: maybe}]",
    "listeners: [{address: '127.0.0.1:1', proxy_protocol: {}}]",
    "anonymous: 1",
    "transport_v2: maybe",
    "timers: [1]",
    "timers: {drain: banana}",
    "timers: {drain: 5}",
    "timers: {drain: 5 s}",
    "timers: {drain: -5s}",
    "timers: {drain: 1.5s}",
    "timers: {drain: [5s]}",
    "timers: {drian: 5s}",
    "limits: {views: many}",
    "limits: {views: -1}",
    "limits: {views: {a: 1}}",
    "limits: {views: 1.5}",
    "limits: {request: 16MB}",
    "limits: {request: 16}",
    "limits: {upstream_message: 1}",
    "limits: {memory: most}",
    "limits: {memory: 1000}",
    "limits: {subscriptions: few}",
    "limits: {subscriptions: 1MiB}",
    "limits: {connection: 5}",
    "guard: always",
    "guard: {within: often}",
    "guard: {references: never}",
    "guard: {hold: 5m}",
    "guard: {hold: {endpoints: long}}",
    "guard: {unready: soon}",
    "classes: [{guard: {hold: {listeners: 1m}}}]",
    "classes: [{node: mine}]",
    "classes: [{node: {locality: relay}}]",
    "classes: [{node: {metadata: none}}]",
    "canary: {xds_servers: []}",
    "canary: {share: 101, xds_servers: [{server_uri: 'cp:2'}]}",
    "rules: [{name: a, action: {}}]",
    "rules: [{name: a, action: refuse}]",
    "rules: [{name: a, dialects: [grpc]}]",
    "admin: {rules: [{allow: [write]}]}",
    "secrets: maybe",
    "unknown_fields: ignore",
    "chunk: 2MB",
    "upstream: {xds_servers: [{server_uri: 'cp:1', transport: rest}]}",
];
