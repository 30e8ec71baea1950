// SPDX-License-Identifier: Apache-2.0
//! One rule.
//!
//! Owns when it is about a client. Does not know the other rules.

use std::fmt;
use std::sync::Arc;

use super::Caller;
use crate::worded;
use classes::{Fields, Path, Pattern, Selector};

/// One rule. An empty list is no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// Its name, in messages.
    pub name: String,
    /// Whether it allows or denies.
    pub allow: bool,
    /// The identities that it is about; one of them must match.
    pub identities: Vec<Pattern>,
    /// The ids of the nodes that it is about, with fields of the identity.
    pub ids: Vec<Pattern>,
    /// The clusters of the nodes that it is about, with fields of the identity.
    pub clusters: Vec<Pattern>,
    /// Members of the metadata of the nodes that it is about, each with its values, with fields of the identity.
    pub metadata: Vec<(Path, Vec<Pattern>)>,
    /// The full names of the types that it is about.
    pub types: Arc<[Box<str>]>,
    /// The names of the resources that it is about, with fields of the identity.
    pub names: Arc<[Pattern]>,
    /// The ways of asking that it is about.
    pub ways: Vec<Way>,
    /// K-25: whether it lets clients be relays.
    pub relay: bool,
}

worded! {
/// A way of asking for resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A stream in state of the world.
    #[default]
    Sotw = "sotw",
    /// A delta stream.
    Delta = "delta",
    /// A poll over HTTP, or a unary call.
    Rest = "rest",
    /// Questions about all clients, by CSDS. A rule that names no ways is not about them.
    Csds = "csds",
}
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Default for AccessRule {
    /// A rule that allows everything to everybody.
    fn default() -> Self {
        Self {
            name: String::new(),
            allow: true,
            identities: Vec::new(),
            ids: Vec::new(),
            clusters: Vec::new(),
            metadata: Vec::new(),
            types: Arc::default(),
            names: Arc::default(),
            ways: Vec::new(),
            relay: false,
        }
    }
}

impl AccessRule {
    /// Whether it is about every client and every resource.
    pub fn is_about_all(&self) -> bool {
        let everybody = self.identities.is_empty() && self.ids.is_empty() && self.clusters.is_empty();
        everybody && self.metadata.is_empty() && self.ways.is_empty() && self.is_about_everything()
    }

    /// Whether it is about every resource.
    pub(super) fn is_about_everything(&self) -> bool {
        self.types.is_empty() && (self.names.is_empty() || self.names.iter().any(Pattern::is_any))
    }

    /// Whether it says which value clients may state in a field of their nodes.
    pub fn binds(&self, field: &Selector) -> bool {
        match field {
            Selector::Id => !self.ids.is_empty(),
            Selector::Cluster => !self.clusters.is_empty(),
            Selector::Metadata(path) => self.metadata.iter().any(|(member, _)| member == path),
            Selector::Region
            | Selector::Zone
            | Selector::SubZone
            | Selector::UserAgent
            | Selector::Identity(_)
            | Selector::Field(_) => false,
        }
    }

    /// Returns what the fields of the identity stand for: once for each way in which the rule is about the client, and never if it is
    /// about others.
    pub(super) fn bindings(&self, caller: &Caller<'_>) -> Vec<Fields> {
        self.known(caller)
            .into_iter()
            .filter(|fields| self.objects(caller, fields).is_none())
            .collect()
    }

    /// Returns the same for the identity alone.
    pub(super) fn known(&self, caller: &Caller<'_>) -> Vec<Fields> {
        if self.identities.is_empty() {
            return vec![Fields::default()];
        }
        let found = self.identities.iter().flat_map(|pattern| {
            let texts = caller.identity.iter();
            texts.filter_map(|text| pattern.found(text))
        });
        found.collect()
    }

    /// Returns why the rule is not about a client whose identity it is about.
    pub(super) fn objects(&self, caller: &Caller<'_>, fields: &Fields) -> Option<String> {
        let any_way = self.ways.is_empty() && caller.way != Way::Csds;
        if !any_way && !self.ways.contains(&caller.way) {
            return Some(format!("it is not about {}", caller.way));
        }
        let differs = |patterns: &[Pattern], text: &str| {
            let filled: Vec<Pattern> = patterns.iter().map(|pattern| pattern.filled(fields)).collect();
            let none = !filled.is_empty() && !filled.iter().any(|pattern| pattern.matches(text));
            none.then(|| {
                filled
                    .iter()
                    .map(|one| format!("`{one}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            })
        };
        let node = caller.node;
        let members = self.metadata.iter().map(|(path, patterns)| {
            let value = node.metadata.get(path.as_str()).map_or("", String::as_str);
            (format!("metadata.{path}"), value, patterns)
        });
        let parts = [
            ("id", &*node.id, &self.ids),
            ("cluster", &*node.cluster, &self.clusters),
        ];
        let parts = parts
            .into_iter()
            .map(|(what, text, patterns)| (what.to_owned(), text, patterns));
        parts.chain(members).find_map(|(what, text, patterns)| {
            let patterns = differs(patterns, text)?;
            Some(format!(
                "the node's {what} `{}` does not match {patterns}",
                super::shown(text)
            ))
        })
    }
}
