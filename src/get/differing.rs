// SPDX-License-Identifier: Apache-2.0
//! What differs between what two servers say.
//!
//! Owns what counts: contents of which the API says that they mean the same do not differ, however they are encoded; what only one of two
//! differing resources leads to does not count besides. Says nothing of when, and never anything of a secret but its hash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::walk::{Reached, ReadKey};
use crate::json::{Schemas, Secrets};
use crate::xds::{Resource, TypeUrl, Version};

/// What two servers have under one key; `None`: nothing.
pub type Sides = [Option<Arc<Resource>>; 2];

/// One field that differs: where it is, and what both have there; `None`: nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingField {
    /// Its path in the resource.
    pub path: String,
    /// As JSON.
    pub values: [Option<String>; 2],
}

/// Compares contents, each pair once.
pub struct Contents {
    schemas: Schemas,
    alike: BTreeMap<[Version; 2], bool>,
}

/// More pairs than that are compared anew.
const PAIRS_MAX: usize = 1 << 16;
/// How much of a value is shown.
const CHARS_MAX: usize = 200;

/// Returns what differs, where both are known.
pub fn differing(one: &Reached, other: &Reached, contents: &mut Contents) -> BTreeMap<ReadKey, Sides> {
    let keys: BTreeSet<&ReadKey> = one.keys().chain(other.keys()).collect();
    let both = keys.into_iter().filter_map(|key| {
        let sides = [one.known(key)?, other.known(key)?];
        let is_same = match sides {
            [Some(one), Some(other)] => contents.are_alike(&key.0, one, other),
            [one, other] => one.is_none() && other.is_none(),
        };
        (!is_same).then(|| (key.clone(), sides.map(Option::<&Arc<Resource>>::cloned)))
    });
    both.collect()
}

impl Contents {
    /// Creates what has compared nothing.
    #[must_use]
    pub const fn new(schemas: Schemas) -> Self {
        Self {
            schemas,
            alike: BTreeMap::new(),
        }
    }

    /// Whether both mean the same.
    fn are_alike(&mut self, type_url: &TypeUrl, one: &Resource, other: &Resource) -> bool {
        let pair = [one.version(), other.version()];
        if pair[0] == pair[1] {
            return true;
        }
        if let Some(alike) = self.alike.get(&pair) {
            return *alike;
        }
        if self.alike.len() >= PAIRS_MAX {
            self.alike.clear();
        }
        let around = |one: &Resource| (one.aliases().to_vec(), one.passed_on());
        let values = [one, other].map(|one| self.value(type_url, one, Secrets::Show));
        let alike = around(one) == around(other) && matches!(values, [Ok(one), Ok(other)] if one == other);
        self.alike.insert(pair, alike);
        alike
    }

    /// Returns a content as JSON; the reason if that does not say all of it.
    fn value(&self, type_url: &TypeUrl, resource: &Resource, secrets: Secrets) -> Result<Value, String> {
        let json = self.schemas.resource_json(type_url.url(), &resource.body(), secrets);
        let json = json.map_err(|fault| fault.to_string())?;
        if json.unknown_fields > 0 {
            return Err(format!(
                "{} fields that the descriptors do not have",
                json.unknown_fields
            ));
        }
        serde_json::from_slice(&json.text).map_err(|error| error.to_string())
    }

    /// Returns what differs in two contents field by field; the reason if that cannot be shown.
    ///
    /// # Errors
    /// They are secrets, or cannot be read.
    pub fn fields(&self, type_url: &TypeUrl, one: &Resource, other: &Resource) -> Result<Vec<DifferingField>, String> {
        if type_url.kind().is_secret() {
            return Err("secrets are compared by their hashes".to_owned());
        }
        let [one_value, other_value] = [one, other].map(|one| self.value(type_url, one, Secrets::Redact));
        let mut fields = Vec::new();
        apart("", Some(&one_value?), Some(&other_value?), &mut fields);
        if one.aliases() != other.aliases() {
            let names = |one: &Resource| Some(format!("{:?}", one.aliases()));
            let values = [one, other].map(names);
            let path = "(aliases)".to_owned();
            fields.push(DifferingField { path, values });
        }
        match fields.is_empty() {
            true if one.passed_on() != other.passed_on() => {
                Err("the metadata around it, or its cache control".to_owned())
            }
            true => Err("what is secret in it".to_owned()),
            false => Ok(fields),
        }
    }
}

