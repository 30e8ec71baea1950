// SPDX-License-Identifier: Apache-2.0
//! A node as a set of fields, so that several can be mixed.
//!
//! Owns how the node of a bootstrap is read, and how fields become a node again. Asks nobody.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use prost::Message as _;
use serde_json::{Map, Value};

use crate::classes::{self, Selector};
use crate::cli::bootstrap;
use crate::json::{Bounds, Schemas, Secrets, Tree, Unknown};
use crate::proto::envoy::config::core::v3 as core;
use crate::xds::printable;

/// The keys that lead to a part of a node that has no parts itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeField(Vec<String>);

/// What a node says of itself, except its id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeFields(BTreeMap<NodeField, Value>);

/// The node of a client.
pub(super) struct SurveyedClient {
    /// The file that has it.
    pub(super) file: String,
    pub(super) id: String,
    pub(super) fields: NodeFields,
}

const NODE: &str = "envoy.config.core.v3.Node";

impl SurveyedClient {
    /// Reads the node of a bootstrap.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut node = bootstrap::node_in(path, false)?;
        let id = std::mem::take(&mut node.id);
        // The relay has features of its own.
        node.client_features.clear();
        let json = Schemas::standard().decode(NODE, &node.encode_to_vec(), Secrets::Show)?;
        let mut fields = NodeFields::default();
        fields.add(&mut Vec::new(), &serde_json::from_slice(&json.text)?);
        let file = path.display().to_string();
        Ok(Self { file, id, fields })
    }

    /// Returns it as it is.
    pub(super) fn node(&self) -> anyhow::Result<core::Node> {
        self.fields.node(&self.id)
    }
}

impl NodeFields {
    /// Adds all parts of a value that have none themselves.
    fn add(&mut self, path: &mut Vec<String>, value: &Value) {
        let Some(members) = value.as_object().filter(|members| !members.is_empty()) else {
            self.0.insert(NodeField(path.clone()), value.clone());
            return;
        };
        for (key, member) in members {
            path.push(key.clone());
            self.add(path, member);
            path.pop();
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &NodeField> {
        self.0.keys()
    }

    pub(super) fn get(&self, field: &NodeField) -> Option<&Value> {
        self.0.get(field)
    }

    /// Returns those of which this is true.
    pub(super) fn only(&self, is_wanted: impl Fn(&NodeField) -> bool) -> Self {
        let all = self.0.iter().filter(|(field, _)| is_wanted(field));
        Self(all.map(|(field, value)| (field.clone(), value.clone())).collect())
    }

    /// Returns the same with another value of a field.
    pub(super) fn with(&self, field: &NodeField, value: Value) -> Self {
        let mut fields = self.clone();
        fields.0.insert(field.clone(), value);
        fields
    }

    /// Returns the node with these fields and this id.
    pub(super) fn node(&self, id: &str) -> anyhow::Result<core::Node> {
        let mut whole = Value::Object(Map::new());
        for (NodeField(path), value) in &self.0 {
            put(&mut whole, path, value);
        }
        if let Some(members) = whole.as_object_mut() {
            members.insert("id".to_owned(), id.into());
        }
        let tree = Tree::json(&serde_json::to_vec(&whole)?, Bounds::FILE)?;
        let encoded = Schemas::standard().encode(NODE, &tree, "", Unknown::Deny)?;
        Ok(core::Node::decode(encoded.value)?)
    }
}

impl FromIterator<(NodeField, Value)> for NodeFields {
    fn from_iter<T: IntoIterator<Item = (NodeField, Value)>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl NodeField {
    #[cfg(test)]
    pub(super) fn of(path: &[&str]) -> Self {
        Self(path.iter().map(|part| (*part).to_owned()).collect())
    }

    /// Returns the field as a key of a class has it, if one may.
    pub(super) fn selector(&self) -> Option<Selector> {
        let path: Vec<&str> = self.0.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["cluster"] => Some(Selector::Cluster),
            ["locality", "region"] => Some(Selector::Region),
            ["locality", "zone"] => Some(Selector::Zone),
            ["locality", "sub_zone"] => Some(Selector::SubZone),
            ["user_agent_name"] => Some(Selector::UserAgent),
            ["metadata", _, ..] => self.member().map(Selector::Metadata),
            _ => None,
        }
    }

    /// Returns the place in the metadata, if it is there.
    pub(super) fn member(&self) -> Option<classes::Path> {
        let (first, rest) = self.0.split_first()?;
        (first == "metadata" && !rest.is_empty()).then(|| classes::Path::new(rest.iter().map(String::as_str)))
    }

    /// Whether it is this part of the node, or in it.
    pub(super) fn is_of(&self, part: &str) -> bool {
        self.0.first().is_some_and(|first| first.starts_with(part))
    }
}

impl fmt::Display for NodeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.selector() {
            Some(selector) => selector.fmt(f),
            None => f.write_str(&printable(&self.0.join("."))),
        }
    }
}

/// Sets the part to which this path leads. A part and a text may have one name in two nodes: what comes later stays.
fn put(place: &mut Value, path: &[String], value: &Value) {
    let Some((key, rest)) = path.split_first() else {
        return value.clone_into(place);
    };
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Some(members) = place.as_object_mut() {
        put(members.entry(key.clone()).or_insert(Value::Null), rest, value);
    }
}
