// SPDX-License-Identifier: Apache-2.0
//! The subject of a certificate, as text (RFC 4514).
//!
//! Owns the reading of DER names, and the escapes that keep one value from looking like several. Knows nothing of certificates.

use std::fmt::Write as _;

/// The short names of RFC 4514, by the content of the object identifier.
const KEYWORDS: [(&[u8], &str); 9] = [
    (&[85, 4, 3], "CN"),
    (&[85, 4, 6], "C"),
    (&[85, 4, 7], "L"),
    (&[85, 4, 8], "ST"),
    (&[85, 4, 9], "STREET"),
    (&[85, 4, 10], "O"),
    (&[85, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01], "UID"),
];

/// The tags of DER.
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// One value of DER.
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// With tag and length.
    whole: &'a [u8],
}

/// Returns the text of a name, which is given as the content of its outermost sequence. None if it is empty or not DER.
pub(super) fn text(name: &[u8]) -> Option<String> {
    // RFC 4514: "starting with the last element of the sequence and moving backwards toward the first".
    let parts: Option<Vec<String>> = elements(name)?.iter().rev().map(relative).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join(","))
}

/// Returns the text of one part of a name, which may have several values.
fn relative(part: &Element<'_>) -> Option<String> {
    let values: Option<Vec<String>> = elements(part.content)?.iter().map(value).collect();
    values.filter(|_| part.tag == SET).map(|values| values.join("+"))
}

fn value(pair: &Element<'_>) -> Option<String> {
    let both = elements(pair.content).filter(|_| pair.tag == SEQUENCE)?;
    let [kind, value] = both.as_slice() else { return None };
    if kind.tag != OBJECT_IDENTIFIER {
        return None;
    }
    let known = KEYWORDS.iter().find(|(identifier, _)| *identifier == kind.content);
    let readable = matches!(value.tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING);
    let text = std::str::from_utf8(value.content).ok().filter(|_| readable);
    Some(match (known, text) {
        (Some((_, keyword)), Some(text)) => format!("{keyword}={}", escaped(text)),
        (Some((_, keyword)), None) => format!("{keyword}=#{}", hexadecimal(value.whole)),
        (None, _) => format!("{}=#{}", dotted(kind.content)?, hexadecimal(value.whole)),
    })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, character) in text.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => escaped.extend(['\\', character]),
            '#' if at == 0 => escaped.push_str("\\#"),
            ' ' if at == 0 || at == last => escaped.push_str("\\ "),
            _ if character.is_control() => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(escaped, "\\{byte:02X}");
                }
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an object identifier in dotted form.
fn dotted(content: &[u8]) -> Option<String> {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in content {
        number = number.checked_mul(128)?.checked_add(u64::from(byte & 127))?;
        if byte & 128 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    let (first, rest) = numbers.split_first()?;
    let root = (first / 40).min(2);
    let mut text = format!("{root}.{}", first - root * 40);
    for number in rest {
        let _ = write!(text, ".{number}");
    }
    Some(text)
}

/// Returns all elements of the content. None if it is not DER.
pub(super) fn elements(mut content: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut found = Vec::new();
    while let [tag, length, rest @ ..] = content {
        let (length, header) = match *length {
            short @ 0..=127 => (usize::from(short), 2),
            0x81 => (usize::from(*rest.first()?), 3),
            0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), 4),
            _ => return None,
        };
        let (whole, after) = content.split_at_checked(header + length)?;
        found.push(Element {
            tag: *tag,
            content: whole.get(header..)?,
            whole,
        });
        content = after;
    }
    content.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut element = vec![tag];
        match u8::try_from(content.len()).unwrap() {
            short @ 0..=127 => element.push(short),
            long => element.extend([0x81, long]),
        }
        element.extend(content);
        element
    }

    fn pair(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        der(SEQUENCE, &[der(OBJECT_IDENTIFIER, kind), der(tag, value)].concat())
    }

    #[test]
    fn names_are_written_as_in_the_standard() {
        let cn: &[u8] = &[85, 4, 3];
        let o: &[u8] = &[85, 4, 10];
        let email: &[u8] = &[42, 134, 72, 134, 247, 13, 1, 9, 1];
        for (parts, wanted) in [
            (
                vec![
                    vec![pair(o, UTF8_STRING, b"acme")],
                    vec![pair(cn, PRINTABLE_STRING, b"edge-1")],
                ],
                "CN=edge-1,O=acme",
            ),
            (
                vec![vec![pair(cn, UTF8_STRING, b"a"), pair(o, UTF8_STRING, b"b")]],
                "CN=a+O=b",
            ),
            (vec![vec![pair(cn, UTF8_STRING, b"a,O=admin")]], "CN=a\\,O=admin"),
            (vec![vec![pair(cn, UTF8_STRING, b" #a\nb ")]], "CN=\\ #a\\0Ab\\ "),
            (vec![vec![pair(cn, UTF8_STRING, b"#0a")]], "CN=\\#0a"),
            (
                vec![vec![pair(cn, UTF8_STRING, &[b'x'; 200])]],
                &format!("CN={}", "x".repeat(200)),
            ),
            (vec![vec![pair(cn, 0x1e, &[0, 97])]], "CN=#1e020061"),
            (vec![vec![pair(cn, UTF8_STRING, &[0xff])]], "CN=#0c01ff"),
            (
                vec![vec![pair(email, IA5_STRING, b"a@b")]],
                "1.2.840.113549.1.9.1=#1603614062",
            ),
        ] {
            let sets: Vec<Vec<u8>> = parts.iter().map(|values| der(SET, &values.concat())).collect();
            let name = sets.concat();
            assert_eq!(text(&name).as_deref(), Some(wanted));
            assert!((1..name.len()).all(|cut| text(&name[..cut]).as_deref() != Some(wanted)));
        }
        assert_eq!(text(&[]), None);
        assert_eq!(text(&der(SET, &der(SEQUENCE, &[]))), None);
    }
}
