//! Reads the tree of a document into the shapes of settings.
//!
//! Owns what each kind of value looks like in YAML, and the complaints about wrong kinds, missing keys and unknown keys. Goes on
//! after a fault, so that all of them are found at once. Validates no values.

use std::collections::BTreeMap;

use serde_json::{Value as Schema, json};

use crate::json::{Place, Tree};
use crate::proto::google::protobuf::Value;
use crate::xds::meant;

/// A value and its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// A scalar with its place. It is read as text; the validation decides what it means.
pub(super) type Scalar = Spanned<String>;

/// A value that is read later, or by somebody else.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw(pub(super) Option<Tree>);

/// A wrong kind of value, or a missing key.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) place: Place,
    /// `limits.views`, `listeners[0].address`
    pub(super) key: String,
    pub(super) message: String,
}

/// An unknown key: an error in the relay's own file, and a warning in a bootstrap that was written for gRPC clients.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) place: Place,
    /// The whole path of the key.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) expected: &'static [&'static str],
}

/// What is wrong with the shape of a document.
#[derive(Debug, Default)]
pub(super) struct ShapeFaults {
    pub(super) problems: Vec<Problem>,
    pub(super) unknown: Vec<Unknown>,
}

/// A value that can be read from a tree.
pub(super) trait Shape: Sized {
    /// Reads the value of `key`; returns `None` if it is of a wrong kind, which `found` then says.
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self>;

    /// Returns the JSON schema of what it reads.
    fn schema() -> Schema;
}

/// Keys that the minor version before this one had, and what holds instead of each.
const GONE: [(&str, &str); 2] = [
    (
        "timers.pace",
        "this key is gone: the next response goes when the client has acknowledged the one before; remove it",
    ),
    (
        "verdicts",
        "this key is gone: every client is sent what the control plane says, and one that rejects it and holds nothing is then sent \
         older content; remove it",
    ),
];

impl Unknown {
    /// What holds instead of a key that the minor version before this one had.
    pub(super) fn instead(&self) -> Option<&'static str> {
        let gone = GONE.iter().find(|(key, _)| *key == self.key);
        gone.map(|(_, message)| *message)
    }

    pub(super) fn message(&self) -> String {
        let name = &self.name;
        match meant(name, self.expected.iter().copied()) {
            Some(meant) => format!("unknown field `{name}`; did you mean `{meant}`?"),
            None => format!("unknown field `{name}`, expected one of {}", self.expected.join(", ")),
        }
    }
}

impl ShapeFaults {
    pub(super) fn expected(&mut self, what: &str, tree: &Tree, key: &str) {
        self.problems.push(Problem {
            place: tree.place(),
            key: key.to_owned(),
            message: format!("expected {what}, found {}", tree.description()),
        });
    }

    /// Returns the entries of a mapping; null is an empty one.
    pub(super) fn mapping<'a>(&mut self, tree: &'a Tree, key: &str) -> Option<Vec<(&'a str, Place, &'a Tree)>> {
        let members = tree.members().map(Iterator::collect);
        if members.is_none() && !tree.is_null() {
            self.expected("a mapping", tree, key);
            return None;
        }
        Some(members.unwrap_or_default())
    }

    pub(super) fn needs(&mut self, tree: &Tree, within: &str, name: &str) {
        if tree.get(name).is_none_or(Tree::is_null) {
            self.problems.push(Problem {
                place: tree.place(),
                key: within.to_owned(),
                message: format!("missing field `{name}`"),
            });
        }
    }

    /// The same, where `spiffe` may stand instead.
    pub(super) fn needs_unless_spiffe(&mut self, tree: &Tree, within: &str, name: &str) {
        if tree.get("spiffe").is_none_or(Tree::is_null) {
            self.needs(tree, within, name);
        }
    }
}

/// Returns the path of a key of a mapping.
pub(super) fn below(within: &str, name: &str) -> String {
    if within.is_empty() {
        name.to_owned()
    } else {
        format!("{within}.{name}")
    }
}

impl Shape for String {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        let text = tree.text().map(str::to_owned);
        if text.is_none() {
            found.expected("a single value", tree, key);
        }
        text
    }

    fn schema() -> Schema {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

impl Shape for bool {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        match tree.text() {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            _ => {
                found.expected("true or false", tree, key);
                None
            }
        }
    }

    fn schema() -> Schema {
        json!({ "type": "boolean" })
    }
}

impl Shape for Raw {
    fn read(tree: &Tree, _: &str, _: &mut ShapeFaults) -> Option<Self> {
        Some(Self(Some(tree.clone())))
    }

    fn schema() -> Schema {
        json!({})
    }
}

impl Shape for Value {
    fn read(tree: &Tree, _: &str, _: &mut ShapeFaults) -> Option<Self> {
        Some(tree.to_value())
    }

