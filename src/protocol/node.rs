//! Reads a node from a request.
//!
//! Owns which parts of a node the relay reads, and drops the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::user_agent;
use classes::{Features, Locality, Node, RELAYS, member_path};
use proto::envoy::config::core::v3 as core;
use proto::google::protobuf::{Struct, Value, value::Kind};

/// How deep metadata is read; members below that cannot be part of a key.
const DEPTH_MAX: usize = 16;

/// Returns the parts of a node that the relay uses.
#[must_use]
pub fn read_node(node: &core::Node) -> Node {
    let locality = node.locality.clone().unwrap_or_default();
    let mut metadata = BTreeMap::new();
    if let Some(members) = &node.metadata {
        flatten("", members, 0, &mut metadata);
    }
    let relays = relays(node);
    let mut features = Features::read(node.client_features.iter().map(String::as_str), &node.user_agent_name);
    // A relay may pass on the user agent of its clients. It is no Envoy: it names the features that it has.
    features.envoy &= relays.is_empty();
    Node {
        id: node.id.as_str().into(),
        cluster: node.cluster.as_str().into(),
        locality: Locality {
            region: locality.region,
            zone: locality.zone,
            sub_zone: locality.sub_zone,
        },
        metadata,
        features,
        relays: relays.into(),
        user_agent: Arc::new(user_agent::read(node)),
        class: Arc::default(),
        passed: None,
    }
}

/// Returns the relays that a request has come through (K-25).
pub(super) fn relays(node: &core::Node) -> Vec<String> {
    let members = node.metadata.as_ref().and_then(|members| members.fields.get(RELAYS));
    match members.and_then(|value| value.kind.as_ref()) {
        Some(Kind::ListValue(list)) => list.values.iter().filter_map(text).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn flatten(path: &str, members: &Struct, depth: usize, into: &mut BTreeMap<String, String>) {
    for (key, value) in &members.fields {
        let path = member_path(path, key);
        match &value.kind {
            Some(Kind::StructValue(inner)) if depth < DEPTH_MAX => flatten(&path, inner, depth + 1, into),
            Some(_) => into.extend(text(value).map(|text| (path, text))),
            None => {}
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value.kind.as_ref()? {
        Kind::StringValue(text) => Some(text.clone()),
        Kind::NumberValue(number) => Some(number.to_string()),
        Kind::BoolValue(yes) => Some(yes.to_string()),
        Kind::NullValue(_) | Kind::StructValue(_) | Kind::ListValue(_) => None,
    }
}
