// SPDX-License-Identifier: Apache-2.0
//! Reads a node from a request.
//!
//! Owns which parts of a node the relay reads, and drops the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::user_agent;
use classes::{Features, Locality, Marks, Node, RELAYS, member_path};
use prost::Message as _;
use proto::envoy::config::core::v3 as core;
use proto::google::protobuf::{Struct, Value, value::Kind};

/// How deep metadata is read; members below that cannot be part of a key.
const DEPTH_MAX: usize = 16;

/// How many times the size of the metadata its members may have together. Each is kept with its whole place, so a long key with
/// many members under it would take a multiple of what the client has sent.
const EXPANSION_MAX: usize = 8;

/// Returns the parts of a node that the relay uses.
#[must_use]
pub fn read_node(node: &core::Node) -> Node {
    let locality = node.locality.clone().unwrap_or_default();
    let mut metadata = BTreeMap::new();
    if let Some(members) = &node.metadata {
        let mut room = members.encoded_len().saturating_mul(EXPANSION_MAX);
        flatten("", members, 0, &mut room, &mut metadata);
    }
    let marks = Marks::of(&relays(node)).map(Arc::new);
    let mut features = Features::read(node.client_features.iter().map(String::as_str), &node.user_agent_name);
    // A relay may pass on the user agent of its clients. It is no Envoy: it names the features that it has.
    features.envoy &= marks.is_none();
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
        marks,
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

/// Reads members, up to the first one for which there is no room.
fn flatten(path: &str, members: &Struct, depth: usize, room: &mut usize, into: &mut BTreeMap<String, String>) {
    for (key, value) in &members.fields {
        let path = member_path(path, key);
        let text = text(value);
        let taken = path.len() + text.as_ref().map_or(0, String::len);
        let Some(left) = room.checked_sub(taken) else {
            *room = 0;
            return;
        };
        *room = left;
        match &value.kind {
            Some(Kind::StructValue(inner)) if depth < DEPTH_MAX => flatten(&path, inner, depth + 1, room, into),
            Some(_) => into.extend(text.map(|text| (path, text))),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value {
            kind: Some(Kind::StringValue(text.to_owned())),
        }
    }

    fn members(members: impl IntoIterator<Item = (String, Value)>) -> Struct {
        Struct {
            fields: members.into_iter().collect(),
        }
    }

    /// Returns the size of what is read of the metadata, and of the metadata.
    fn sizes(metadata: Struct) -> (usize, usize) {
        let sent = metadata.encoded_len();
        let node = core::Node {
            metadata: Some(metadata),
            ..core::Node::default()
        };
        let kept = read_node(&node).metadata;
        (kept.iter().map(|(path, text)| path.len() + text.len()).sum(), sent)
    }

    /// A client that sends 64 KiB makes the relay keep a small multiple of it, however the keys are nested.
    #[test]
    fn long_keys_with_many_members_are_not_copied_for_each() {
        let inner = |count: usize| members((0..count).map(|at| (at.to_string(), text("x"))));
        let under = |key: String, inner: Struct| {
            let kind = Some(Kind::StructValue(inner));
            members([(key, Value { kind })])
        };
        let (kept, sent) = sizes(under("k".repeat(32_000), inner(2_700)));
        assert!(kept > sent && kept <= EXPANSION_MAX * sent, "{kept} of {sent}");
        let deep = (0..15).fold(inner(2_700), |inner, _| under("k".repeat(2_000), inner));
        let (kept, sent) = sizes(deep);
        assert!(kept <= EXPANSION_MAX * sent, "{kept} of {sent}");
        // What clients have is read in full.
        let labels = under("LABELS".to_owned(), under("app.kubernetes.io".to_owned(), inner(100)));
        assert!(
            sizes(labels.clone()).0 > 100 * r#"LABELS."app.kubernetes.io".9"#.len(),
            "{:?}",
            sizes(labels)
        );
    }
}
