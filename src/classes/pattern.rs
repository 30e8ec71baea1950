// SPDX-License-Identifier: Apache-2.0
//! Patterns of texts: `*` stands for any text, and `{ns}` for a part of it that has a name.
//!
//! Owns their syntax, and the one way in which a text matches. Does not know what the texts are.

use std::fmt;

/// A pattern of texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    pieces: Box<[Piece]>,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Piece {
    /// This text.
    Text(Box<str>),
    /// Any text, also none.
    Any,
    /// Some text without a slash, up to what follows in the pattern. It has this name.
    Field(Box<str>),
}

/// What the fields of a pattern stand for in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Box<str>, Box<str>)>);

impl Fields {
    /// Returns what a field stands for.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| **field == *name);
        found.map(|(_, value)| &**value)
    }

    /// Adds the fields of a part of a pattern, whose texts are there.
    fn take(&mut self, part: &[Piece], text: &str, spans: &[(usize, usize)]) {
        for (piece, (from, to)) in part.iter().zip(spans) {
            if let (Piece::Field(name), Some(value)) = (piece, text.get(*from..*to)) {
                self.0.push((name.clone(), value.into()));
            }
        }
    }

    /// Adds the fields of another pattern.
    pub(super) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with the text, and what to write instead.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '*']) {
            let (before, mark) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = mark.strip_prefix("{{") {
                literal.push('{');
                rest = after;
                continue;
            }
            if let Some(after) = mark.strip_prefix("}}") {
                literal.push('}');
                rest = after;
                continue;
            }
            flush(&mut pieces, &mut literal);
            if let Some(after) = mark.strip_prefix('*') {
                pieces.push(Piece::Any);
                rest = after;
                continue;
            }
            let field = mark.strip_prefix('{').and_then(|mark| mark.split_once('}'));
            let (field, after) = field
                .ok_or_else(|| format!("`{text}` has an unmatched brace; write {{{{ or }}}} for a literal brace"))?;
            if field.is_empty() || !field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!(
                    "`{{{field}}}` is not a field; write a name of letters, digits and `_`, such as {{ns}}"
                ));
            }
            pieces.push(Piece::Field(field.into()));
            rest = after;
        }
        literal.push_str(rest);
        flush(&mut pieces, &mut literal);
        let beside = |pair: &[Piece]| match pair {
            [Piece::Field(field), Piece::Any | Piece::Field(_)] | [Piece::Any, Piece::Field(field)] => {
                Some(field.clone())
            }
            _ => None,
        };
        if let Some(field) = pieces.windows(2).find_map(beside) {
            return Err(format!(
                "`{text}` does not say where `{{{field}}}` begins and ends; put a text between it and its neighbour"
            ));
        }
        Ok(Self { pieces: pieces.into() })
    }

    /// Returns the pattern of exactly this text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut pieces = Vec::new();
        flush(&mut pieces, &mut text.to_owned());
        Self { pieces: pieces.into() }
    }

    /// The names of its fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(name) => Some(&**name),
            Piece::Text(_) | Piece::Any => None,
        })
    }

    /// Its parts, in order; `None` stands for a text that is not fixed.
    pub fn parts(&self) -> impl Iterator<Item = Option<&str>> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(&**text),
            Piece::Any | Piece::Field(_) => None,
        })
    }

    /// Whether every text matches.
    pub fn is_any(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|piece| *piece == Piece::Any)
    }

    /// Returns the text with which every match begins, and whether it is all of it.
    pub fn fixed(&self) -> (&str, bool) {
        match &*self.pieces {
            [] => ("", true),
            [Piece::Text(text)] => (text, true),
            [Piece::Text(text), ..] => (text, false),
            [Piece::Any | Piece::Field(_), ..] => ("", false),
        }
    }

    /// Returns the same pattern with values in place of fields. A value stands for itself, whatever characters it has.
    pub fn filled(&self, fields: &Fields) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => literal.push_str(text),
                Piece::Field(name) => literal.push_str(fields.value(name).unwrap_or_default()),
                Piece::Any => {
                    flush(&mut pieces, &mut literal);
                    pieces.push(Piece::Any);
                }
            }
        }
        flush(&mut pieces, &mut literal);
        Self { pieces: pieces.into() }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        match &*self.pieces {
            [Piece::Text(whole)] => **whole == *text,
            [Piece::Text(head), Piece::Any] => text.starts_with(&**head),
            _ => self.found(text).is_some(),
        }
    }

    /// Returns what the fields stand for, if the whole text matches. Each `*` stands for as little as it can.
    pub fn found(&self, text: &str) -> Option<Fields> {
        let mut fields = Fields::default();
        let mut parts = self.pieces.split(|piece| *piece == Piece::Any);
        let first = parts.next()?;
        let mut spans = vec![(0, 0); first.len()];
        let mut at = run(first, text, 0, &mut spans)?;
        fields.take(first, text, &spans);
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return (at == text.len()).then_some(fields);
        }
        // The text before the next part is what the `*` stands for. The first place is the best one, because a later one never ends
        // earlier; only the last part must reach the end.
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            let mut spans = vec![(0, 0); part.len()];
            at = starts(part, text, at)
                .find_map(|start| run(part, text, start, &mut spans).filter(|end| !last || *end == text.len()))?;
            fields.take(part, text, &spans);
        }
        Some(fields)
    }
}

fn flush(pieces: &mut Vec<Piece>, literal: &mut String) {
    if !literal.is_empty() {
        pieces.push(Piece::Text(std::mem::take(literal).into()));
    }
}

