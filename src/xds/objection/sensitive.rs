// SPDX-License-Identifier: Apache-2.0
//! The sensitive values of a content that a client may have rejected (S-12).
//!
//! Owns where they, or parts of them, stand in words, whole or cut, escaped or not. Does not know which values are sensitive.

use std::ops::Range;

use super::view::TextView;

/// The values, by their parts.
#[derive(Debug)]
pub struct Sensitive {
    /// All parts of [`PART`] bytes.
    parts: Numbers,
    /// The same of their letters and digits alone.
    bare: Numbers,
    /// Values that have no such part.
    short: Vec<Box<[u8]>>,
    /// How the others begin.
    beginnings: Numbers,
    complete: bool,
}

/// Many numbers, of which few are asked for.
#[derive(Debug, Default)]
struct Numbers {
    sorted: Vec<u64>,
    /// A bit for each of some hashes: most questions end here.
    filter: Vec<u64>,
}

/// How many bits the filter has.
const FILTER_BITS: usize = 1 << 16;

/// So many bytes in a row are taken for a part of a value. Fewer are found only at the end of words that were cut.
const PART: usize = size_of::<u64>();
const BEGINNING_MIN: usize = 4;
/// So many values without such a part are looked for.
const SHORT_MAX: usize = 64;

impl Sensitive {
    /// Of these values. `complete` says whether they are all that the content has.
    pub fn of(values: impl IntoIterator<Item = impl AsRef<[u8]>>, complete: bool) -> Self {
        let (mut all_parts, mut bare_parts, mut short, mut beginnings) =
            (Vec::new(), Vec::new(), Vec::<Box<[u8]>>::new(), Vec::new());
        for value in values {
            let value = value.as_ref();
            if value.len() < PART {
                short.extend((!value.is_empty()).then(|| value.into()));
                continue;
            }
            all_parts.extend(parts(value));
            let bare: Vec<u8> = value
                .iter()
                .filter(|byte| byte.is_ascii_alphanumeric())
                .copied()
                .collect();
            bare_parts.extend(parts(&bare));
            beginnings.extend((BEGINNING_MIN..PART).filter_map(|length| beginning(value.get(..length)?)));
        }
        short.sort_unstable();
        short.dedup();
        let complete = complete && short.len() <= SHORT_MAX;
        short.truncate(SHORT_MAX);
        Self {
            parts: Numbers::of(all_parts),
            bare: Numbers::of(bare_parts),
            short,
            beginnings: Numbers::of(beginnings),
            complete,
        }
    }

    /// Whether these are all values of the content.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Calls `found` with each place in the words where a part of a value stands.
    pub(super) fn find(&self, words: &str, mut found: impl FnMut(Range<usize>)) {
        if self.parts.is_empty() && self.short.is_empty() {
            return;
        }
        // Some print a message inside of a text that they print.
        let raw = TextView::of(words);
        let once = raw.unescaped();
        let twice = once.unescaped();
        for view in [raw, once, twice] {
            for (known, view) in [(&self.bare, &view.bare()), (&self.parts, &view)] {
                for (at, part) in parts(view.bytes()).enumerate() {
                    if known.has(part) {
                        found(view.place(at..at + PART));
                    }
                }
            }
            let bytes = view.bytes();
            for length in BEGINNING_MIN..PART {
                let end = bytes.len().checked_sub(length).and_then(|at| bytes.get(at..));
                if end.and_then(beginning).is_some_and(|end| self.beginnings.has(end)) {
                    found(view.place(bytes.len() - length..bytes.len()));
                }
            }
            for short in &self.short {
                let stands = bytes.windows(short.len()).enumerate().filter(|(at, window)| {
                    let apart = |at: Option<usize>| {
                        at.and_then(|at| bytes.get(at))
                            .is_none_or(|byte| !byte.is_ascii_alphanumeric())
                    };
                    **window == **short && apart(at.checked_sub(1)) && apart(Some(at + short.len()))
                });
                stands.for_each(|(at, _)| found(view.place(at..at + short.len())));
            }
        }
    }
}

/// Of nothing: there is no sensitive value.
impl Default for Sensitive {
    fn default() -> Self {
        Self::of([""; 0], true)
    }
}

impl Numbers {
    fn of(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        all.dedup();
        let bits = if all.is_empty() { 0 } else { FILTER_BITS / 64 };
        let mut filter = vec![0; bits];
        for (at, bit) in all.iter().map(|number| place(*number)) {
            filter.get_mut(at).into_iter().for_each(|bits| *bits |= bit);
        }
        Self { sorted: all, filter }
    }

    fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    fn has(&self, number: u64) -> bool {
        let (at, bit) = place(number);
        self.filter.get(at).is_some_and(|bits| bits & bit != 0) && self.sorted.binary_search(&number).is_ok()
    }
}

/// Returns where a number has its bit in a filter.
const fn place(number: u64) -> (usize, u64) {
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    ((hash / 64) as usize, 1 << (hash % 64))
}

