// SPDX-License-Identifier: Apache-2.0
//! Two tenants on real sockets: over every way of asking, neither gets what the rules do not give it.

use std::sync::Arc;

use distributary::config::{Config, Flags};
use distributary::downstream::ConnectionSettings;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::google::protobuf::{self as google, ListValue, Struct, value::Kind};
use distributary::protocol::StreamSettings;
use distributary::xds::Dialect;
use serde_json::{Value, json};

use crate::rest::put;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay};

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RULES: &str = "
upstream: {xds_servers: [{server_uri: cp:1}]}
rules:
- {name: strangers, nodes: {id: 'x-*'}, action: deny}
- {name: tenant a, identities: 'ip:127.*', nodes: {id: 'a-*'}, names: ['a/*', shared]}
- {name: tenant b, identities: 'ip:127.*', nodes: {id: 'b-*'}, types: [cds, eds], names: ['b/*', shared]}
";

fn relay() -> Relay {
    let access = Config::parse(RULES, "rules", &Flags::default()).unwrap().access;
    let relay = Relay::with(|plan| plan.protocol.access = access);
    put(&relay, CDS, &["a/1", "b/1", "c/1", "shared"], 1);
    put(&relay, EDS, &["a/1", "b/1", "c/1", "shared"], 1);
    relay
}

/// These are the rules from now on.
pub(crate) fn govern(relay: &Relay, rules: &str) {
    let rules = format!("upstream: {{xds_servers: [{{server_uri: cp:1}}]}}\nrules: {rules}\n");
    let access = Config::parse(&rules, "rules", &Flags::default()).unwrap().access;
    let mut settings = ConnectionSettings::clone(&relay.shared.settings.load());
    let streams = StreamSettings {
        access,
        ..StreamSettings::clone(&settings.protocol)
    };
    settings.protocol = Arc::new(streams);
    relay.shared.settings.store(Arc::new(settings));
    relay.shared.scopes.call_sessions();
}

fn node(id: &str) -> Node {
    Node {
        id: id.to_owned(),
        ..Node::default()
    }
}

/// S-01, S-02: a rule binds what a client says in its metadata to who it is, so that it comes into no other class than its own. Who says
/// something else, or nothing, is denied.
#[tokio::test]
async fn members_of_the_metadata() {
    let relay = relay();
    govern(
        &relay,
        "[{name: a, identities: 'ip:{own}.0.0.1', nodes: {metadata: {NS: '{own}-*', LABELS.team: [red, blue]}}}]",
    );
    for (metadata, allowed) in [
        (json!({"NS": "127-web", "LABELS": {"team": "blue"}}), true),
        (json!({"NS": "b-web", "LABELS": {"team": "blue"}}), false),
        (json!({"NS": "127-web", "LABELS": {"team": "green"}}), false),
        (json!({"NS": ["127-web"], "LABELS": {"team": "red"}}), false),
        (json!({"NS": "127-web", "LABELS.team": "red"}), false),
        (json!({"NS": "127-web"}), false),
        (json!({}), false),
    ] {
        let call = relay.connect().await.ads(Dialect::Delta).await;
        let of = Node {
            metadata: serde_json::from_value(metadata.clone()).ok().map(members),
            ..node("a")
        };
        let mut client = Subscriber::of(call, Dialect::Delta, CDS, of);
        client.subscribe(&["shared"]);
        if allowed {
            assert_eq!(client.take().await.bodies.len(), 1, "{metadata}");
        } else {
            assert_eq!(
                client.call.end().await.code,
                tonic::Code::PermissionDenied as i32,
                "{metadata}"
            );
        }
    }
}

/// A structure as protobuf has it.
fn members(of: serde_json::Map<String, Value>) -> Struct {
    let value = |value: Value| match value {
        Value::String(text) => Kind::StringValue(text),
        Value::Array(all) => Kind::ListValue(ListValue {
            values: vec![Default::default(); all.len()],
        }),
        Value::Object(below) => Kind::StructValue(members(below)),
        Value::Null | Value::Bool(_) | Value::Number(_) => panic!("a member that no test has"),
    };
    let fields = of
        .into_iter()
        .map(|(key, one)| (key, google::Value { kind: Some(value(one)) }));
    Struct {
        fields: fields.collect(),
    }
}

/// S-02, S-03: who may have nothing, and what nobody may have.
#[tokio::test]
async fn who_is_refused() {
    let relay = relay();
    for (id, words) in [
        ("x-1", "rule `strangers` of the relay does not admit node `x-1`"),
        ("y", "no rule of the relay admits node `y`"),
    ] {
        for dialect in [Dialect::Sotw, Dialect::Delta] {
            let call = relay.connect().await.ads(dialect).await;
            let mut client = Subscriber::of(call, dialect, CDS, node(id));
            client.subscribe(&["*"]);
            let ended = client.call.end().await;
            assert!(ended.code == 7 && ended.message.contains(words), "{ended:?}");
            assert!(ended.message.contains("identity `ip:127.0.0.1`"), "{ended:?}");
        }
    }
    let secrets = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
    let mut client = Subscriber::of(
        relay.connect().await.call(secrets).await,
        Dialect::Sotw,
        SDS,
        node("a-1"),
    );
    client.subscribe(&["s"]);
    let ended = client.call.end().await;
    assert!(
        ended.code == 7 && ended.message.contains("`secrets: allow`"),
        "{ended:?}"
    );
    assert_eq!(relay.shared.metrics.denied.get(), 5);
}
