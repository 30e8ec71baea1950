// SPDX-License-Identifier: Apache-2.0
//! A canonical form of JSON, so that two texts with the same meaning are equal.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns the canonical form of a value: keys are sorted and in the form of the `.proto` file, whichever of the two forms they
/// came in.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    sorted(value).to_string().into_bytes()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.iter().map(|(key, value)| (snake(key), sorted(value))).collect();
            fields.into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// `portValue` is `port_value`.
fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 2);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_text_are_one() {
        let one: Value = serde_json::from_str(r#"{"portValue": 1, "address": {"b": [{}], "a": "X"}}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"address": {"a": "X", "b": [{}]}, "port_value": 1}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&other));
        let third: Value = serde_json::from_str(r#"{"address": {"a": "Y", "b": [{}]}, "port_value": 1}"#).unwrap();
        assert_ne!(canonical(&one), canonical(&third));
    }
}
