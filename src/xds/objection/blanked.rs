// SPDX-License-Identifier: Apache-2.0
//! Words of clients without what is sensitive in what they quote (S-12).
//!
//! Owns what is blanked: the sensitive values of the rejected content, and by their form what stands in `inline_string` and
//! `inline_bytes`, and PEM blocks. Does not know the content.

use std::fmt::Write as _;
use std::ops::Range;

use super::sensitive::Sensitive;

const REDACTED: &str = "[redacted]";

/// The fields that have a content inline, as protobuf's text format and JSON call them.
const INLINE: [&str; 4] = ["inline_string", "inline_bytes", "inlineString", "inlineBytes"];
/// How PEM blocks begin and end.
const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
const DASHES: &str = "-----";

/// How an error of a constraint ends whose field follows: `TlsCertificateValidationError.PrivateKey`.
const CONSTRAINT: &str = "ValidationError.";
/// Envoy says what is wrong after the message, and its message of the innermost field like this.
const DUMPED: &str = "}\n: ";
const FIELD: &str = "field: \"";

/// So many fields are named: an error may have causes.
const FIELDS_MAX: usize = 8;

/// Returns the words without what is sensitive in them. Of a rejected secret, only what is wrong and the field's path are left.
pub(super) fn blanked(words: &str, secret: bool, sensitive: &Sensitive) -> String {
    if secret {
        let said = words.rsplit_once(DUMPED).map_or(words, |(_, said)| said);
        let clause = clause(said);
        let clause = clause.split_once(": ").map_or(clause, |(first, _)| first);
        let fields = fields(said.get(clause.len()..).unwrap_or_default());
        return blank(&[clause, &fields].concat(), sensitive);
    }
    let clause = clause(words);
    // Where not all values could be looked for, nothing is quoted.
    if !sensitive.is_complete() && clause.len() < words.len() {
        return blank(clause, sensitive) + REDACTED;
    }
    blank(words, sensitive)
}

/// Returns the beginning of a text up to what may be a quotation.
fn clause(words: &str) -> &str {
    let end = words.find(|character: char| "\n\r\"'`{<|;".contains(character));
    words.get(..end.unwrap_or(words.len())).unwrap_or_default()
}

/// Returns the fields that constraints name.
fn fields(words: &str) -> String {
    let named = words.match_indices(CONSTRAINT).filter_map(|(at, _)| {
        let is_name = |character: char| character.is_ascii_alphanumeric() || "_.[]".contains(character);
        let (before, after) = words.split_at_checked(at)?;
        let start = before.rfind(|character| !is_name(character)).map_or(0, |at| at + 1);
        let start = before.get(start..)?;
        let end = after.find(|character| !is_name(character)).unwrap_or(after.len());
        Some([start, after.get(..end)?.trim_end_matches('.')].concat())
    });
    let innermost = words
        .rsplit_once(FIELD)
        .and_then(|(_, after)| after.split_once("\", reason: "));
    let innermost = innermost.map(|(field, _)| field.to_owned());
    let innermost = innermost.filter(|field| field.chars().all(|one| one.is_ascii_lowercase() || "_.".contains(one)));
    let named = named.take(FIELDS_MAX).chain(innermost);
    let mut text = String::new();
    for (at, field) in named.enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{field}", if at == 0 { ": " } else { ", " });
    }
    text
}

fn blank(words: &str, sensitive: &Sensitive) -> String {
    let mut hidden = vec![false; words.len()];
    let mut hide = |place: Range<usize>| {
        hidden
            .get_mut(place)
            .into_iter()
            .flatten()
            .for_each(|byte| *byte = true);
    };
    sensitive.find(words, &mut hide);
    for name in INLINE {
        each(words, name, |at| {
            let value = value_after(words, at + name.len());
            let end = value.end;
            hide(value);
            end
        });
    }
    each(words, BEGIN, |at| {
        let end = block_end(words, at);
        hide(at..end);
        end
    });
    // One of which the first line was cut off.
    let mut last = 0;
    each(words, END, |at| {
        let before = words.get(last..at).unwrap_or_default();
        let end = block_end(words, at);
        if !before.contains(BEGIN) {
            hide(last + block_start(before)..end);
        }
        last = end;
        end
    });
    let mut text = String::with_capacity(words.len());
    let mut last = false;
    for (at, character) in words.char_indices() {
        let bytes = hidden.get(at..at + character.len_utf8()).unwrap_or_default();
        let now = bytes.contains(&true);
        if !now {
            text.push(character);
        } else if !last {
            text.push_str(REDACTED);
        }
        last = now;
    }
    text
}

