// SPDX-License-Identifier: Apache-2.0
//! Two tenants on real sockets: over every way of asking, neither gets what the rules do not give it.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::google::protobuf::{self as google, ListValue, Struct, value::Kind};
use distributary::xds::Dialect;
use serde_json::{Value, json};
use tonic::Code;

use crate::rest::put;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay, config, node_of, says};

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RULES: &str = "
rules:
- {name: strangers, nodes: {id: 'x-*'}, action: deny}
- {name: tenant a, identities: 'ip:127.*', nodes: {id: 'a-*'}, names: ['a/*', shared]}
- {name: tenant b, identities: 'ip:127.*', nodes: {id: 'b-*'}, types: [cds, eds], names: ['b/*', shared]}
";

fn relay() -> Relay {
    let relay = Relay::with(|plan| plan.protocol.access = config(RULES).access);
    put(&relay, CDS, &["a/1", "b/1", "c/1", "shared"], 1);
    put(&relay, EDS, &["a/1", "b/1", "c/1", "shared"], 1);
    relay
}

/// These are the rules from now on.
pub(crate) fn govern(relay: &Relay, rules: &str) {
    relay.allow(config(&format!("rules: {rules}\n")).access);
}

async fn client(relay: &Relay, dialect: Dialect, node: Node, name: &str) -> Subscriber {
    let mut client = Subscriber::of(relay.connect().await.ads(dialect).await, dialect, CDS, node);
    client.subscribe(&[name]);
    client
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
        let of = Node {
            metadata: serde_json::from_value(metadata.clone()).ok().map(members),
            ..node_of("a", "")
        };
        let mut client = client(&relay, Dialect::Delta, of, "shared").await;
        if allowed {
            assert_eq!(client.take().await.bodies.len(), 1, "{metadata}");
        } else {
            says(&client.call.end().await, Code::PermissionDenied, "");
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
            let ended = client(&relay, dialect, node_of(id, ""), "*").await.call.end().await;
            says(&ended, Code::PermissionDenied, words);
            says(&ended, Code::PermissionDenied, "identity `ip:127.0.0.1`");
        }
    }
    let secrets = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
    let call = relay.connect().await.call(secrets).await;
    let mut client = Subscriber::of(call, Dialect::Sotw, SDS, node_of("a-1", ""));
    client.subscribe(&["s"]);
    says(&client.call.end().await, Code::PermissionDenied, "`secrets: allow`");
    assert_eq!(relay.shared.metrics.denied.get(), 5);
}
