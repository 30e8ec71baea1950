// SPDX-License-Identifier: Apache-2.0
//! A bootstrap that a client has. Owns how it is read and printed again, and how its faults are said; does not know what is in it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use prost::Message as _;
use serde_json::{Value, json};

use super::Plan;
use crate::config::{self, Endpoint};
use crate::json::{Bounds, Schemas, Tree, Unknown};
use crate::proto::envoy::config::core::v3::Node;

/// The file, as it was written.
pub(super) struct Given {
    path: PathBuf,
    text: String,
    pub(super) value: Value,
}

impl Given {
    /// Reads JSON, or YAML as well.
    pub(super) fn read(path: &Path, yaml: bool) -> anyhow::Result<Self> {
        let bytes = config::read(path)?;
        let read = if yaml { Tree::yaml } else { Tree::json };
        let tree = read(&bytes, Bounds::FILE).map_err(|fault| {
            let template = bytes.windows(2).any(|two| two == b"{{");
            let hint = if template {
                "; if it is a template, fill it in first"
            } else {
                ""
            };
            anyhow::anyhow!("{}: {fault}{hint}", path.display())
        })?;
        let value = serde_json::from_str(&tree.to_json()).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self {
            path: path.to_owned(),
            text,
            value,
        })
    }

    /// Returns the node that it is the bootstrap of.
    pub(super) fn node(&self) -> anyhow::Result<Node> {
        let Some(node) = member(&self.value, "node") else {
            return Err(self.fault("node", "it names no node"));
        };
        if node.to_string().contains("{{") {
            return Err(self.fault("{{", "the node is a template; fill it in first"));
        }
        let tree = Tree::json(&serde_json::to_vec(node)?, Bounds::FILE)?;
        let encoded = Schemas::standard().encode("envoy.config.core.v3.Node", &tree, "node", Unknown::Ignore);
        let encoded = encoded.map_err(|fault| self.fault("node", &format!("{}: {}", fault.path, fault.message)))?;
        Ok(Node::decode(encoded.value)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error about what the file says, with the line on which this stands first.
    pub(super) fn fault(&self, about: &str, what: &str) -> anyhow::Error {
        let line = self
            .text
            .lines()
            .position(|line| line.contains(about))
            .unwrap_or_default()
            + 1;
        anyhow::anyhow!("{}: line {line}: {what}", self.path.display())
    }

    /// Returns a value in the form of the file.
    pub(super) fn printed(&self, value: &Value) -> anyhow::Result<String> {
        let tree = Tree::json(&serde_json::to_vec(value)?, Bounds::FILE)?;
        let is_json = self.text.trim_start().starts_with('{');
        Ok(if is_json { tree.to_json() } else { tree.to_yaml() })
    }

    /// Returns the file of a relay that asks these servers in place of the client.
    pub(super) fn relay_file(&self, plan: &Plan, upstream: &Value) -> anyhow::Result<String> {
        let address = match plan.relays.first() {
            Some(Endpoint::Tcp { port, .. }) => format!("0.0.0.0:{port}"),
            Some(unix @ Endpoint::Unix(_)) => unix.to_string(),
            None => return Err(anyhow::anyhow!("--relay is missing")),
        };
        let whole = json!({"listeners": [{"address": address}], "upstream": upstream});
        let tree = Tree::json(&serde_json::to_vec(&whole)?, Bounds::FILE)?;
        let path = self.path.display();
        Ok(format!(
            "# For a relay in front of what {path} asks: distributary serve FILE\n{}",
            tree.to_yaml()
        ))
    }
}

/// Returns the member of this name, which Envoy also takes in camel case.
pub(super) fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get(camel(name)))
}

/// The same, to change it.
pub(super) fn member_mut<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let written = if value.get(name).is_some() {
        name.to_owned()
    } else {
        camel(name)
    };
    value.get_mut(written)
}

/// Returns the text of a member.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    member(value, name)?.as_str()
}

/// Sets a member of a mapping.
pub(super) fn set(value: &mut Value, name: &str, to: Value) {
    if let Some(members) = value.as_object_mut() {
        members.insert(name.to_owned(), to);
    }
}

/// Returns the elements of a list of this name.
pub(super) fn elements<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    member(value, name).and_then(Value::as_array).into_iter().flatten()
}

/// Returns a name as JSON for Envoy may have it.
pub(super) fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, rest) = word.split_at(word.len().min(1));
        text + &head.to_uppercase() + rest
    })
}
