//! The reference file: it states the defaults, shows every key, and means what its comments say.

use std::path::Path;
use std::time::Duration;

use distributary::classes::{Classes, Pattern, Piece, Rule, Selector};
use distributary::config::{
    Address, Config, Credentials, Endpoint, Flags, Identity, Limits, Listener, Reference, Supply, Timers, Tls,
    Transport,
};
use distributary::proto::google::protobuf::value::Kind;
use distributary::xds::{self, NameRule};
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
                "/sources/0/node/metadata",
                "/upstream/certificate_providers",
                "/upstream/allowed_grpc_services",
            ];
            assert!(free.contains(&path.as_str()), "{path} takes any key");
            continue;
        };
        let Some((_, listed)) = error.split_once("unknown field `zzz`, expected one of ") else {
            let named_by_clients = ["/classes/0/match", "/rules/0/nodes/metadata"];
            assert!(named_by_clients.contains(&path.as_str()), "{path}: {error}");
            continue;
        };
        for key in listed.split(", ") {
            // A server has the same keys in every list; one shows them.
            let pointer = format!("{path}/{key}")
                .replace("/authorities/endpoints.example.com/xds_servers", "/xds_servers")
                .replace("/sources/0/xds_servers", "/upstream/xds_servers")
                .replace("/sources/1/xds_servers", "/upstream/xds_servers")
                .replace("/sources/1/", "/sources/0/")
                .replace("/canary/xds_servers", "/upstream/xds_servers")
                .replace("/classes/0/upstream/", "/upstream/")
                .replace("/classes/0/xds_servers/", "/upstream/xds_servers/");
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
            identity: Some(Supply::Files(Identity {
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

/// The page of the manual is made from the reference: `distributary explain --markdown > config/reference.md`.
#[test]
fn the_manual_has_each_key() {
    let page = std::fs::read_to_string(folder().join("reference.md")).unwrap();
    assert!(page == Reference::read().page(), "write config/reference.md anew");
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
    let among = |kinds: &Vec<Value>| kinds.iter().any(|one| one == kind);
    if !(kinds.is_null() || kinds == kind || kinds.as_array().is_some_and(among)) {
        return Err(format!("{path}: {kind} is none of {kinds}"));
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
    let schema = Reference::read().schema(None).unwrap();
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
    for wrong in [
        "listener: []",
        "listeners: [{}]",
        "anonymous: 1",
        "timers: [1]",
        "rules: [{name: a, action: {}}]",
    ] {
        let value: Value = serde_saphyr::from_str(wrong).unwrap();
        assert!(fits(&value, &schema, "").is_err(), "{wrong}");
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
