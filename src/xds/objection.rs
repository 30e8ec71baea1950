//! Why a client rejects something, in its own words.
//!
//! Owns how much of them is kept, and which of them may be names. Understands nothing else of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::printable;

/// The words of a rejection. Two with the same words are the same, whenever they were said.
#[derive(Clone, Debug)]
pub struct Objection {
    words: Box<str>,
    code: i32,
    since: Instant,
}

/// The most characters that are kept. Envoys name each bad resource, which can be thousands.
const CHARS_MAX: usize = 1024;

impl Objection {
    /// Keeps the beginning of the words, without control characters. They were said, with this code of gRPC, of a response that was sent
    /// at this time.
    #[must_use]
    pub fn new(code: i32, words: &str, sent: Instant) -> Self {
        let words = steady(words);
        let end = words.char_indices().nth(CHARS_MAX).map_or(words.len(), |(at, _)| at);
        Self {
            words: printable(words.get(..end).unwrap_or_default()).into(),
            code,
            since: sent,
        }
    }

    /// The words.
    #[must_use]
    pub const fn words(&self) -> &str {
        &self.words
    }

    /// The code that came with them.
    #[must_use]
    pub const fn code(&self) -> i32 {
        self.code
    }

    /// When the first response was sent of which they were said, as long as some client has not taken them back.
    #[must_use]
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
    let end = message
        .char_indices()
        .nth(MESSAGE_CHARS_MAX)
        .map_or(message.len(), |(at, _)| at);
    let apart = |character: char| character.is_whitespace() || "'\"`,;()[]{}<>=".contains(character);
    let words = message.get(..end).unwrap_or_default().split(apart);
    words.flat_map(|word| [word, word.trim_end_matches([':', '.', '!', '?'])])
}

/// How much of a message is searched for names.
const MESSAGE_CHARS_MAX: usize = 64 * 1024;

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
    fn a_long_objection_is_cut_and_a_strange_one_is_harmless() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let words = |words: &str| Objection::new(13, words, now).words().to_owned();
        assert_eq!(words("no"), "no");
        assert_eq!(words(&"ä".repeat(2000)), "ä".repeat(CHARS_MAX));
        assert!(!words("a\u{1b}[31m\nb").contains(['\u{1b}', '\n']));
        assert_eq!(
            words("no such filter: goo.gle/debugstr  name:  \"x\""),
            words("no such filter: goo.gle/debugproto name: \"x\"")
        );
        let later = now + std::time::Duration::from_secs(1);
        assert_eq!(Objection::new(13, "no", now), Objection::new(3, "no", later));
    }
}
