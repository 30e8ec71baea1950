// SPDX-License-Identifier: Apache-2.0
//! Validates the rules of the admin address, and its names.

use super::{Check, rules};
use crate::config::reading::{Spanned, Texts};
use crate::config::shape;
use crate::config::{AdminHosts, AdminRule, AdminRules};

pub(super) fn rules(check: &mut Check, written: Option<Spanned<Vec<Spanned<shape::AdminRule>>>>) -> AdminRules {
    let Some(written) = written else {
        return AdminRules::default();
    };
    check.filled(
        "admin.rules",
        &written,
        "add a rule, or leave `rules` out to let everybody in",
    );
    let mut rules = Vec::new();
    let mut last = None;
    for (index, Spanned { value, place }) in written.value.into_iter().enumerate() {
        let key = format!("admin.rules[{index}]");
        if let Some(all) = last {
            let message = format!("it never decides, because admin.rules[{all}] is about everybody");
            check.warn(place, &key, message);
        }
        if value.identities.is_none() {
            last = last.or(Some(index));
        }
        rules.push(AdminRule {
            identities: rules::identity_patterns(check, &format!("{key}.identities"), value.identities.as_ref()),
            // An empty list allows nothing.
            allow: value.allow.map_or_else(Vec::new, |allow| allow.0),
        });
    }
    AdminRules::new(rules)
}

pub(super) fn hosts(check: &mut Check, written: Option<&Texts>) -> AdminHosts {
    let texts = written.into_iter().flat_map(|written| &written.value.0);
    let names = texts.filter_map(|text| check.read("admin.hosts", Some(text), host));
    AdminHosts::new(names.collect())
}

/// Reads the name of a host as it stands in a `Host` header.
fn host(text: &str) -> Result<String, String> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
    if text.is_empty() || !text.chars().all(fits) {
        return Err(format!(
            "`{text}` is not the name of a host; write it without a scheme and a port, as in relay.example.com"
        ));
    }
    Ok(text.to_owned())
}
