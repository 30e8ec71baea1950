// SPDX-License-Identifier: Apache-2.0
//! Reads the tree of a document into the shapes of settings.
//!
//! Owns what each kind of value looks like in YAML, and the complaints about wrong kinds, missing keys and unknown keys. Goes on
//! after a fault, so that all of them are found at once. Validates no values.

use std::collections::BTreeMap;

use serde_json::json;

use super::rows::Kind;
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
    /// Whether the value was read, and cannot be.
    pub(super) is_value: bool,
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

/// How a value is written: most kinds of values are read as themselves, and a few of them in a way that has a name of its own.
pub(super) trait Shape<T = Self> {
    /// Reads the text of a single value, or says what to write.
    fn parse(_: &str) -> Result<T, String> {
        Err("expected more than a single value".to_owned())
    }

    /// Reads the value of `key`; returns `None` if it is wrong, which `found` then says.
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<T> {
        let Some(text) = tree.text() else {
            found.expected("a single value", tree, key);
            return None;
        };
        Self::parse(text)
            .map_err(|message| found.wrong(tree, key, &message))
            .ok()
    }

    /// Returns what may be written.
    fn kind() -> Kind;

    /// Returns how a value is written, if it is a single one.
    fn text(_: &T) -> String {
        String::new()
    }

    /// Returns the keys of a section with their values.
    fn cells(_: &T) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

impl Unknown {
    pub(super) fn message(&self) -> String {
        let name = &self.name;
        match meant(name, self.expected.iter().copied()) {
            Some(meant) => format!("unknown field `{name}`; did you mean `{meant}`?"),
            None => format!("unknown field `{name}`, expected one of {}", self.expected.join(", ")),
        }
    }
}

impl ShapeFaults {
    fn problem(&mut self, tree: &Tree, key: &str, message: String, is_value: bool) {
        self.problems.push(Problem {
            place: tree.place(),
            key: key.to_owned(),
            message,
            is_value,
        });
    }

    pub(super) fn expected(&mut self, what: &str, tree: &Tree, key: &str) {
        self.problem(
            tree,
            key,
            format!("expected {what}, found {}", tree.description()),
            false,
        );
    }

    /// Says that a value cannot be.
    pub(super) fn wrong(&mut self, tree: &Tree, key: &str, message: &str) {
        self.problem(tree, key, message.to_owned(), true);
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
            self.problem(tree, within, format!("missing field `{name}`"), false);
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
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn kind() -> Kind {
        Kind::Single(json!({ "type": ["string", "number", "boolean"] }))
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

    fn kind() -> Kind {
        Kind::Single(json!({ "type": "boolean" }))
    }

    fn text(value: &Self) -> String {
        value.to_string()
    }
}

impl Shape for Raw {
    fn read(tree: &Tree, _: &str, _: &mut ShapeFaults) -> Option<Self> {
        Some(Self(Some(tree.clone())))
    }

    fn kind() -> Kind {
        Kind::Any
    }
}

impl Shape for Value {
    fn read(tree: &Tree, _: &str, _: &mut ShapeFaults) -> Option<Self> {
        Some(tree.to_value())
    }

    fn kind() -> Kind {
        Kind::Any
    }
}

impl<T: Shape> Shape for Spanned<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        let place = tree.place();
        T::read(tree, key, found).map(|value| Self { value, place })
    }

    fn kind() -> Kind {
        T::kind()
    }
}

impl<T: Shape> Shape for Option<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.is_null() {
            return Some(None);
        }
        T::read(tree, key, found).map(Some)
    }

    fn kind() -> Kind {
        T::kind()
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

    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
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

    fn kind() -> Kind {
        Kind::Named(Box::new(T::kind()))
    }
}

/// A single value, or more than that.
#[derive(Clone, Debug)]
pub(super) enum Either<W, P> {
    /// A single value.
    Word(W),
    /// A mapping or a list.
    Parts(Box<P>),
}

impl<W, P: Default> Default for Either<W, P> {
    fn default() -> Self {
        Self::Parts(Box::default())
    }
}

impl<W: Shape, P: Shape> Shape for Either<W, P> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.text().is_some() {
            return W::read(tree, key, found).map(Self::Word);
        }
        match (P::kind(), tree.items()) {
            (Kind::List(_), None) => found.expected("a single value, or a list", tree, key),
            (Kind::List(_), Some(_)) | (_, None) => {
                return P::read(tree, key, found).map(|parts| Self::Parts(Box::new(parts)));
            }
            (_, Some(_)) => found.expected("a single value, or a mapping", tree, key),
        }
        None
    }

    fn kind() -> Kind {
        W::kind().or(P::kind())
    }
}

/// One text, or a list of texts.
pub(super) type Texts = Spanned<TextList>;

/// The values of a list, or one value alone.
#[derive(Clone, Debug)]
pub(super) struct TextList<T = Scalar>(pub(super) Vec<T>);

impl<T: Shape> Shape for TextList<T> {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.text().is_some() {
            return T::read(tree, key, found).map(|text| Self(vec![text]));
        }
        if tree.items().is_none() {
            found.expected("a text, or a list of texts", tree, key);
            return None;
        }
        Vec::read(tree, key, found).map(Self)
    }

    fn kind() -> Kind {
        T::kind().or(Vec::<T>::kind())
    }
}

/// Returns what to say of a text that is none of the words that may be written. `not` says what it is not, and `or` what else may be there.
pub(super) fn no_word(text: &str, not: &str, words: &[&str], or: Option<&str>) -> String {
    match (words, or) {
        ([others @ .., last], None) if !others.is_empty() => {
            format!("`{text}` {not}; write {} or {last}", others.join(", "))
        }
        _ => format!(
            "`{text}` {not}; write {}, or {}",
            words.join(", "),
            or.unwrap_or("leave it out")
        ),
    }
}

/// A single value: how it is read, what may be written, and how it is shown.
macro_rules! single {
    ($shape:ty as $type:ty: $parse:expr, $kind:expr, $text:expr) => {
        impl $crate::config::reading::Shape<$type> for $shape {
            fn parse(text: &str) -> Result<$type, String> {
                $parse(text)
            }

            fn kind() -> $crate::config::rows::Kind {
                $kind
            }

            fn text(value: &$type) -> String {
                $text(value)
            }
        }
    };
}
pub(super) use single;

/// Words of which one is written, and what each means.
macro_rules! words {
    ($shape:ty as $type:ty, $not:literal $(or $or:literal)?: $($word:literal $(| $other:literal)* => $value:expr,)*) => {
        impl $crate::config::reading::Shape<$type> for $shape {
            fn parse(text: &str) -> Result<$type, String> {
                match text {
                    $($word $(| $other)* => Ok($value),)*
                    _ => {
                        let or = [$($or)?].into_iter().next();
                        Err($crate::config::reading::no_word(text, $not, &[$($word),*], or))
                    }
                }
            }

            fn kind() -> $crate::config::rows::Kind {
                $crate::config::rows::Kind::words(&[$($word $(, $other)*),*])
            }

            fn text(value: &$type) -> String {
                let words = [$(($word, $value)),*];
                let word = words.into_iter().find(|(_, means)| means == value);
                word.map(|(word, _)| word.to_owned()).unwrap_or_default()
            }
        }
    };
}
pub(super) use words;
