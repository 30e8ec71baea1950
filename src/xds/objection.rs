//! Why a client rejects something, in its own words.
//!
//! Owns how much of them is kept. Understands nothing of them.

use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::printable;

/// The words of a rejection. Two with the same words are the same, whenever they were said.
#[derive(Clone, Debug)]
pub struct Objection {
    words: Box<str>,
    since: Instant,
}

/// The most characters that are kept. Envoys name each bad resource, which can be thousands.
const CHARS_MAX: usize = 1024;

impl Objection {
    /// Keeps the beginning of the words, without control characters. They were said of a response that was sent at this time.
    #[must_use]
    pub fn new(words: &str, sent: Instant) -> Self {
        let end = words.char_indices().nth(CHARS_MAX).map_or(words.len(), |(at, _)| at);
        Self {
            words: printable(words.get(..end).unwrap_or_default()).into(),
            since: sent,
        }
    }

    /// The words.
    #[must_use]
    pub const fn words(&self) -> &str {
        &self.words
    }

    /// When the first response was sent of which they were said, as long as some client has not taken them back.
    #[must_use]
    pub const fn since(&self) -> Instant {
        self.since
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_objection_is_cut_and_a_strange_one_is_harmless() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let words = |words: &str| Objection::new(words, now).words().to_owned();
        assert_eq!(words("no"), "no");
        assert_eq!(words(&"ä".repeat(2000)), "ä".repeat(CHARS_MAX));
        assert!(!words("a\u{1b}[31m\nb").contains(['\u{1b}', '\n']));
        let later = now + std::time::Duration::from_secs(1);
        assert_eq!(Objection::new("no", now), Objection::new("no", later));
    }
}
