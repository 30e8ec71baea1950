// SPDX-License-Identifier: Apache-2.0
//! Writes trees as indented JSON and YAML for people. Owns the layout, and when YAML needs quotes.

use super::{Tree, Value};
use crate::plain::Plain;
use xds::is_escaped;

impl Tree {
    /// Returns it as JSON over several lines.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        json(self, 0, &mut out);
        out.push('\n');
        out
    }

    /// Returns it as YAML, in block style.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        if is_block(self) {
            yaml(self, 0, false, &mut out);
        } else {
            out.push_str(&scalar(self));
            out.push('\n');
        }
        out
    }
}

const STEP: usize = 2;

/// YAML reads a key of more than 1,024 characters only after a `?`. A text has at least as many bytes as characters.
const KEY_BYTES_MAX: usize = 1024;

fn json(tree: &Tree, indent: usize, out: &mut String) {
    let line = |indent: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
    };
    match &tree.value {
        Value::List(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(indent + STEP, out);
                json(item, indent + STEP, out);
            }
            line(indent, out);
            out.push(']');
        }
        Value::Map(entries) if !entries.is_empty() => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(indent + STEP, out);
                out.push_str(&json_text(&entry.key));
                out.push_str(": ");
                json(&entry.value, indent + STEP, out);
            }
            line(indent, out);
            out.push('}');
        }
        Value::Text(text) => out.push_str(&json_text(text)),
        Value::Plain(plain) => out.push_str(&match Plain::of(plain) {
            Plain::Bool(truth) => truth.to_string(),
            Plain::Number(number) if number.is_finite() => {
                let written = serde_json::Value::from(number).to_string();
                written.strip_suffix(".0").map_or(written.clone(), str::to_owned)
            }
            Plain::Number(_) | Plain::Text(_) => json_text(plain),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            out.push_str(&scalar(tree));
        }
    }
}

/// Writes the lines of a list or a map; `continues` if the first line follows the dash of a list item.
fn yaml(tree: &Tree, indent: usize, mut continues: bool, out: &mut String) {
    let mut line = |out: &mut String| {
        if !std::mem::take(&mut continues) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match &tree.value {
        Value::List(items) => {
            for item in items {
                line(out);
                out.push_str("- ");
                if is_block(item) {
                    yaml(item, indent + STEP, true, out);
                } else {
                    out.push_str(&scalar(item));
                    out.push('\n');
                }
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                let key = text(&entry.key);
                line(out);
                if key.len() > KEY_BYTES_MAX {
                    out.push_str("? ");
                    out.push_str(&key);
                    out.push('\n');
                    line(out);
                } else {
                    out.push_str(&key);
                }
                out.push(':');
                if is_block(&entry.value) {
                    out.push('\n');
                    yaml(&entry.value, indent + STEP, false, out);
                } else {
                    out.push(' ');
                    out.push_str(&scalar(&entry.value));
                    out.push('\n');
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Plain(_) => {}
    }
}

fn is_block(tree: &Tree) -> bool {
    match &tree.value {
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Plain(_) => false,
    }
}

fn scalar(tree: &Tree) -> String {
    match &tree.value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.clone(),
        Value::Text(written) => text(written),
        Value::Plain(plain) => match Plain::of(plain) {
            Plain::Bool(_) | Plain::Number(_) => plain.clone(),
            Plain::Text(written) => text(written),
        },
        Value::List(_) => "[]".to_owned(),
        Value::Map(_) => "{}".to_owned(),
    }
}

/// Returns the text in double quotes, which mean nearly the same in JSON and YAML; escapes what cannot be seen, and what YAML does not
/// allow. `wide` escapes characters that have more than four digits.
fn quoted(text: &str, wide: impl Fn(char) -> String) -> String {
    let mut out = String::new();
    for character in serde_json::Value::from(text).to_string().chars() {
        let escaped = is_escaped(character) || matches!(character, '\u{FFFE}'..='\u{FFFF}');
        match u32::from(character) {
            code @ ..=0xFFFF if escaped => out.push_str(&format!("\\u{code:04x}")),
            _ if escaped => out.push_str(&wide(character)),
            _ => out.push(character),
        }
    }
    out
}

/// Returns the text as JSON has it.
fn json_text(text: &str) -> String {
    quoted(text, |character| {
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// Returns a string without quotes only if every version of YAML reads it as a string.
fn text(text: &str) -> String {
    let careful = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-');
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'));
    let reserved = ["y", "n", "yes", "no", "on", "off", "null", "true", "false"];
    let is_word = reserved.iter().any(|word| text.eq_ignore_ascii_case(word));
    let plain = starts && text.chars().all(careful) && !is_word && matches!(Plain::of(text), Plain::Text(_));
    if plain {
        return text.to_owned();
    }
    quoted(text, |character| format!("\\U{:08x}", u32::from(character)))
}
