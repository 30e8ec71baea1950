// SPDX-License-Identifier: Apache-2.0
//! The node that the relay sends to servers (E-01).
//!
//! Owns what every upstream node has in common, and its encoding. Knows nothing of classes, and not which requests have it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use classes::RELAYS;
use prost::Message as _;
use proto::envoy::config::core::v3::{Node, node::UserAgentVersionType};
use proto::google::protobuf::{ListValue, Value, value};
use xds::{Dialect, put_field};

use crate::node::relays;

/// How the relay presents itself to one server.
#[derive(Debug)]
pub(super) struct Introduction {
    /// What all streams of a view have in common of the node; shared, because a client's own node can be large.
    node: Arc<Node>,
    /// The relays that ask through this one.
    relays: Vec<String>,
    /// The node as a field of a request, once one was sent in this dialect. All requests share the bytes.
    field: Option<(Dialect, Bytes)>,
}

/// What the relay itself can read, whatever its clients can (K-04).
const FEATURES: [&str; 3] = [
    "xds.config.resource-in-sotw",
    "xds.config.supports-resource-ttl",
    // No document defines it: an earlier relay sends errors of names only to those who declare it.
    "xds.config.supports-resource-errors",
];

impl Introduction {
    pub(super) const fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            relays: Vec::new(),
            field: None,
        }
    }

    /// Returns the same for another stream.
    pub(super) fn beside(&self) -> Self {
        Self {
            relays: self.relays.clone(),
            ..Self::new(self.node.clone())
        }
    }

    /// K-25: these relays ask through this one.
    pub(super) fn come_through(&mut self, relays: Vec<String>) {
        self.relays = relays;
        self.field = None;
    }

    pub(super) fn comes_through(&self, relay: &str) -> bool {
        self.relays.iter().any(|known| known == relay)
    }

    /// Returns the node, of the relay with this id, with what every relay can do and its software.
    pub(super) fn node(&self, relay_id: &str) -> Node {
        // K-25: every relay adds its id, so that a relay that finds its own id refuses the stream.
        let mut relays = match self.relays.is_empty() {
            true => relays(&self.node),
            false => self.relays.clone(),
        };
        relays.push(relay_id.to_owned());
        let mut node = come_through((*self.node).clone(), relays);
        for feature in FEATURES {
            if !node.client_features.iter().any(|known| known == feature) {
                node.client_features.push(feature.to_owned());
            }
        }
        // K-04: if the classes distinguish clients by software, the server sees that of the clients.
        if node.user_agent_name.is_empty() {
            node.user_agent_name = "distributary".to_owned();
            let version = env!("CARGO_PKG_VERSION").to_owned();
            node.user_agent_version_type = Some(UserAgentVersionType::UserAgentVersion(version));
        }
        node
    }

    /// Returns the same as a field of a request.
    pub(super) fn field(&mut self, dialect: Dialect, relay_id: &str) -> Bytes {
        if let Some((_, field)) = self.field.as_ref().filter(|(of, _)| *of == dialect) {
            return field.clone();
        }
        let number = match dialect {
            Dialect::Sotw => 2,
            Dialect::Delta => 1,
        };
        let mut field = BytesMut::new();
        put_field(&mut field, number, &self.node(relay_id).encode_to_vec());
        let field = field.freeze();
        self.field = Some((dialect, field.clone()));
        field
    }

    /// Returns the bytes that the server was sent last.
    pub(super) fn sent(&self) -> &[u8] {
        self.field.as_ref().map_or(&[], |(_, field)| field.as_ref())
    }
}

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