    fn schema() -> Schema {
        json!({})
    }
}

impl<T: Shape> Shape for Spanned<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        let place = tree.place();
        T::read(tree, key, found).map(|value| Self { value, place })
    }

    fn schema() -> Schema {
        T::schema()
    }
}

impl<T: Shape> Shape for Option<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.is_null() {
            return Some(None);
        }
        T::read(tree, key, found).map(Some)
    }

    fn schema() -> Schema {
        nullable(T::schema())
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.is_null() {
            return Some(Self::new());
        }
        let Some(items) = tree.items() else {
            found.expected("a list", tree, key);
            return None;
        };
        let items = items.iter().enumerate();
        Some(
            items
                .filter_map(|(at, item)| T::read(item, &format!("{key}[{at}]"), found))
                .collect(),
        )
    }

    fn schema() -> Schema {
        json!({ "type": ["array", "null"], "items": T::schema() })
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        let entries = found.mapping(tree, key)?.into_iter();
        let read = entries.filter_map(|(name, _, value)| {
            let value = T::read(value, &below(key, name), found)?;
            Some((name.to_owned(), value))
        });
        Some(read.collect())
    }

    fn schema() -> Schema {
        json!({ "type": ["object", "null"], "additionalProperties": T::schema() })
    }
}

/// Returns a schema that also takes an empty value.
pub(super) fn nullable(mut schema: Schema) -> Schema {
    if let Some(forms) = schema.get_mut("anyOf").and_then(Schema::as_array_mut) {
        forms.push(json!({ "type": "null" }));
        return schema;
    }
    let kinds = match schema.get("type") {
        Some(Schema::String(kind)) => vec![kind.clone().into()],
        Some(Schema::Array(kinds)) => kinds.clone(),
        // Any value.
        _ => return schema,
    };
    let all = kinds.into_iter().filter(|kind| kind != "null").chain(["null".into()]);
    if let Some(members) = schema.as_object_mut() {
        members.insert("type".to_owned(), all.collect());
    }
    schema
}

/// Reads a single value, or a mapping; `expected` says so to somebody who wrote a list.
pub(super) fn read_word_or<P: Shape, T>(
    (tree, key, found): (&Tree, &str, &mut ShapeFaults),
    expected: &str,
    word: impl FnOnce(Scalar) -> T,
    parts: impl FnOnce(P) -> T,
) -> Option<T> {
    if tree.text().is_some() {
        return Scalar::read(tree, key, found).map(word);
    }
    if tree.items().is_some() {
        found.expected(expected, tree, key);
        return None;
    }
    P::read(tree, key, found).map(parts)
}

/// Returns a schema that takes a single value, or what another one takes.
pub(super) fn word_or(schema: Schema) -> Schema {
    json!({ "anyOf": [String::schema(), schema] })
}

/// Returns the schema of a mapping with fixed keys, each with its schema and whether it must be there.
pub(super) fn fixed(keys: impl IntoIterator<Item = (&'static str, Schema, bool)>) -> Schema {
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    for (key, schema, needed) in keys {
        properties.insert(key.to_owned(), schema);
        required.extend(needed.then(|| Schema::from(key)));
    }
    match required.is_empty() {
        true => json!({ "type": ["object", "null"], "additionalProperties": false, "properties": properties }),
        false => json!({
            "type": ["object", "null"], "additionalProperties": false, "properties": properties, "required": required,
        }),
    }
}

/// A mapping with fixed keys. A key with `needs` must be there; an `Option` holds its value all the same, because a value of a
/// wrong kind is left out.
macro_rules! mapping {
    ($(#[$doc:meta])* $name:ident { $($key:literal $($needs:ident)? => $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        impl $crate::config::reading::Shape for $name {
            fn read(
                tree: &$crate::json::Tree,
                within: &str,
                found: &mut $crate::config::reading::ShapeFaults,
            ) -> Option<Self> {
                const KEYS: &[&str] = &[$($key),*];
                let mut shape = Self::default();
                // A value of a wrong kind is replaced by an empty one, so that those after it in a list keep their numbers.
                let Some(entries) = found.mapping(tree, within) else {
                    return Some(shape);
                };
                for (name, place, value) in entries {
                    let key = $crate::config::reading::below(within, name);
                    match name {
                        $($key => {
                            if let Some(value) = $crate::config::reading::Shape::read(value, &key, found) {
                                shape.$field = value;
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
                Some(shape)
            }

            fn schema() -> serde_json::Value {
                $crate::config::reading::fixed([$((
                    $key,
                    <$type as $crate::config::reading::Shape>::schema(),
                    [$(stringify!($needs))?].contains(&"needs"),
                )),*])
            }
        }
    };
}
pub(super) use mapping;
