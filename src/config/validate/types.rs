// SPDX-License-Identifier: Apache-2.0
//! Validates types that the relay does not know by itself, and what describes them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Check, paths};
use crate::config::reading::Scalar;
use crate::config::shape;
use crate::xds::{NameRule, Traits, TypeUrl};

pub(super) fn types(check: &mut Check, types: Vec<shape::Type>) -> BTreeMap<String, Traits> {
    let mut found = BTreeMap::new();
    for (index, written) in types.into_iter().enumerate() {
        let key = |name: &str| format!("types[{index}].{name}");
        let name_rule = check.read(&key("name_field"), written.name_field.as_ref(), |text| {
            match text.parse() {
                Ok(0) => Ok(NameRule::Wrapper),
                Ok(number) if number < 1 << 29 => Ok(NameRule::Field(number)),
                _ => Err(format!(
                    "`{text}` is not a field number; write 1 to 536870911, or 0 for no name in the body"
                )),
            }
        });
        let Some(type_url) = check.read(&key("type_url"), written.type_url.as_ref(), type_url) else {
            continue;
        };
        let usual = *type_url.traits();
        let traits = Traits {
            kind: usual.kind,
            name: name_rule.unwrap_or(usual.name),
            wildcard: written.wildcard.unwrap_or(usual.wildcard),
            full_state: written.full_state.unwrap_or(usual.full_state),
            // with a configured name field, every resource must have a name.
            nameless: usual.nameless && !matches!(name_rule, Some(NameRule::Field(_))),
            aliases: usual.aliases,
            delta_only: usual.delta_only && !matches!(name_rule, Some(NameRule::Field(_))),
            withheld: usual.withheld,
        };
        if found.insert(type_url.full_name().to_owned(), traits).is_some() {
            let message = format!("`{type_url}` is there twice; remove one");
            let place = written.type_url.as_ref().map(|written| written.place);
            check.at(place, key("type_url"), message);
        }
    }
    found
}

pub(super) fn descriptors(check: &mut Check, files: &[Scalar]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for (index, written) in files.iter().enumerate() {
        let path = paths::read(
            check,
            &format!("descriptors[{index}]"),
            Some(written),
            |text| match text {
                "" => Err("the path is empty; write the file of a FileDescriptorSet".to_owned()),
                path if found.iter().any(|other| other.as_os_str() == path) => {
                    Err(format!("`{path}` is there twice; remove one"))
                }
                path => Ok(PathBuf::from(path)),
            },
        );
        found.extend(path);
    }
    found
}

pub(super) fn type_url(text: &str) -> Result<TypeUrl, String> {
    let found = TypeUrl::new(text);
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    // a prefix other than the usual one is part of the type.
    let prefixed = |c: char| valid(c) || matches!(c, '-' | '/');
    let valid = found.message().chars().all(valid) && found.full_name().chars().all(prefixed);
    if found.message().is_empty() || !valid {
        return Err(format!(
            "`{text}` is not a type; write type.googleapis.com/ and the message's full name"
        ));
    }
    Ok(found)
}
