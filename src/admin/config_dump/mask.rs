// SPDX-License-Identifier: Apache-2.0
//! Which members of an answer are shown: a field mask of protobuf.
//!
//! Owns its syntax. Does not know which members there are.

use std::collections::BTreeMap;

use serde_json::Value;

/// The members that are shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mask {
    /// Only these; empty: all.
    members: BTreeMap<String, Self>,
}

/// How deep a path may be.
const DEPTH_MAX: usize = 32;

impl Mask {
    /// Reads paths with dots, with commas between them.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut mask = Self::default();
        for path in text.split(',') {
            let fields: Vec<&str> = path.split('.').collect();
            let good = |field: &&str| !field.is_empty() && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if fields.len() > DEPTH_MAX || !fields.iter().all(good) {
                return Err("write names of fields with dots between them, such as bootstrap.node.id".to_owned());
            }
            mask.add(&fields);
        }
        Ok(mask)
    }

    fn add(&mut self, fields: &[&str]) {
        let Some((first, below)) = fields.split_first() else {
            // This member is shown as a whole, whatever other paths say of parts of it.
            self.members.clear();
            return;
        };
        let known = self.members.get(*first).is_some_and(|mask| mask.members.is_empty());
        if !known {
            self.members.entry((*first).to_owned()).or_default().add(below);
        }
    }

    /// Returns what is shown of a member; `None`: it is not shown.
    pub(super) fn below(&self, member: &str) -> Option<&Self> {
        match self.members.is_empty() {
            true => Some(self),
            false => self.members.get(member),
        }
    }

    /// Returns what is shown of a value. The type of an object is always shown, and a list has what is shown of each of its elements.
    pub(super) fn apply(&self, value: Value) -> Value {
        match value {
            value if self.members.is_empty() => value,
            Value::Array(elements) => elements.into_iter().map(|element| self.apply(element)).collect(),
            Value::Object(members) => {
                let members = members.into_iter().filter_map(|(name, member)| match name.as_str() {
                    "@type" => Some((name, member)),
                    other => self
                        .below(other)
                        .map(|mask| mask.apply(member))
                        .map(|member| (name, member)),
                });
                Value::Object(members.collect())
            }
            // It has no members that could be shown.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_shown() {
        let value = json!({"@type": "t", "a": {"b": 1, "c": [{"d": 2, "e": 3}, {"d": 4}]}, "f": 5, "g": {"h": 6}});
        for (mask, shown) in [
            ("a.b", json!({"@type": "t", "a": {"b": 1}})),
            (
                "a.c.d,f",
                json!({"@type": "t", "a": {"c": [{"d": 2}, {"d": 4}]}, "f": 5}),
            ),
            ("g.h,g", json!({"@type": "t", "g": {"h": 6}})),
            ("g,g.x", json!({"@type": "t", "g": {"h": 6}})),
            ("nothing", json!({"@type": "t"})),
            ("f.x", json!({"@type": "t", "f": null})),
        ] {
            assert_eq!(Mask::read(mask).unwrap().apply(value.clone()), shown, "{mask}");
        }
        assert_eq!(Mask::default().apply(value.clone()), value);
        let mask = Mask::read("a.b").unwrap();
        assert!(mask.below("a").is_some() && mask.below("f").is_none());
    }

    #[test]
    fn what_is_no_mask_says_what_is_one() {
        for wrong in ["", "a,", "a..b", ".", "a b", "a/b", &["a"; 40].join(".")] {
            assert!(Mask::read(wrong).unwrap_err().contains("bootstrap.node.id"), "{wrong}");
        }
    }
}
