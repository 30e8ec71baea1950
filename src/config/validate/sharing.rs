//! The part of the check that is about classes and types.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;

use super::Check;
use crate::config::shape::{self, Scalar};
use crate::config::{ClassRule, Glob, NodePath, NodeTemplate, Template};
use crate::xds::{NameRule, Traits, TypeUrl};

impl Check {
    pub(super) fn class(&mut self, index: usize, class: shape::Class) -> ClassRule {
        let mut matches = Vec::new();
        for (path, pattern) in class.matching {
            let key = format!("classes[{index}].match");
            let path = Spanned {
                value: path,
                referenced: pattern.referenced,
                defined: pattern.defined,
            };
            matches.extend(
                self.read(&key, Some(&path), NodePath::parse)
                    .map(|path| (path, Glob(pattern.value))),
            );
        }
        let mut key: Vec<NodePath> = Vec::new();
        for written in &class.key {
            let name = format!("classes[{index}].key");
            let Some(path) = self.read(&name, Some(written), NodePath::parse) else {
                continue;
            };
            if key.contains(&path) {
                self.at(
                    Some(written.referenced),
                    name,
                    format!("`{path}` is there twice; remove one"),
                );
            }
            key.push(path);
        }
        let mut template = |name: &str, written: Option<&Scalar>| {
            self.read(&format!("classes[{index}].node.{name}"), written, |text| {
                within(Template::parse(text)?, &key)
            })
        };
        let node = NodeTemplate {
            id: template("id", class.node.id.as_ref()),
            cluster: template("cluster", class.node.cluster.as_ref()),
        };
        ClassRule { matches, key, node }
    }

    pub(super) fn types(&mut self, types: Vec<shape::Type>) -> BTreeMap<String, Traits> {
        let mut found = BTreeMap::new();
        for (index, written) in types.into_iter().enumerate() {
            let key = |name: &str| format!("types[{index}].{name}");
            let name_rule = self.read(&key("name_field"), written.name_field.as_ref(), |text| {
                match text.parse() {
                    Ok(0) => Ok(NameRule::Wrapper),
                    Ok(number) if number < 1 << 29 => Ok(NameRule::Field(number)),
                    _ => Err(format!(
                        "`{text}` is not a field number; write 1 to 536870911, or 0 for no name in the body"
                    )),
                }
            });
            let Some(type_url) = self.read(&key("type_url"), Some(&written.type_url), type_url) else {
                continue;
            };
            let usual = *type_url.traits();
            let traits = Traits {
                kind: usual.kind,
                name: name_rule.unwrap_or(usual.name),
                wildcard: written.wildcard.unwrap_or(usual.wildcard),
                full_state: written.full_state.unwrap_or(usual.full_state),
            };
            if found.insert(type_url.full_name().to_owned(), traits).is_some() {
                let message = format!("`{type_url}` is there twice; remove one");
                self.at(Some(written.type_url.referenced), key("type_url"), message);
            }
        }
        found
    }
}

/// Clients of one class may differ in what is not in its key, and there is only one node for all of them (K-03).
fn within(template: Template, key: &[NodePath]) -> Result<Template, String> {
    let stray = template.fields().find(|field| !key.contains(field)).cloned();
    match stray {
        Some(field) => Err(format!(
            "`{{{field}}}` is not in `key`, so clients that share a view may differ in it; add it there"
        )),
        None => Ok(template),
    }
}

fn type_url(text: &str) -> Result<TypeUrl, String> {
    let found = TypeUrl::new(text);
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    if found.full_name().is_empty() || !found.full_name().chars().all(valid) {
        return Err(format!(
            "`{text}` is not a type; write type.googleapis.com/ and the message's full name"
        ));
    }
    Ok(found)
}
