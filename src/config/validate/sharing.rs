// SPDX-License-Identifier: Apache-2.0
//! Validates classes, types and their descriptors.

use std::collections::BTreeMap;

use crate::config::Upstream;
use crate::config::reading::Spanned;
use crate::json::Place;

use super::credentials::first;
use super::{Check, credentials, identity};
use crate::classes::{Classes, Members, Parts, Passes, Path, Pattern, Rule, Selector};
use crate::config::class::{member, pattern, selector, template};
use crate::config::reading::{Either, Scalar};
use crate::config::shape::{self, AllMembers, ClassNodeParts, WholeNode};

/// Returns the rules that decide which clients share a view. `relay` is the relay's own node id.
pub(super) fn classes(
    check: &mut Check,
    classes: Vec<Spanned<shape::Class>>,
    relay: &str,
    upstream: &Upstream,
) -> Classes {
    let mut rules: Vec<(Rule, Place)> = Vec::new();
    let mut last = None;
    for (index, class) in classes.into_iter().enumerate() {
        let place = class.place;
        if let Some(all) = last {
            let message =
                format!("no client is of it, because classes[{all}] is for all clients; write it before that one");
            check.warn(place, format!("classes[{index}]"), message);
        } else if class.value.matching.is_empty() {
            last = Some(index);
        }
        let files = class
            .value
            .credentials
            .as_ref()
            .and_then(|written| first(&written.value));
        let rule = rule(check, index, class.value);
        if let Some(files) = files {
            credentials::used_for(check, index, &rule, files);
        }
        rules.push((rule, place));
    }
    identity::identities(check, &rules, relay, upstream);
    Classes::new(rules.into_iter().map(|(rule, _)| rule).collect())
}

fn rule(check: &mut Check, index: usize, class: shape::Class) -> Rule {
    let matches = matches(check, &format!("classes[{index}].match"), class.matching);
    let fields: Vec<&str> = matches.iter().flat_map(|(_, pattern)| pattern.fields()).collect();
    let mut key: Vec<Selector> = Vec::new();
    for written in &class.key {
        let name = format!("classes[{index}].key");
        let Some(field) = field(check, &name, written, &fields) else {
            continue;
        };
        if key.contains(&field) {
            check.at(written.place, name, format!("`{field}` is there twice; remove one"));
        }
        key.push(field);
    }
    let credentials = credentials::class_credentials(check, index, class.credentials.as_ref(), &key, &fields);
    let node = format!("classes[{index}].node");
    let parts = match class.node {
        Either::Parts(parts) => *parts,
        Either::Word(WholeNode) => {
            return Rule {
                matches,
                key,
                passes: Passes::Whole,
                credentials,
                ..Rule::default()
            };
        }
    };
    let mut text = |name: &str, written: Option<&Scalar>| {
        check.read(&format!("{node}.{name}"), written, |text| template(text, &key, &fields))
    };
    let id = text("id", parts.id.as_ref());
    let cluster = text("cluster", parts.cluster.as_ref());
    let passes = passes(check, &node, &parts);
    Rule {
        matches,
        key,
        id,
        cluster,
        passes,
        credentials,
    }
}

/// Returns the patterns that the clients of a class must match.
fn matches(check: &mut Check, key: &str, written: BTreeMap<String, Scalar>) -> Vec<(Selector, Pattern)> {
    let mut matches: Vec<(Selector, Pattern)> = Vec::new();
    for (path, text) in written {
        let path = Spanned {
            value: path,
            place: text.place,
        };
        let read = field(check, key, &path, &[]);
        let known: Vec<&str> = matches.iter().flat_map(|(_, pattern)| pattern.fields()).collect();
        let found = check.read(key, Some(&text), |text| pattern(text, &known));
        matches.extend(read.zip(found));
    }
    matches
}

/// Returns which parts of its clients' nodes a class passes on besides its key.
fn passes(check: &mut Check, node: &str, parts: &ClassNodeParts) -> Passes {
    let name = format!("{node}.metadata");
    let metadata = match &parts.metadata {
        None => Members::default(),
        Some(Either::Word(AllMembers)) => Members::All,
        Some(Either::Parts(list)) => {
            let members = list
                .iter()
                .filter_map(|written| check.read(&name, Some(written), member));
            Members::These(members.collect())
        }
    };
    let parts = Parts {
        metadata,
        locality: parts.locality,
        user_agent: parts.user_agent,
    };
    if parts == Parts::default() {
        Passes::Nothing
    } else {
        Passes::Parts(parts)
    }
}

fn field(check: &mut Check, key: &str, written: &Scalar, fields: &[&str]) -> Option<Selector> {
    let field = check.read(key, Some(written), |text| selector(text, fields))?;
    if let Some(label) = label(&field) {
        let message =
            format!("every dot begins a nested key; if the dots belong to a label, quote the label: metadata.{label}");
        check.warn(written.place, key, message);
    }
    Some(field)
}

/// Returns the path that was probably meant if a label was written without quotes: `LABELS.app.kubernetes.io/name`.
fn label(field: &Selector) -> Option<Path> {
    let Selector::Metadata(path) = field else { return None };
    let (map, keys) = path.parts().split_first()?;
    let plain = !path.as_str().contains('"') && keys.len() > 1;
    let label = keys.join(".");
    (plain && label.contains('/')).then(|| Path::new([map.as_str(), &label]))
}