fn parts(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let windows = bytes.windows(PART).map(|part| part.try_into().unwrap_or_default());
    windows.map(u64::from_be_bytes)
}

/// Returns a number for fewer bytes than a part has, which also says how many they are.
fn beginning(bytes: &[u8]) -> Option<u64> {
    let mut padded = [0; PART];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    *padded.last_mut()? = u8::try_from(bytes.len()).ok()?;
    Some(u64::from_be_bytes(padded))
}

#[cfg(test)]
mod tests {
    use super::super::blanked::blanked;
    use super::*;

    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIGx1y8FiZ2+Q/abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\noAoGCCqG\n-----END EC PRIVATE KEY-----\n";

    fn left(words: &str, values: &[&[u8]]) -> String {
        blanked(words, false, &Sensitive::of(values, true))
    }

    /// No four letters of the key in a row.
    fn keeps_nothing(left: &str) -> bool {
        let body: String = KEY.chars().filter(char::is_ascii_alphanumeric).collect();
        let bare: String = left
            .replace("[redacted]", "")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        !bare
            .as_bytes()
            .windows(6)
            .any(|part| body.as_bytes().windows(6).any(|of| of == part))
    }

    /// S-12: values go wherever they stand, however they are written, and nothing else goes.
    #[test]
    fn values_are_found_in_any_form() {
        let escaped = KEY.escape_default().to_string();
        let twice = escaped.escape_default().to_string();
        let octal: String = KEY.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        let unicode: String = KEY.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
        // As UTF-16 that was read as bytes, and with line breaks in other places.
        let wide: String = KEY.chars().flat_map(|one| [one, '\0']).collect();
        let wrapped: String = KEY
            .chars()
            .filter(|one| *one != '\n')
            .enumerate()
            .flat_map(|(at, one)| [Some('\n').filter(|_| at % 20 == 0), Some(one)])
            .flatten()
            .collect();
        for form in [KEY.to_owned(), escaped, twice, octal, unicode, wide, wrapped] {
            for value in [KEY.as_bytes(), &KEY.as_bytes()[31..]] {
                let all = left(&format!("bad key <<{form}>> of web"), &[value]);
                assert!(all.starts_with("bad key <<") && all.ends_with(">> of web"), "{all}");
                assert!(keeps_nothing(&all), "{all}");
            }
            for cut in [12, 40, 90, 130] {
                let cut: String = form.chars().take(form.chars().count() * cut / 150).collect();
                let all = left(&format!("bad: {cut}"), &[KEY.as_bytes()]);
                assert!(keeps_nothing(&all), "{all}");
            }
        }
        assert_eq!(left("no such filter", &[KEY.as_bytes()]), "no such filter");
    }

    /// A key in two members, a short password, bytes that are no text, and the beginning of a value at the end of words that were cut.
    #[test]
    fn parts_and_short_values() {
        let (one, other) = ("hunter2-hunter3-", "hunter4-hunter5");
        let all = left(
            "a { x: \"hunter2-hunter3-\" y: \"hunter4-hunter5\" }",
            &[one.as_bytes(), other.as_bytes()],
        );
        assert_eq!(all, "a { x: \"[redacted]\" y: \"[redacted]\" }");
        let split = left(
            "a { x: \"hunter2-hunter3-\" y: \"hunter4-hunter5\" }",
            &[[one, other].concat().as_bytes()],
        );
        assert_eq!(split, all);
        assert_eq!(
            left("password 'abc' of abcd", &[b"abc"]),
            "password '[redacted]' of abcd"
        );
        let bytes: Vec<u8> = (120..200).collect();
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:o}")).collect();
        assert_eq!(left(&format!("k: \"{octal}\""), &[&bytes]), "k: \"[redacted]\"");
        assert_eq!(
            left("x: \"hunter2-hunter3-hun", &[b"hunter2-hunter3-hunter4"]),
            "x: \"[redacted]"
        );
        assert_eq!(
            left("and then hunt", &[b"hunter2-hunter3-hunter4"]),
            "and then [redacted]"
        );
        assert_eq!(left("", &[b"", b"x"]), "");
    }

    /// Where not all values could be looked for, nothing is quoted.
    #[test]
    fn without_all_values_nothing_is_quoted() {
        let some = Sensitive::of([""; 0], false);
        assert_eq!(
            blanked("bad listener web: { a: 1 }", false, &some),
            "bad listener web: [redacted]"
        );
        assert_eq!(blanked("bad listener web", false, &some), "bad listener web");
    }

    /// Long words cost no more than their length.
    #[test]
    fn long_words() {
        let long = "x y\\".repeat(16 * 1024);
        assert_eq!(left(&long, &[KEY.as_bytes()]), long);
        let many = format!("{}{KEY}", "inline_string: \"-----END -----BEGIN ".repeat(1000));
        assert!(keeps_nothing(&left(&many, &[KEY.as_bytes()])));
    }
}
