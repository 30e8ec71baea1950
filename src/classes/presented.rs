// SPDX-License-Identifier: Apache-2.0
//! The node that a control plane sees for a class (K-04).
//!
//! Owns how the relay's own node and what the clients of a class have in common become one node. Knows nothing of streams.

use std::sync::Arc;

use super::node::ENDPOINT_COLLECTIONS;
use super::passes::{Passes, Taken, put, remove};
use super::selector::Selector;
use proto::envoy::config::core::v3 as core;
use proto::google::protobuf::{Value, value::Kind};

/// What a control plane sees of a class, on top of the relay's own node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presented {
    /// What the clients of the class have in common: the fields of the key and their values.
    pub common: Vec<(Selector, String)>,
    /// The id that the rule sets. If it sets none, the id is the client's own, or one that distinguishes the keys (K-28).
    pub id: Option<String>,
    /// The cluster that the rule sets.
    pub cluster: Option<String>,
    /// What is passed on of the client that opened the view.
    pub passes: Passes,
    /// What was taken from that client's node.
    pub passed: Option<Arc<Taken>>,
    /// Whether the clients of the class read collections of endpoints.
    pub endpoint_collections: bool,
}

impl Presented {
    /// Returns the node for the class: the relay's own, then what the clients have in common, then what is passed on of the
    /// client that opened the view, then what the rule sets. The later wins.
    #[must_use]
    pub fn over(&self, relay: &core::Node) -> core::Node {
        let mut node = relay.clone();
        for (field, value) in &self.common {
            write(&mut node, field, value);
        }
        node = self.passes.give(self.passed.as_deref(), node);
        let opened = (self.passes == Passes::Whole).then(|| std::mem::take(&mut node.id));
        node.id = self.id(opened, &relay.id);
        if let Some(cluster) = &self.cluster {
            node.cluster.clone_from(cluster);
        }
        // K-04: the server must see this feature exactly if these clients have it.
        node.client_features.retain(|feature| feature != ENDPOINT_COLLECTIONS);
        if self.endpoint_collections {
            node.client_features.push(ENDPOINT_COLLECTIONS.to_owned());
        }
        node
    }

    /// K-28: returns the node id. Control planes store what they have for a node by its id, so different keys need different ids.
    fn id(&self, opened: Option<String>, relay: &str) -> String {
        let clients = self.common.iter().find(|(field, _)| *field == Selector::Id);
        let given = self.id.clone().or_else(|| clients.map(|(_, id)| id.clone())).or(opened);
        // Servers refuse a node without an id.
        given
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| key_id(relay, &self.common))
    }
}

/// Returns `relay/cluster=edge/metadata.TENANT=gold`; different keys never give the same text.
fn key_id(relay: &str, key: &[(Selector, String)]) -> String {
    let mut id = relay.to_owned();
    for (field, value) in key {
        id.push('/');
        id.push_str(&escaped(&field.to_string()));
        id.push('=');
        id.push_str(&escaped(value));
    }
    id
}

