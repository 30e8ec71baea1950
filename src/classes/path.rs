// SPDX-License-Identifier: Apache-2.0
//! A place in metadata.
//!
//! Owns how such a place is written: `LABELS."app.kubernetes.io/name"`. Does not know which value is there.

use std::fmt;

/// The keys that lead to a member of metadata, from the outermost. Equal places have equal texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    parts: Vec<String>,
    text: String,
}

impl Path {
    /// Creates the place under these keys.
    #[must_use]
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut known, mut text) = (Vec::new(), String::new());
        for part in parts {
            push_member(&mut text, part);
            known.push(part.to_owned());
        }
        Self { parts: known, text }
    }

    /// Reads keys that are separated by dots; a key in double quotes may have dots in it, and `\"` and `\\`.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text;
        loop {
            let (part, after) = match rest.strip_prefix('"') {
                Some(quoted) => unquote(quoted).ok_or_else(|| format!("`{text}` has a quote that is not closed"))?,
                None => {
                    let (part, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                    if part.is_empty() {
                        return Err(format!("`{text}` has an empty key; write \"\" if the key is empty"));
                    }
                    (part.to_owned(), after)
                }
            };
            if !rest.starts_with('"') && part.contains('"') || !after.is_empty() && !after.starts_with('.') {
                return Err(format!(
                    "`{text}` has a quote inside a key; put quotes around the whole key"
                ));
            }
            parts.push(part);
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None => return Ok(Self::new(parts.iter().map(String::as_str))),
            }
        }
    }

    /// The keys.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns the place as text, with quotes only where they are needed.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Clients choose these keys: nothing unprintable must reach a log.
        for c in self.text.chars() {
            match c {
                ' '..='~' => write!(f, "{c}")?,
                _ => write!(f, "{}", c.escape_default())?,
            }
        }
        Ok(())
    }
}

/// Returns the text of the member `part` of the place `path`; for the outermost members `path` is empty.
#[must_use]
pub fn member_path(path: &str, part: &str) -> String {
    let mut text = String::with_capacity(path.len() + part.len() + 1);
    text.push_str(path);
    push_member(&mut text, part);
    text
}

/// Goes on to the member `part` of the place `text`.
fn push_member(text: &mut String, part: &str) {
    if !text.is_empty() {
        text.push('.');
    }
    if !part.is_empty() && !part.contains(['.', '"', '*', '{', '}']) {
        text.push_str(part);
        return;
    }
    text.push('"');
    for c in part.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}

/// Returns the text before the closing quote, and the text after it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut chars = quoted.char_indices();
    loop {
        match chars.next()? {
            (at, '"') => return Some((part, quoted.get(at + 1..)?)),
            (_, '\\') => part.push(chars.next()?.1),
            (_, c) => part.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_dots_stand_in_quotes() {
        for (written, parts, text) in [
            ("TENANT", &["TENANT"][..], "TENANT"),
            ("a.b", &["a", "b"], "a.b"),
            (
                r#"LABELS."app.kubernetes.io/name""#,
                &["LABELS", "app.kubernetes.io/name"],
                r#"LABELS."app.kubernetes.io/name""#,
            ),
            (r#""a"."b""#, &["a", "b"], "a.b"),
            (r#""a\"b\\".c"#, &[r#"a"b\"#, "c"], r#""a\"b\\".c"#),
            (r#"a."""#, &["a", ""], r#"a."""#),
            (r#""*""#, &["*"], r#""*""#),
            ("a/b-c d", &["a/b-c d"], "a/b-c d"),
            (r"a\b", &[r"a\b"], r"a\b"),
        ] {
            let path = Path::read(written).unwrap_or_else(|error| Path::new([error.as_str()]));
            assert_eq!(
                (path.parts(), path.as_str()),
                (
                    &parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()[..],
                    text
                )
            );
            assert_eq!(Path::read(path.as_str()), Ok(Path::new(parts.iter().copied())));
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            r#"a"b"#,
            r#""a"#,
            r#""a"b"#,
            r#""a\"#,
            r#"a.b"c.d""#,
        ] {
            assert!(Path::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn different_places_are_written_differently() {
        let places: &[&[&str]] = &[
            &["a.b"],
            &["a", "b"],
            &["\"a", "b\""],
            &["a\".\"b"],
            &["a", "b", ""],
            &["", "a", "b"],
            &["*"],
            &["\"*\""],
        ];
        let texts: std::collections::BTreeSet<String> = places
            .iter()
            .map(|parts| Path::new(parts.iter().copied()).as_str().to_owned())
            .collect();
        assert_eq!(texts.len(), places.len());
        assert_eq!(Path::new(["a\u{7}\u{202e}b"]).to_string(), r"a\u{7}\u{202e}b");
    }
}
