// SPDX-License-Identifier: Apache-2.0
//! Rules as text, for people who have to write one.
//!
//! Owns the text of rules and of the advice that would divide a class. Does not read it: the configuration does.

use std::fmt;

use super::{Classes, Piece, Rule};
use crate::Class;
use crate::passes::{Member, Members, Passes};
use crate::selector::Selector;

impl Classes {
    /// Returns what to write so that `field` divides the clients of this class.
    pub fn advice(&self, class: &Class, field: &Selector) -> String {
        let Some(rule) = &class.rule else {
            let rule = Rule {
                key: vec![field.clone()],
                ..Rule::default()
            };
            return if self.rules().is_empty() {
                format!("`classes: [{rule}]`")
            } else {
                format!("`{rule}` as the last of `classes`")
            };
        };
        let mut divided = Rule::clone(rule);
        if let Some(id) = &mut divided.id {
            id.extend([Piece::Text("/".to_owned()), Piece::Key(divided.key.len())]);
        }
        divided.key.push(field.clone());
        match self.position(rule) {
            Some(at) => format!("`{divided}` as `classes[{at}]`"),
            None => format!("`{divided}` among `classes`"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if !self.matches.is_empty() {
            let patterns = self.matches.iter();
            let patterns = patterns
                .map(|(field, pattern)| format!("{}: {}", scalar(&field.to_string()), scalar(&pattern.to_string())));
            parts.push(format!("match: {{ {} }}", patterns.collect::<Vec<_>>().join(", ")));
        }
        if !self.key.is_empty() {
            let fields = self.key.iter().map(|field| scalar(&field.to_string()));
            parts.push(format!("key: [{}]", fields.collect::<Vec<_>>().join(", ")));
        }
        let node = [("id", &self.id), ("cluster", &self.cluster)].into_iter();
        let node =
            node.filter_map(|(name, pieces)| Some(format!("{name}: {}", scalar(&self.template(pieces.as_ref()?)))));
        let node: Vec<String> = node.chain(self.passed()).collect();
        if self.passes == Passes::Whole {
            parts.push("node: client".to_owned());
        } else if !node.is_empty() {
            parts.push(format!("node: {{ {} }}", node.join(", ")));
        }
        write!(f, "{{ {} }}", parts.join(", "))
    }
}

impl Rule {
    fn passed(&self) -> impl Iterator<Item = String> {
        let Passes::Parts(parts) = &self.passes else {
            return Vec::new().into_iter();
        };
        let metadata = match &parts.metadata {
            Members::All => Some("metadata: all".to_owned()),
            Members::These(these) if these.is_empty() => None,
            Members::These(these) => {
                let member = |one: &Member| scalar(&format!("{}{}", one.path, if one.below { ".*" } else { "" }));
                Some(format!(
                    "metadata: [{}]",
                    these.iter().map(member).collect::<Vec<_>>().join(", ")
                ))
            }
        };
        let locality = parts.locality.then(|| "locality: client".to_owned());
        let user_agent = parts.user_agent.then(|| "user_agent: client".to_owned());
        metadata
            .into_iter()
            .chain(locality)
            .chain(user_agent)
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn template(&self, pieces: &[Piece]) -> String {
        let pieces = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
            Piece::Key(at) => self
                .key
                .get(*at)
                .map_or_else(String::new, |field| format!("{{{field}}}")),
        });
        pieces.collect()
    }
}

/// Returns a text as YAML, in single quotes or without any.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/~".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
