// SPDX-License-Identifier: Apache-2.0
//! What was found out, as the `classes` of a relay's configuration.
//!
//! Owns the words, and which rule makes a relay present what changes the answer. Asks nobody.

use serde_json::Value;

use super::node::{NodeField, SurveyedClient};
use super::search::Finding;
use crate::classes::{Member, Members, Parts, Passes, Piece, Rule, Selector};

/// Returns the block, below comments that say why it is so.
pub(super) fn written(found: &Finding, clients: &[SurveyedClient]) -> String {
    let mut text = String::new();
    let mut say = |line: String| text.push_str(&format!("# {line}\n"));
    let unfit = found.key.iter().filter(|field| !fits(field, clients));
    let unfit: Vec<&NodeField> = unfit.chain(found.there.iter().filter(|field| !passes(field))).collect();
    if found.id {
        say("id: with another one the answer is another one, or there is none. The relay shows each client's whole node.".to_owned());
    }
    for field in &found.key {
        say(format!(
            "{field}: with another value, or without it, the answer is another one."
        ));
    }
    for field in &found.there {
        say(format!(
            "{field}: it must be there, and may have any of these clients' values."
        ));
    }
    for field in &unfit {
        say(format!(
            "{field} cannot be a part of `key`, so each client has a view of its own."
        ));
    }
    if *found == Finding::default() {
        say("No field of these nodes changes the answer: all clients can share one view.".to_owned());
        return text + "classes: []\n";
    }
    let alone = found.id || !unfit.is_empty();
    let nodes = clients.iter().map(|client| (&*client.id, &client.fields));
    let views = Finding {
        id: alone,
        ..found.clone()
    };
    say(format!(
        "Views that these {} clients make: {}.",
        clients.len(),
        views.views(nodes)
    ));
    let rule = if alone { each_client() } else { rule(found, clients) };
    text + &format!("classes:\n  - {rule}\n")
}

/// The rule that gives each client a view of its own.
pub(super) fn each_client() -> Rule {
    Rule {
        key: vec![Selector::Id],
        passes: Passes::Whole,
        ..Rule::default()
    }
}

fn rule(found: &Finding, clients: &[SurveyedClient]) -> Rule {
    let mut parts = Parts::default();
    let mut members = Vec::new();
    let mut cluster = None;
    let values = |field: &NodeField| {
        clients
            .iter()
            .filter_map(|client| client.fields.get(field))
            .cloned()
            .collect::<Vec<_>>()
    };
    // A value in `key` is presented as text, so what is no text is passed on as it is besides.
    let others = found
        .key
        .iter()
        .filter(|field| !values(field).iter().all(Value::is_string));
    for field in found.there.iter().chain(others) {
        if let Some(path) = field.member() {
            members.push(Member { path, below: false });
        } else if field.is_of("cluster") {
            let any = values(field).into_iter().next();
            cluster = any.map(|any| vec![Piece::Text(any.as_str().unwrap_or_default().to_owned())]);
        }
        parts.locality |= field.is_of("locality");
        parts.user_agent |= field.is_of("user_agent");
    }
    parts.metadata = Members::These(members);
    Rule {
        key: found.key.iter().filter_map(NodeField::selector).collect(),
        cluster,
        passes: match parts == Parts::default() {
            true => Passes::Nothing,
            false => Passes::Parts(parts),
        },
        ..Rule::default()
    }
}

/// Whether a field may be in the key of a class: its values must be texts, numbers, true or false.
fn fits(field: &NodeField, clients: &[SurveyedClient]) -> bool {
    let mut values = clients.iter().filter_map(|client| client.fields.get(field));
    field.selector().is_some() && values.all(|value| value.is_string() || value.is_number() || value.is_boolean())
}

/// Whether a class can pass a field on.
fn passes(field: &NodeField) -> bool {
    field.member().is_some()
        || ["cluster", "locality", "user_agent"]
            .iter()
            .any(|part| field.is_of(part))
}