/// Adds the fields in which two values differ.
fn apart(path: &str, one: Option<&Value>, other: Option<&Value>, into: &mut Vec<DifferingField>) {
    match (one, other) {
        (one, other) if one == other => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                apart(&path, one.get(key), other.get(key), into);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => items(path, one, other, into),
        (one, other) => into.push(DifferingField {
            path: path.to_owned(),
            values: [one, other].map(|value| value.map(shown)),
        }),
    }
}

/// Adds what differs in two lists. What is equal at their beginnings and ends counts as the same items, so that one more shifts none.
fn items(path: &str, one: &[Value], other: &[Value], into: &mut Vec<DifferingField>) {
    let head = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let rest = |list: &[Value]| list.len() - head;
    let ends = one.iter().rev().zip(other.iter().rev());
    let ends = ends.take(rest(one).min(rest(other)));
    let tail = ends.take_while(|(one, other)| one == other).count();
    let middle = |list: &'_ [Value]| list.len() - tail;
    for at in head..middle(one).max(middle(other)) {
        let item = |list: &'_ [Value]| (at < middle(list)).then(|| list.get(at).cloned()).flatten();
        apart(&format!("{path}[{at}]"), item(one).as_ref(), item(other).as_ref(), into);
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::xds::{Name, ResourceParts};

    fn told(one: Value, other: Value) -> Vec<String> {
        let mut fields = Vec::new();
        apart("", Some(&one), Some(&other), &mut fields);
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let line =
            |field: &DifferingField| format!("{}: {} {}", field.path, side(&field.values[0]), side(&field.values[1]));
        fields.iter().map(line).collect()
    }

    #[test]
    fn only_what_differs_is_told() {
        let one = json!({"name": "a", "hosts": [{"name": "x"}, {"name": "y", "port": 1}], "old": true});
        let other = json!({"hosts": [{"name": "x"}, {"port": 2, "name": "y"}], "name": "a", "new": {}});
        assert_eq!(
            told(one.clone(), other),
            ["hosts[1].port: 1 2", "new: - {}", "old: true -"]
        );
        assert_eq!(told(one.clone(), one), [""; 0]);
        assert_eq!(told(json!([1, 2, 3]), json!([1, 9, 2, 3])), ["[1]: - 9"]);
        assert_eq!(told(json!([1, 1]), json!([1])), ["[1]: 1 -"]);
        let long = told(json!({"text": "a"}), json!({"text": "ä".repeat(1000)}));
        assert!(long[0].ends_with("...") && long[0].chars().count() < 250, "{long:?}");
    }

    /// Fields in another order mean the same.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn an_encoding_is_no_difference() {
        let type_url = TypeUrl::called("cds").unwrap();
        let (name, second, seconds) = (&b"\x0a\x01a"[..], &b"\x22\x02\x08\x01"[..], &b"\x22\x02\x08\x02"[..]);
        let cluster = |fields: [&[u8]; 2]| {
            let parts = ResourceParts {
                type_url: &type_url,
                name: Name::from("a"),
                aliases: Vec::new(),
                passed_on: &[],
                body: &fields.concat(),
                endpoints: None,
                received: std::time::Instant::now(),
            };
            Resource::new(parts, 0)
        };
        let mut contents = Contents::new(Schemas::standard());
        let one = cluster([name, second]);
        assert!(contents.are_alike(&type_url, &one, &cluster([second, name])));
        assert!(!contents.are_alike(&type_url, &one, &cluster([seconds, name])));
    }
}
