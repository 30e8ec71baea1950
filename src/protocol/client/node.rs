//! The node that the relay sends to servers.
//!
//! Owns what every upstream node has in common. Knows nothing of classes.

use classes::RELAYS;
use proto::envoy::config::core::v3::{Node, node::UserAgentVersionType};
use proto::google::protobuf::{ListValue, Struct, Value, value};

/// What the relay itself can read, whatever its clients can (K-04).
const FEATURES: [&str; 3] = [
    "xds.config.resource-in-sotw",
    "xds.config.supports-resource-ttl",
    // No document defines it: an earlier relay sends errors of names only to those who declare it.
    "xds.config.supports-resource-errors",
];

/// Returns the node with the ids of the relays that its clients have come through.
#[must_use]
pub fn come_through(mut node: Node, relays: Vec<String>) -> Node {
    let values = relays.into_iter().map(|id| Value {
        kind: Some(value::Kind::StringValue(id)),
    });
    let list = ListValue {
        values: values.collect(),
    };
    if !list.values.is_empty() {
        let list = Value {
            kind: Some(value::Kind::ListValue(list)),
        };
        let metadata = node.metadata.get_or_insert_default();
        metadata.fields.insert(RELAYS.to_owned(), list);
    }
    node
}

/// Returns the node with the relay's own id, features and software.
pub(super) fn stamped(mut node: Node, relay_id: &str) -> Node {
    // K-25: every relay adds its id, so that a relay that finds its own id refuses the stream.
    let fields = &mut node.metadata.get_or_insert_with(Struct::default).fields;
    let mut relays = match fields.remove(RELAYS).and_then(|value| value.kind) {
        Some(value::Kind::ListValue(list)) => list.values,
        other => other.map(|kind| Value { kind: Some(kind) }).into_iter().collect(),
    };
    relays.push(Value {
        kind: Some(value::Kind::StringValue(relay_id.to_owned())),
    });
    let list = value::Kind::ListValue(ListValue { values: relays });
    fields.insert(RELAYS.to_owned(), Value { kind: Some(list) });
    for feature in FEATURES {
        if !node.client_features.iter().any(|known| known == feature) {
            node.client_features.push(feature.to_owned());
        }
    }
    // K-04: if the classes distinguish clients by software, the server sees that of the clients.
    if node.user_agent_name.is_empty() {
        node.user_agent_name = "distributary".to_owned();
        node.user_agent_version_type = Some(UserAgentVersionType::UserAgentVersion(
            env!("CARGO_PKG_VERSION").to_owned(),
        ));
    }
    node
}
