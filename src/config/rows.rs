// SPDX-License-Identifier: Apache-2.0
//! What the configuration has: sections of rows, one for each key.
//!
//! Owns what a row says, the macro that makes a section of rows, and the JSON schema of all that may be written. A row gives the field, how
//! it is read, its default, the bounds, when a change takes effect, and what people read about it.

use std::fmt;

use serde_json::{Map, Value as Schema, json};

/// A key.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: &'static str,
    /// What it means.
    pub(super) about: String,
    /// When a change takes effect, if the row says so; otherwise as for what it is in.
    pub(super) effect: Option<Effect>,
    /// Whether it must be there.
    pub(super) needed: bool,
    /// Its default, or an example; of a mapping whose keys somebody chooses: such a key. Without it, the rows in it are shown.
    pub(super) shown: Option<String>,
    /// Whether that is the default.
    pub(super) is_default: bool,
    pub(super) kind: Kind,
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// As soon as it is read.
    Now,
    /// For connections and streams of clients that begin after it was read.
    Next,
    /// When the relay starts again.
    Restart,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "at once",
            Self::Next => "for new connections and streams",
            Self::Restart => "needs a restart",
        })
    }
}

/// What may be written.
#[derive(Debug)]
pub(super) enum Kind {
    /// Anything.
    Any,
    /// A single value of this schema.
    Single(Schema),
    List(Box<Self>),
    /// A mapping whose keys somebody chooses.
    Named(Box<Self>),
    Either(Box<Self>, Box<Self>),
    Rows(Vec<Row>),
    /// The same, where other keys may be as well.
    Open(Vec<Row>),
}

impl Kind {
    /// Some words. Editors read `1.2` as a number, and `true` as no text.
    pub(super) fn words(words: &[&str]) -> Self {
        let plain = words.iter().filter_map(|word| serde_json::from_str(word).ok());
        let all: Vec<Schema> = words.iter().map(|word| Schema::from(*word)).chain(plain).collect();
        Self::Single(json!({ "enum": all }))
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self::Either(Box::new(self), Box::new(other))
    }

    /// Returns the rows in it, through lists and alternatives.
    pub(super) fn rows(&self) -> &[Row] {
        match self {
            Self::Any | Self::Single(_) => &[],
            Self::List(inner) | Self::Named(inner) => inner.rows(),
            Self::Either(one, other) => match one.rows() {
                [] => other.rows(),
                rows => rows,
            },
            Self::Rows(rows) | Self::Open(rows) => rows,
        }
    }

    /// Returns its JSON schema.
    pub(super) fn schema(&self) -> Schema {
        match self {
            Self::Any => json!({}),
            Self::Single(schema) => schema.clone(),
            Self::List(item) => json!({ "type": ["array", "null"], "items": item.schema() }),
            Self::Named(value) => json!({ "type": ["object", "null"], "additionalProperties": value.schema() }),
            Self::Either(one, other) => json!({ "anyOf": [one.schema(), other.schema()] }),
            Self::Rows(rows) | Self::Open(rows) => {
                let properties = rows.iter().map(|row| (row.key.to_owned(), row.schema()));
                let properties: Map<String, Schema> = properties.collect();
                let needed = rows.iter().filter(|row| row.needed).map(|row| row.key);
                json!({
                    "type": ["object", "null"],
                    "additionalProperties": matches!(self, Self::Open(_)),
                    "properties": properties,
                    "required": needed.collect::<Vec<_>>(),
                })
            }
        }
    }
}

impl Row {
    /// Returns its JSON schema. A key without a value is as one that is not there.
    pub(super) fn schema(&self) -> Schema {
        let mut schema = self.kind.schema();
        let Some(members) = schema.as_object_mut() else {
            return schema;
        };
        if !self.needed {
            nullable(members);
        }
        members.insert("description".to_owned(), self.about.as_str().into());
        if let Some(shown) = self.shown.as_deref().filter(|_| self.is_default) {
            members.insert("default".to_owned(), shown.into());
        }
        schema
    }
}

