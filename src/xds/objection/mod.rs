// SPDX-License-Identifier: Apache-2.0
//! Why a client rejects something, in its own words.
//!
//! Owns how much of them is kept, and which of them may be names. Understands nothing else of them; whoever writes them into a line
//! escapes what would steer it, once.

mod blanked;
mod sensitive;
mod view;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::{TypeUrl, is_secret};
use blanked::blanked;
pub use sensitive::Sensitive;

/// The words of a rejection. Two with the same words are the same, whenever they were said.
#[derive(Clone, Debug)]
pub struct Objection {
    words: Box<str>,
    /// How many characters are left out behind the words, and how those end.
    more: Option<Box<(usize, Box<str>)>>,
    code: i32,
    since: Instant,
}

/// What a client says of a response that it rejects, before anything of it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The type of the response.
    pub type_url: &'a TypeUrl,
    /// The code of gRPC.
    pub code: i32,
    /// The words.
    pub words: &'a str,
    /// When the response was sent.
    pub sent: Instant,
}

/// The most characters that are kept. Envoys name each bad resource, which can be thousands.
const CHARS_MAX: usize = 1024;
/// So many are kept of the end of longer words: Envoy lists all resources before it says what is wrong.
const END_CHARS_MAX: usize = 512;

impl Said<'_> {
    /// S-12: returns what is kept of it, once these values of the rejected content were blanked.
    pub fn without(&self, sensitive: &Sensitive) -> Objection {
        let read = beginning(self.words, MESSAGE_CHARS_MAX);
        let clean = blanked(read, is_secret(self.type_url), sensitive);
        Objection::kept(self.code, &clean, self.sent)
    }
}

impl Objection {
    /// Keeps words of which no content is known, without what is sensitive by its form (S-12). They were said, with this code of gRPC, of
    /// a response that was sent at this time.
    #[must_use]
    pub fn new(code: i32, words: &str, sent: Instant) -> Self {
        let read = beginning(words, MESSAGE_CHARS_MAX);
        Self::kept(code, &blanked(read, false, &Sensitive::default()), sent)
    }

    /// Keeps the beginning of the words, and the end of long ones.
    fn kept(code: i32, clean: &str, since: Instant) -> Self {
        let clean = &*steady(clean);
        let words = beginning(clean, CHARS_MAX);
        let rest = clean.get(words.len()..).unwrap_or_default();
        let left_out = rest.chars().count().saturating_sub(END_CHARS_MAX);
        let end = rest.get(beginning(rest, left_out).len()..).unwrap_or_default();
        Self {
            words: words.into(),
            more: (!rest.is_empty()).then(|| Box::new((left_out, end.into()))),
            code,
            since,
        }
    }

    /// The words.
    pub const fn words(&self) -> &str {
        &self.words
    }

    /// The words; of long ones as much of the beginning as of the end.
    pub fn in_full(&self) -> Cow<'_, str> {
        let Some((left_out, end)) = self.more.as_deref() else {
            return Cow::Borrowed(&self.words);
        };
        let first = beginning(&self.words, CHARS_MAX.saturating_sub(end.chars().count()));
        let left_out = left_out + self.words.chars().count().saturating_sub(first.chars().count());
        Cow::Owned(format!("{first} [{left_out} characters left out] {end}"))
    }

    /// The code that came with them.
    pub const fn code(&self) -> i32 {
        self.code
    }

    /// When the first response was sent of which they were said, as long as some client has not taken them back.
    pub const fn since(&self) -> Instant {
        self.since
    }
}

/// Protobuf writes one of these before a message that it prints for people, and as many spaces as it likes within it, so that nobody
/// reads it by program. The same rejection would be another one from each client.
const MARKS: [&str; 3] = ["goo.gle/debugonly", "goo.gle/debugproto", "goo.gle/debugstr"];

/// Returns the words without what is random in them.
fn steady(words: &str) -> Cow<'_, str> {
    if !MARKS.iter().any(|mark| words.contains(mark)) {
        return Cow::Borrowed(words);
    }
    let plain = MARKS
        .iter()
        .fold(words.to_owned(), |words, mark| words.replace(mark, ""));
    let plain: Vec<&str> = plain.split_whitespace().collect();
    Cow::Owned(plain.join(" "))
}

impl PartialEq for Objection {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Objection {}

impl Hash for Objection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

/// Returns the words of a message that may be names, each once.
#[must_use]
pub fn named_in(message: &str) -> BTreeSet<&str> {
    words_of(message).collect()
}

/// Returns the words of a message that may be names, in their order.
pub fn words_of(message: &str) -> impl Iterator<Item = &str> {
    let apart = |character: char| character.is_whitespace() || "'\"`,;()[]{}<>=".contains(character);
    let words = beginning(message, MESSAGE_CHARS_MAX).split(apart);
    words.flat_map(|word| [word, word.trim_end_matches([':', '.', '!', '?'])])
}

/// How much of a message is read.
const MESSAGE_CHARS_MAX: usize = 64 * 1024;

/// Returns so many characters of a text.
fn beginning(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_names() {
        let message = "Error adding/updating cluster(s) a-1: bad, xdstp://a/T/x?b=1: bad; no route `r.2`.";
        let words = named_in(message);
        for (name, is) in [("a-1", true), ("a", false), ("a-1:", true), ("r.2", true), ("T", false)] {
            assert_eq!(words.contains(name), is, "{name}");
        }
    }

    #[test]
    fn a_long_objection_is_cut() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let words = |words: &str| Objection::new(13, words, now).words().to_owned();
        assert_eq!(words("no"), "no");
        assert_eq!(words(&"ä".repeat(2000)), "ä".repeat(CHARS_MAX));
        let long = format!("begins{}the reason", "ä".repeat(5000));
        let kept = Objection::new(13, &long, now);
        assert!(kept.words().starts_with("begins") && kept.words().chars().count() == CHARS_MAX);
        let shown = kept.in_full();
        assert!(
            shown.ends_with("the reason")
                && shown.contains("[3992 characters left out]")
                && shown.chars().count() < 1100,
            "{shown}"
        );
        assert_eq!(Objection::new(13, &"ä".repeat(1024), now).in_full(), "ä".repeat(1024));
        assert_eq!(
            words("no such filter: goo.gle/debugstr  name:  \"x\""),
            words("no such filter: goo.gle/debugproto name: \"x\"")
        );
        let later = now + std::time::Duration::from_secs(1);
        assert_eq!(Objection::new(13, "no", now), Objection::new(3, "no", later));
    }
}