/// Calls `found` with each place of a text, which returns where to go on.
fn each(words: &str, text: &str, mut found: impl FnMut(usize) -> usize) {
    let mut from = 0;
    while let Some(at) = words.get(from..).and_then(|rest| rest.find(text)) {
        from = found(from + at).max(from + at + 1);
    }
}

/// Returns the place of the value of a field whose name ends here; up to the end of the words if its end was cut off.
fn value_after(words: &str, at: usize) -> Range<usize> {
    let rest = |at: usize| words.get(at..).unwrap_or_default();
    let skip = |at: usize, all: &[char]| words.len() - rest(at).trim_start_matches(all).len();
    let separator = skip(at, &['\\', '"', '\'', ' ']);
    if !rest(separator).starts_with([':', '=']) {
        return at..at;
    }
    let start = skip(separator + 1, &[' ', '\n', '\t']);
    let quote = skip(start, &['\\']);
    let Some(mark) = rest(quote).chars().next().filter(|mark| "\"'`".contains(*mark)) else {
        let end = rest(start).find([' ', '\n', ',', '}', ')']);
        return start..end.map_or(words.len(), |end| start + end);
    };
    // In a text that is quoted itself, the quotes of the value are escaped as often.
    let slashes = quote - start;
    let ends = rest(quote + 1).match_indices(mark).map(|(end, _)| quote + 1 + end);
    let escapes = |end: &usize| {
        let before = words.get(quote + 1..*end).unwrap_or_default();
        before.len() - before.trim_end_matches('\\').len()
    };
    let end = ends.into_iter().find(|end| escapes(end) <= slashes);
    start..end.map_or(words.len(), |end| end + 1)
}

/// Returns the end of the PEM block whose first or last line begins here.
fn block_end(words: &str, at: usize) -> usize {
    let rest = words.get(at..).unwrap_or_default();
    let last = rest.find(END).map(|last| last + END.len());
    let end = last.and_then(|last| Some(last + rest.get(last..)?.find(DASHES)? + DASHES.len()));
    at + end.unwrap_or(rest.len())
}

/// Returns the start of the PEM block of which this is before the last line.
fn block_start(before: &str) -> usize {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "+/=\\ \r\n\t-".contains(character);
    before.trim_end_matches(is_part).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a type without a descriptor quotes is known by its form.
    #[test]
    fn by_its_form() {
        let none = Sensitive::default();
        for (words, left) in [
            ("no such filter 'x'", "no such filter 'x'"),
            (
                r#"a { inline_string: "s3cret\"x" } b"#,
                "a { inline_string: [redacted] } b",
            ),
            (
                r#"{"inlineBytes":"czNjcmV0","a":1}"#,
                r#"{"inlineBytes":[redacted],"a":1}"#,
            ),
            (
                r#"x "inline_string: \"s3\\\"cret\" y" z"#,
                r#"x "inline_string: [redacted] y" z"#,
            ),
            (r#"inline_string: "s3cr"#, "inline_string: [redacted]"),
            ("inline_bytes=s3cret, b", "inline_bytes=[redacted], b"),
            ("inline_string is needed", "inline_string is needed"),
            ("inline_string: \"\" b", "inline_string: [redacted] b"),
            ("a -----BEGIN X-----\\nabc\\n-----END X----- b", "a [redacted] b"),
            ("a -----BEGIN X-----\nab", "a [redacted]"),
            ("in \"MIIE\\nabc+/=\n-----END X-----\" b", "in \"[redacted]\" b"),
        ] {
            assert_eq!(blank(words, &none), left, "{words}");
        }
    }

    /// Of a secret only the first clause and the fields are left.
    #[test]
    fn of_a_secret() {
        // As Envoy 1.40 says it.
        let words = "goo.gle/debugproto  \nname: \"keyed\"\ntls_certificate {\n  private_key {\n    inline_string: \"abc\"\n  }\n}\n: Proto \
                     constraint validation failed (SecretValidationError.TlsCertificate: embedded message failed validation | caused by \
                     TlsCertificateValidationError.CertificateChain: embedded message failed validation | caused by field: \
                     \"specifier\", reason: is required)";
        assert_eq!(
            blanked(words, true, &Sensitive::default()),
            "Proto constraint validation failed (SecretValidationError.TlsCertificate: TlsCertificateValidationError.CertificateChain, specifier"
        );
        let older = "Failed to load private key from <inline>, Cause: abc";
        assert_eq!(
            blanked(older, true, &Sensitive::default()),
            "Failed to load private key from "
        );
        let password = Sensitive::of(["hunter22hunter"], true);
        assert_eq!(
            blanked("bad password hunter22hunter", true, &password),
            "bad password [redacted]"
        );
    }
}