/// Returns the text with `/`, `=`, `%` and control characters percent-encoded.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '/' | '=' | '%') || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn write(node: &mut core::Node, field: &Selector, value: &str) {
    let locality = |node: &mut core::Node, part: fn(&mut core::Locality) -> &mut String| {
        value.clone_into(part(node.locality.get_or_insert_default()));
    };
    match field {
        // The id depends on the whole key; an identity is no part of a node.
        Selector::Id | Selector::Identity(_) | Selector::Field(_) => {}
        Selector::Cluster => value.clone_into(&mut node.cluster),
        Selector::Region => locality(node, |locality| &mut locality.region),
        Selector::Zone => locality(node, |locality| &mut locality.zone),
        Selector::SubZone => locality(node, |locality| &mut locality.sub_zone),
        Selector::UserAgent => value.clone_into(&mut node.user_agent_name),
        // An empty value is an absent member.
        Selector::Metadata(path) if value.is_empty() => remove(node.metadata.get_or_insert_default(), path.parts()),
        Selector::Metadata(path) => {
            let text = Kind::StringValue(value.to_owned());
            put(
                node.metadata.get_or_insert_default(),
                path.parts(),
                Value { kind: Some(text) },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;
    use proto::google::protobuf::Struct;

    fn relay() -> core::Node {
        core::Node {
            id: "relay-1".to_owned(),
            cluster: "relays".to_owned(),
            user_agent_name: "distributary".to_owned(),
            locality: Some(core::Locality {
                region: "eu".to_owned(),
                zone: "eu-1a".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// K-28: different keys never give the same id, whatever their values look like when they are joined.
    #[test]
    fn no_two_classes_have_one_id() {
        let values = [
            "",
            "a",
            "a/b",
            "b",
            "b/c",
            "a=b",
            "/",
            "=",
            "%2F",
            "a%2Fb",
            "b/locality.zone=c",
            "c/locality.zone=a",
        ];
        let id = |cluster: &str, zone: &str| {
            let common = [(Selector::Cluster, cluster), (Selector::Zone, zone)];
            let common = common.into_iter().map(|(field, value)| (field, value.to_owned()));
            let presented = Presented {
                common: common.collect(),
                ..Presented::default()
            };
            presented.over(&relay()).id
        };
        let pairs = values.iter().flat_map(|cluster| values.map(|zone| id(cluster, zone)));
        let ids: std::collections::BTreeSet<String> = pairs.collect();
        assert_eq!(ids.len(), values.len() * values.len());
    }

    /// K-04: without anything in common the relay shows itself.
    #[test]
    fn a_class_without_a_key_is_the_relay() {
        assert_eq!(Presented::default().over(&relay()), relay());
    }

    /// K-03, K-04: the control plane sees what divides the classes, and the relay's own values for the rest.
    #[test]
    fn what_clients_have_in_common_replaces_what_the_relay_is() {
        let common = [
            (Selector::Cluster, "edge"),
            (Selector::Zone, "eu-1b"),
            (Selector::Metadata(Path::new(["TENANT"])), "gold"),
            (Selector::Metadata(Path::new(["mesh", "app.io/name"])), "m"),
            (Selector::Metadata(Path::new(["mesh", "network"])), "n"),
            (Selector::Id, ""),
        ];
        let presented = Presented {
            common: common
                .into_iter()
                .map(|(field, value)| (field, value.to_owned()))
                .collect(),
            ..Presented::default()
        };
        let node = presented.over(&relay());
        let id = "relay-1/cluster=edge/locality.zone=eu-1b/metadata.TENANT=gold/metadata.mesh.\"app.io%2Fname\"=m/metadata.mesh.network=n/id=";
        assert_eq!((node.id.as_str(), node.cluster.as_str()), (id, "edge"));
        assert_eq!(node.user_agent_name, "distributary");
        let locality = node.locality.unwrap();
        assert_eq!((locality.region.as_str(), locality.zone.as_str()), ("eu", "eu-1b"));
        let text = |text: &str| Value {
            kind: Some(Kind::StringValue(text.to_owned())),
        };
        let mesh = Struct {
            fields: [("app.io/name".to_owned(), text("m")), ("network".to_owned(), text("n"))].into(),
        };
        let fields = [
            ("TENANT".to_owned(), text("gold")),
            (
                "mesh".to_owned(),
                Value {
                    kind: Some(Kind::StructValue(mesh)),
                },
            ),
        ];
        assert_eq!(node.metadata, Some(Struct { fields: fields.into() }));
    }

    /// K-28: a control plane that stores what it has by node id can distinguish whatever the key distinguishes.
    #[test]
    fn different_keys_have_different_ids() {
        let id = |key: &[(Selector, &str)], id: Option<&str>| {
            let presented = Presented {
                common: key
                    .iter()
                    .map(|(field, value)| (field.clone(), (*value).to_owned()))
                    .collect(),
                id: id.map(str::to_owned),
                ..Presented::default()
            };
            presented.over(&relay()).id
        };
        let two = |one, other| id(&[(Selector::Cluster, one), (Selector::Zone, other)], None);
        assert_eq!(two("edge", "eu"), "relay-1/cluster=edge/locality.zone=eu");
        let values = [
            "",
            "a",
            "a/b",
            "b/c",
            "c",
            "=",
            "%",
            "%2F",
            "/",
            "a/locality.zone=b",
            "a%2Flocality.zone=b",
            "\n",
            "ü",
            "ü\u{85}",
        ];
        let ids: Vec<String> = values
            .iter()
            .flat_map(|one| values.iter().map(move |other| two(one, other)))
            .collect();
        assert!(
            ids.iter()
                .all(|id| id.matches(['/', '=']).count() == 4 && !id.contains(char::is_control)),
            "{ids:?}"
        );
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(id(&[], None), "relay-1");
        assert_eq!(
            id(&[(Selector::Cluster, "edge"), (Selector::Id, "gateway/7")], None),
            "gateway/7"
        );
        assert_eq!(
            id(&[(Selector::Cluster, "edge"), (Selector::Id, "")], None),
            "relay-1/cluster=edge/id="
        );
        assert_eq!(id(&[(Selector::Id, "gateway/7")], Some("x/gateway/7")), "x/gateway/7");
        // Servers refuse a node without an id.
        assert_eq!(id(&[(Selector::Cluster, "edge")], Some("")), "relay-1/cluster=edge");
    }

    #[test]
    fn the_rule_has_the_last_word() {
        let presented = Presented {
            common: vec![
                (Selector::Id, "gateway-7".to_owned()),
                (Selector::Cluster, "edge".to_owned()),
            ],
            id: Some("relay/gateway-7".to_owned()),
            ..Presented::default()
        };
        let node = presented.over(&relay());
        assert_eq!((node.id.as_str(), node.cluster.as_str()), ("relay/gateway-7", "edge"));
    }

    /// K-04: the node has the features of the class that change what a server sends, whatever the relay's own node has.
    #[test]
    fn the_server_knows_what_the_clients_read() {
        let reads = |endpoint_collections, relay: &core::Node| {
            let presented = Presented {
                endpoint_collections,
                ..Presented::default()
            };
            presented.over(relay).client_features
        };
        let mut relay = relay();
        relay.client_features = vec!["other".to_owned()];
        let both = ["other".to_owned(), ENDPOINT_COLLECTIONS.to_owned()];
        assert_eq!(reads(true, &relay), both);
        relay.client_features = both.to_vec();
        assert_eq!(reads(true, &relay), both);
        assert_eq!(reads(false, &relay), ["other"]);
    }
}
