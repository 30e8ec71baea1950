// SPDX-License-Identifier: Apache-2.0
//! A parsed text: values with their places. Owns what JSON and YAML have in common. Knows no types: a YAML scalar stays as
//! written until the field's type is known.

mod free;
mod json;
mod written;
mod yaml;
mod yaml_words;

use std::borrow::Cow;

use super::fault::{Fault, Place};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Tree {
    place: Place,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    /// `true` or `false` in JSON.
    Bool(bool),
    /// A number in JSON, as written: a float cannot hold all 64-bit integers.
    Number(String),
    /// A string.
    Text(String),
    /// An unquoted scalar in YAML, as written.
    Plain(String),
    List(Vec<Tree>),
    /// Entries in the order of the text, with unique keys.
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) value: Tree,
}

/// How much one text may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Values and keys. Each needs more memory than its few bytes of text.
    pub values: usize,
}

impl Bounds {
    /// For what operators write.
    pub const FILE: Self = Self { values: 16_000_000 };
    /// For what clients send.
    pub const REQUEST: Self = Self { values: 1_000_000 };
}

impl Tree {
    /// Parses JSON.
    ///
    /// # Errors
    /// The text is not JSON, not UTF-8, nested too deep, too large, or has a key twice.
    pub fn json(text: &[u8], bounds: Bounds) -> Result<Self, Fault> {
        json::parse(utf8(text)?, bounds)
    }

    /// Parses one YAML document; an empty text is null.
    ///
    /// # Errors
    /// The text is not YAML, not UTF-8, nested too deep, too large, or has a key twice.
    pub fn yaml(text: &[u8], bounds: Bounds) -> Result<Self, Fault> {
        yaml::parse(utf8(text)?, bounds)
    }

    fn new(place: Place, value: Value) -> Self {
        Self { place, value }
    }

    /// Returns its place.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Whether it is null.
    pub const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Returns its items, if it is a list.
    pub fn items(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Plain(_) | Value::Map(_) => None,
        }
    }

    /// Returns its value of this key, if it is a map that has one.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()?
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    }

    /// Returns its text, if it is a string or an unquoted YAML scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Plain(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Whether it is a string: in YAML, a quoted one.
    pub const fn is_string(&self) -> bool {
        matches!(self.value, Value::Text(_))
    }

    /// Returns its keys, their places and their values, if it is a map.
    pub fn members(&self) -> Option<impl Iterator<Item = (&str, Place, &Self)>> {
        let entries = self.entries()?.iter();
        Some(entries.map(|entry| (entry.key.as_str(), entry.place, &entry.value)))
    }

    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Plain(_) | Value::List(_) => None,
        }
    }

    /// Describes it for an error: `the string "x"`, `a list`.
    pub fn description(&self) -> Cow<'static, str> {
        match &self.value {
            Value::Null => "null".into(),
            Value::Bool(truth) => truth.to_string().into(),
            Value::Number(number) => format!("the number {}", shortened(number)).into(),
            Value::Text(text) => format!("the string {:?}", shortened(text)).into(),
            Value::Plain(text) => format!("`{}`", shortened(text)).into(),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "an object".into(),
        }
    }
}

/// How much of the bounds is left.
struct Budget {
    left: usize,
    bounds: Bounds,
}

impl Budget {
    const fn new(bounds: Bounds) -> Self {
        Self {
            left: bounds.values,
            bounds,
        }
    }

    fn take(&mut self, values: usize, place: Place) -> Result<(), Fault> {
        self.left = self.left.checked_sub(values).ok_or_else(|| {
            let message = format!("more than {} values in one text; split it", self.bounds.values);
            Fault::at(place, "", message)
        })?;
        Ok(())
    }
}

pub(super) fn too_deep(place: Place) -> Fault {
    Fault::at(
        place,
        "",
        format!("nested deeper than {} levels; make it flatter", super::DEPTH_MAX),
    )
}

/// Returns a map of these entries, whose keys must be unique.
fn map(entries: Vec<Entry>) -> Result<Value, Fault> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.key.cmp(&other.key).then(one.place.cmp(&other.place)));
    let twice = sorted.windows(2).find_map(|pair| match pair {
        [first, second] if first.key == second.key => Some((first.place, *second)),
        _ => None,
    });
    match twice {
        Some((first, second)) => {
            let message = format!(
                "the key `{}` is there twice, first in line {}; remove one",
                shortened(&second.key),
                first.line
            );
            Err(Fault::at(second.place, "", message))
        }
        None => Ok(Value::Map(entries)),
    }
}

/// Returns the beginning of a long text.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()).into(),
        None => text.into(),
    }
}

fn utf8(text: &[u8]) -> Result<&str, Fault> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    std::str::from_utf8(text).map_err(|error| {
        let good = text.get(..error.valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = good.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(good.get(start..).unwrap_or_default())
            .chars()
            .count()
            + 1;
        Fault::at(place(line, column), "", "not UTF-8; save the text as UTF-8")
    })
}

fn place(line: usize, column: usize) -> Place {
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place {
        line: bounded(line),
        column: bounded(column),
    }
}
