// SPDX-License-Identifier: Apache-2.0
//! Checks that classes and rules fit together.
//!
//! Owns the warning about clients that choose their class themselves although rules tell them apart. Does not forbid it: what other
//! classes have may be for all.

use std::sync::Arc;

use super::Check;
use crate::classes::{Rule, Selector};
use crate::json::Place;
use crate::xds::{Access, AccessRule};

/// Warns of fields by which clients choose a class, and which a rule lets them state as they like: a class has what control planes say
/// to it, whoever is in it.
pub(super) fn classes_and_rules<'a>(
    check: &mut Check,
    classes: impl Iterator<Item = (&'a Arc<Rule>, Place)>,
    access: &Access,
) {
    let by_identity = |rule: &&Arc<AccessRule>| rule.allow && rule.identities.iter().any(|pattern| !pattern.is_any());
    for (at, (class, place)) in classes.enumerate() {
        let mut told: Vec<&Selector> = Vec::new();
        let fields = class.key.iter().chain(class.matches.iter().map(|(field, _)| field));
        for field in fields.filter(|field| is_stated(field)) {
            let mut rules = access.rules().iter().enumerate().filter(|(_, rule)| by_identity(rule));
            let Some((number, rule)) = rules.find(|(_, rule)| !rule.binds(field)) else {
                continue;
            };
            if told.contains(&field) {
                continue;
            }
            told.push(field);
            let condition = condition(field);
            let message = format!(
                "clients choose `{field}` themselves, and rules[{number}] `{}` does not say which one they may state: a client that it \
                 allows is served what control planes say to clients with any other `{field}`; write `nodes: {condition}` into the rule, \
                 or take the class from `identity`",
                rule.name
            );
            check.warn(place, format!("classes[{at}]"), message);
        }
    }
}

/// Whether it is a part of the node that a rule can be about.
const fn is_stated(field: &Selector) -> bool {
    matches!(field, Selector::Id | Selector::Cluster | Selector::Metadata(_))
}

/// Returns what to write under `nodes`.
fn condition(field: &Selector) -> String {
    if let Selector::Metadata(path) = field {
        return format!("{{ metadata: {{ {path}: ... }} }}");
    }
    format!("{{ {field}: ... }}")
}
