// SPDX-License-Identifier: Apache-2.0
//! A class of clients: those that share views.
//!
//! Owns what a control plane sees of a class, and with which credentials. Does not decide who belongs to it: that is in `rules`.

use std::fmt;
use std::sync::Arc;

use super::credentials::{CredentialFiles, Unfit};
use super::passes::Taken;
use super::presented::Presented;
use super::rules::{Piece, Rule};
use proto::envoy::config::core::v3 as core;

/// Which clients may share names and wildcards (K-02): the rule that matched, and its key's values. Equal rules are one rule, wherever
/// they stand, so a class outlives a change of the other rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The rule; `None` if no rule matched.
    pub rule: Option<Arc<Rule>>,
    /// The values of its key, in order.
    pub key: Arc<[String]>,
    /// Features that change what a server sends (K-04).
    pub endpoint_collections: bool,
}

impl Class {
    /// Whether the two differ in nothing except what their clients can read.
    pub fn is_alike(&self, other: &Self) -> bool {
        (&self.rule, &self.key) == (&other.rule, &other.key)
    }

    /// Returns the class of clients that read the same, whatever else divides them.
    pub fn shared(&self) -> Self {
        Self {
            endpoint_collections: self.endpoint_collections,
            ..Self::default()
        }
    }

    /// Returns the class's own credential files, if it has any.
    ///
    /// # Errors
    ///
    /// K-29: the class has files of its own, and a value of its key cannot be a part of their paths.
    pub fn credentials(&self) -> Result<Option<CredentialFiles>, Unfit> {
        let own = self
            .rule
            .as_ref()
            .and_then(|rule| Some((rule, rule.credentials.as_ref()?)));
        own.map(|(rule, own)| own.files(&rule.key, &self.key)).transpose()
    }

    /// Returns the part of a client's node that is passed on; `wire` is the node as it came.
    pub fn take(&self, wire: &core::Node) -> Option<Arc<Taken>> {
        self.rule.as_ref()?.passes.take(wire)
    }

    /// Returns what the control plane sees of the class.
    pub fn presented(&self) -> Presented {
        let endpoint_collections = self.endpoint_collections;
        let Some(rule) = &self.rule else {
            return Presented {
                endpoint_collections,
                ..Presented::default()
            };
        };
        let text = |pieces: &Vec<Piece>| Piece::fill(pieces, &self.key);
        Presented {
            common: rule.key.iter().cloned().zip(self.key.iter().cloned()).collect(),
            id: rule.id.as_ref().map(text),
            cluster: rule.cluster.as_ref().map(text),
            passes: rule.passes.clone(),
            passed: None,
            endpoint_collections,
        }
    }
}

/// What the clients of the class have in common: `field=value`, with commas between them; `-` if nothing.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let common = self.presented().common;
        if common.is_empty() {
            return f.write_str("-");
        }
        let common: Vec<String> = common.iter().map(|(field, value)| format!("{field}={value}")).collect();
        f.write_str(&common.join(","))
    }
}