fn nullable(members: &mut Map<String, Schema>) {
    for (list, null) in [("anyOf", json!({ "type": "null" })), ("enum", Schema::Null)] {
        if let Some(Schema::Array(forms)) = members.get_mut(list) {
            forms.push(null);
        }
    }
    match members.get_mut("type") {
        Some(Schema::Array(kinds)) if !kinds.contains(&"null".into()) => kinds.push("null".into()),
        Some(kind @ Schema::String(_)) => *kind = json!([kind.clone(), "null"]),
        _ => {}
    }
}

/// A section: a mapping with fixed keys, each of which is a row and the field of its value:
///
/// ```text
/// /// What it means.
/// EFFECT "key" needs => field: Type as Shape = default, like "example", unless is_wrong => "what to do";
/// ```
///
/// All but the key, the field and its type may be left out. A key with `needs` must be there; an `Option` holds its value all the same,
/// because a wrong value is left out.
macro_rules! section {
    (@shape $type:ty) => { $type };
    (@shape $type:ty, $form:ty) => { $form };
    (@usual) => { Default::default() };
    (@usual $default:expr) => { $default };
    (@given) => { false };
    (@given $default:expr) => { true };
    (@effect) => { None };
    (@effect $effect:ident) => { Some($crate::config::rows::Effect::$effect) };
    ($(#[$meta:meta])* $vis:vis struct $name:ident {$(
        $(#[doc = $about:literal])*
        $($effect:ident)? $key:literal $($needs:ident)? => $field:ident: $type:ty $(as $form:ty)? $(= $default:expr)?
        $(, like $like:literal)? $(, unless $wrong:expr => $message:literal)?;
    )*}) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($(#[doc = $about])* $vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::config::rows::section!(@usual $($default)?),)* }
            }
        }

        impl $crate::config::reading::Shape for $name {
            fn read(
                tree: &$crate::json::Tree,
                within: &str,
                found: &mut $crate::config::reading::ShapeFaults,
            ) -> Option<Self> {
                const KEYS: &[&str] = &[$($key),*];
                let mut section = Self::default();
                // A value of a wrong kind is replaced by an empty one, so that those after it in a list keep their numbers.
                let Some(entries) = found.mapping(tree, within) else {
                    return Some(section);
                };
                for (name, place, value) in entries {
                    let key = $crate::config::reading::below(within, name);
                    match name {
                        _ if value.is_null() && KEYS.contains(&name) => {}
                        $($key => {
                            type Form = $crate::config::rows::section!(@shape $type $(, $form)?);
                            match <Form as $crate::config::reading::Shape<$type>>::read(value, &key, found) {
                                None => {}
                                $(Some(read) if ($wrong)(&read) => found.wrong(value, &key, $message),)?
                                Some(read) => section.$field = read,
                            }
                        })*
                        _ => found.unknown.push($crate::config::reading::Unknown {
                            place,
                            key,
                            name: name.to_owned(),
                            expected: KEYS,
                        }),
                    }
                }
                $($(found.$needs(tree, within, $key);)?)*
                Some(section)
            }

            fn kind() -> $crate::config::rows::Kind {
                let usual = Self::default();
                $crate::config::rows::Kind::Rows(vec![$({
                    type Form = $crate::config::rows::section!(@shape $type $(, $form)?);
                    let text = <Form as $crate::config::reading::Shape<$type>>::text(&usual.$field);
                    $crate::config::rows::Row {
                        key: $key,
                        about: concat!($($about),*).trim().to_owned(),
                        effect: $crate::config::rows::section!(@effect $($effect)?),
                        needed: [$(stringify!($needs))?].contains(&"needs"),
                        shown: [$($like.to_owned())?].into_iter().next().or(Some(text).filter(|text| !text.is_empty())),
                        is_default: $crate::config::rows::section!(@given $($default)?),
                        kind: <Form as $crate::config::reading::Shape<$type>>::kind(),
                    }
                }),*])
            }

            fn cells(section: &Self) -> Vec<(&'static str, String)> {
                vec![$({
                    type Form = $crate::config::rows::section!(@shape $type $(, $form)?);
                    ($key, <Form as $crate::config::reading::Shape<$type>>::text(&section.$field))
                }),*]
            }
        }
    };
}
pub(super) use section;