/// Returns the places at which a part of a pattern may begin. A part without a text is empty: it is only at the end of a pattern, or
/// between two `*`.
fn starts<'a>(part: &'a [Piece], text: &'a str, from: usize) -> impl Iterator<Item = usize> + 'a {
    let head = match part {
        [Piece::Text(head), ..] => Some(&**head),
        _ => None,
    };
    let mut next = Some(from);
    let found = std::iter::from_fn(move || {
        let from = next?;
        let rest = text.get(from..)?;
        let start = from + rest.find(head?)?;
        next = rest
            .get(start - from..)?
            .chars()
            .next()
            .map(|first| start + first.len_utf8());
        Some(start)
    });
    let (here, end) = (head.is_none().then_some(from), head.is_none().then_some(text.len()));
    here.into_iter().chain(end).chain(found)
}

/// Matches a part of a pattern without `*` from this place on. Returns where it ends, and leaves where the text of each field begins
/// and ends. It is called for one place after the other: a field then begins no earlier than before, so a text is looked through
/// once, however many places there are.
fn run(part: &[Piece], text: &str, from: usize, spans: &mut [(usize, usize)]) -> Option<usize> {
    let mut at = from;
    for ((number, piece), span) in part.iter().enumerate().zip(spans) {
        let rest = text.get(at..)?;
        at += match piece {
            Piece::Text(literal) => rest.starts_with(&**literal).then_some(literal.len())?,
            Piece::Field(_) => {
                let follows = match part.get(number + 1) {
                    Some(Piece::Text(literal)) => literal.chars().next(),
                    Some(Piece::Any | Piece::Field(_)) | None => None,
                };
                let length = match span {
                    (_, end) if at < *end => *end - at,
                    _ => rest.find(|c| c == '/' || Some(c) == follows).unwrap_or(rest.len()),
                };
                *span = (at, at + length);
                (length > 0).then_some(length)?
            }
            Piece::Any => 0,
        };
    }
    Some(at)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Any => f.write_str("*"),
            Piece::Field(name) => write!(f, "{{{name}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<Vec<String>> {
        let pattern = Pattern::read(pattern).unwrap();
        let fields = pattern.found(text)?;
        assert!(pattern.matches(text), "{pattern} {text}");
        Some(fields.0.iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn what_matches() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("a*", "a", true),
            ("a*", "b", false),
            ("*b", "ab", true),
            ("*b", "ba", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("ab*bc", "abc", false),
            ("*a*b*", "xaxbx", true),
            ("*a*b*", "xbxa", false),
            ("**", "x", true),
            ("*aab", "aaab", true),
            ("*ü*", "aüb", true),
            ("{{*}}", "{x}", true),
        ] {
            assert_eq!(found(pattern, text).is_some(), expected, "{pattern} {text}");
            assert_eq!(
                Pattern::read(pattern).unwrap().matches(text),
                expected,
                "{pattern} {text}"
            );
        }
    }

    /// A field has at least one character and no slash, so nobody can be in two places of a path at once.
    #[test]
    fn what_fields_stand_for() {
        let spiffe = "spiffe://td/ns/{ns}/sa/{sa}";
        for (pattern, text, expected) in [
            (spiffe, "spiffe://td/ns/a/sa/b", Some(vec!["ns=a", "sa=b"])),
            (spiffe, "spiffe://td/ns/a/x/sa/b", None),
            (spiffe, "spiffe://td/ns//sa/b", None),
            (spiffe, "spiffe://td/ns/a/sa/b/c", None),
            ("spiffe://td/ns/{ns}/sa/*", "spiffe://td/ns/a/sa/", Some(vec!["ns=a"])),
            ("dns:{pod}.{ns}.pods", "dns:p-1.a.pods", Some(vec!["pod=p-1", "ns=a"])),
            ("dns:*.{ns}.pods", "dns:x.pods.a.pods", Some(vec!["ns=a"])),
            ("*.{ns}.x/{sa}.y", ".a.x/b.c.d.x/e.y", Some(vec!["ns=d", "sa=e"])),
            ("*a{x}b{y}c", "aaa1b2aa1bb3c4c", None),
            ("*a{x}b{y}c", "a1b2c3a4b5c", Some(vec!["x=4", "y=5"])),
            ("dns:{ns}", "dns:a.b", Some(vec!["ns=a.b"])),
            ("dns:{ns}", "dns:", None),
        ] {
            let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
            assert_eq!(found(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn values_stand_for_themselves() {
        let fields = Pattern::read("dns:{ns}").unwrap().found("dns:*{x}").unwrap();
        let filled = Pattern::read("{ns}-*").unwrap().filled(&fields);
        assert!(filled.matches("*{x}-1") && !filled.matches("a-1"));
        assert_eq!(filled.fixed(), ("*{x}-", false));
        assert_eq!(filled.pieces.len(), 2);
    }

    #[test]
    fn bad_patterns() {
        for (text, said) in [
            ("{", "has an unmatched brace"),
            ("a}", "has an unmatched brace"),
            ("{}", "is not a field"),
            ("{a b}", "is not a field"),
            ("{a}*", "where `{a}` begins and ends"),
            ("*{a}", "where `{a}` begins and ends"),
            ("{a}{b}", "where `{a}` begins and ends"),
        ] {
            let error = Pattern::read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        for text in ["a{{b}}*", "spiffe://td/ns/{ns}/sa/*", ""] {
            assert_eq!(Pattern::read(text).unwrap().to_string(), text);
        }
        assert!(Pattern::of("{*").matches("{*") && !Pattern::of("{*").matches("{a"));
    }
}
