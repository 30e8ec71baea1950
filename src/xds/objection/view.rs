// SPDX-License-Identifier: Apache-2.0
//! A text as it may have been before it was escaped or wrapped, byte by byte, and where each byte stands in the text.
//!
//! Owns the escapes of C, JSON and protobuf's text format. Does not know what is looked for.

use std::ops::Range;

/// A reading of a text.
pub(super) struct TextView {
    bytes: Vec<u8>,
    /// Where each byte stands.
    places: Vec<Range<usize>>,
}

impl TextView {
    /// The text as it is.
    pub(super) fn of(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            places: (0..text.len()).map(|at| at..at + 1).collect(),
        }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns where these bytes stand.
    pub(super) fn place(&self, bytes: Range<usize>) -> Range<usize> {
        let place = |at: usize| self.places.get(at).cloned().unwrap_or_default();
        place(bytes.start).start..place(bytes.end.saturating_sub(1)).end
    }

    /// Returns the same without what is no letter and no digit: line breaks, whatever a charset has made of a byte, NULs in between.
    pub(super) fn bare(&self) -> Self {
        let all = self.bytes.iter().zip(&self.places);
        let kept = all.filter(|(byte, _)| byte.is_ascii_alphanumeric());
        let (bytes, places) = kept.map(|(byte, place)| (*byte, place.clone())).unzip();
        Self { bytes, places }
    }

    /// Returns the same with its escapes read.
    pub(super) fn unescaped(&self) -> Self {
        let (mut bytes, mut places, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (found, length) = unescape(rest);
            let place = self.place(at..at + length);
            let mut encoded = [0; 4];
            let found = match found {
                Meant::Byte(byte) => {
                    encoded[0] = byte;
                    &encoded[..1]
                }
                Meant::Character(character) => character.encode_utf8(&mut encoded).as_bytes(),
            };
            bytes.extend_from_slice(found);
            places.extend(found.iter().map(|_| place.clone()));
            at += length;
        }
        Self { bytes, places }
    }
}

/// What an escape stands for.
enum Meant {
    Byte(u8),
    Character(char),
}

/// Returns what the bytes begin with, and how many of them that takes.
fn unescape(bytes: &[u8]) -> (Meant, usize) {
    let number = |digits: &[u8], radix| u32::from_str_radix(str::from_utf8(digits).ok()?, radix).ok();
    match *bytes {
        [b'\\', b'n', ..] => (Meant::Byte(b'\n'), 2),
        [b'\\', b'r', ..] => (Meant::Byte(b'\r'), 2),
        [b'\\', b't', ..] => (Meant::Byte(b'\t'), 2),
        [b'\\', quoted @ (b'\\' | b'"' | b'\'' | b'/'), ..] => (Meant::Byte(quoted), 2),
        [b'\\', b'x', ref digits @ ..] => {
            let byte = digits.get(..2).and_then(|two| number(two, 16));
            byte.map_or((Meant::Byte(b'\\'), 1), |byte| (Meant::Byte(byte as u8), 4))
        }
        [b'\\', b'u', ref digits @ ..] => {
            let found = digits
                .get(..4)
                .and_then(|four| number(four, 16))
                .and_then(char::from_u32);
            found.map_or((Meant::Byte(b'\\'), 1), |found| (Meant::Character(found), 6))
        }
        [b'\\', b'0'..=b'7', ..] => {
            let digits = bytes.iter().skip(1).take(3);
            let digits: Vec<u8> = digits
                .take_while(|digit| (b'0'..=b'7').contains(*digit))
                .copied()
                .collect();
            let byte = number(&digits, 8).unwrap_or_default();
            (Meant::Byte(byte as u8), 1 + digits.len())
        }
        [first, ..] => (Meant::Byte(first), 1),
        [] => (Meant::Byte(0), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read() {
        for (text, meant) in [
            (r"a\nb", &b"a\nb"[..]),
            (r#"\"\\\'\/"#, b"\"\\'/"),
            (r"\302\2410\7x", b"\xc2\xa10\x07x"),
            (r"\x41\x4", b"A\\x4"),
            (r"\u0041\u00e4\ud800", "A\u{e4}\\ud800".as_bytes()),
            ("\\", b"\\"),
        ] {
            assert_eq!(TextView::of(text).unescaped().bytes(), meant, "{text}");
        }
        let view = TextView::of(r"ab\ncd").unescaped();
        assert_eq!(view.place(2..3), 2..4);
        assert_eq!(view.bare().bytes(), b"abcd");
        assert_eq!(view.bare().place(1..3), 1..5);
        assert_eq!(view.place(0..0), 0..1);
    }
}
