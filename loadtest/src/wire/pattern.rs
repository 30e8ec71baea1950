// SPDX-License-Identifier: Apache-2.0
//! Texts with the number of a client in them: `{n}` stands for it, and `{n%20}` for its remainder. Owns how that is written. Knows
//! nothing of what the texts are for.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A text of a flag or a key, with numbers where they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

const START: &str = "{n";

impl Pattern {
    /// Creates one of a path that is the same for all clients.
    pub(crate) fn same(path: &Path) -> Self {
        Self(path.display().to_string())
    }

    /// Returns the text of a client.
    pub(crate) fn of(&self, number: u32) -> String {
        numbered(&self.0, number)
    }

    /// Returns the path of a client.
    pub(crate) fn path(&self, number: u32) -> PathBuf {
        PathBuf::from(self.of(number))
    }

    /// Whether the text is the same for all clients.
    pub(crate) fn is_same(&self) -> bool {
        !self.0.contains(START)
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = text.match_indices(START).find_map(|(at, _)| {
            let (_, from) = text.split_at(at);
            place(from).is_none().then_some(from)
        });
        match wrong {
            Some(wrong) => Err(format!(
                "`{wrong}` is not a client's number: write {{n}}, or {{n%20}} for 20 in turns"
            )),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Returns a text with the number of a client where it stands; what only resembles it stays.
pub(crate) fn numbered(text: &str, number: u32) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(START) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some((divisor, after)) = place(from) {
            out.push_str(&divisor.map_or(number, |divisor| number % divisor).to_string());
            rest = after;
        } else {
            out.push_str(START);
            rest = from.strip_prefix(START).unwrap_or_default();
        }
    }
    out + rest
}

/// Reads the place of a number at the beginning of a text. Returns its divisor, if it has one, and the text after it.
fn place(text: &str) -> Option<(Option<NonZeroU32>, &str)> {
    let (inside, after) = text.strip_prefix(START)?.split_once('}')?;
    match inside.strip_prefix('%') {
        Some(divisor) => Some((Some(divisor.parse().ok()?), after)),
        None => inside.is_empty().then_some((None, after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_where_it_is_asked_for() {
        for (text, expected) in [
            ("plain", "plain"),
            ("edge-{n}", "edge-47"),
            (
                "spiffe://example.org/ns/{n%20}/sa/{n}",
                "spiffe://example.org/ns/7/sa/47",
            ),
            ("{n%1}{n%100}", "047"),
            ("{}{m}", "{}{m}"),
        ] {
            let pattern: Pattern = text.parse().unwrap();
            assert_eq!(pattern.of(47), expected);
            assert_eq!(pattern.is_same(), text == expected, "{text}");
        }
    }

    #[test]
    fn what_only_resembles_a_number_is_refused_in_flags_and_stays_in_other_texts() {
        for text in [
            "a{n%0}",
            "a{n%}",
            "a{n%-1}",
            "a{n",
            "a{n%x}b",
            "a{name}",
            "{n}a{n%99999999999}",
        ] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(
                error.ends_with("is not a client's number: write {n}, or {n%20} for 20 in turns"),
                "{error}"
            );
        }
        assert_eq!(numbered("{n%0} {name} {n} {n", 3), "{n%0} {name} 3 {n");
    }
}
