// SPDX-License-Identifier: Apache-2.0
//! The marks of the relays that a stream has come through (K-25).
//!
//! Owns how many of them are kept, who answers for them, and the words in which a loop is refused. Does not know what is passed on.

use std::sync::Arc;

/// The marks that the node of a client brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The last one is the client's own.
    relays: Box<[String]>,
    sender: Option<Arc<str>>,
}

/// So many marks of one client are kept, those that were added last.
const MARKS_MAX: usize = 16;
/// No mark of a relay is longer.
const MARK_BYTES_MAX: usize = 256;

/// How the words begin and go on in which a loop is refused. Relays below read the mark in them; 0.1.0 said the same.
const LOOP: &str = "loop: the request has already come through relay `";
const WHY: &str = "`; ";

impl Marks {
    /// Keeps the marks of a node. None: it brings none, so the client is no relay.
    #[must_use]
    pub fn of(all: &[String]) -> Option<Self> {
        let fit = |mark: &&String| (1..=MARK_BYTES_MAX).contains(&mark.len());
        let mut relays: Vec<String> = all.iter().rev().filter(fit).take(MARKS_MAX).cloned().collect();
        relays.reverse();
        (!all.is_empty()).then(|| Self {
            relays: relays.into(),
            sender: None,
        })
    }

    /// Sets who answers for them; `None`: they are not passed on, because no rule lets the client be a relay.
    #[must_use]
    pub fn from(self, sender: Option<&str>) -> Self {
        Self {
            sender: sender.map(Arc::from),
            ..self
        }
    }

    /// The marks. The last one is the client's own.
    pub const fn relays(&self) -> &[String] {
        &self.relays
    }

    /// Who answers for them, if they are passed on.
    pub const fn sender(&self) -> Option<&Arc<str>> {
        self.sender.as_ref()
    }
}

/// Returns the mark of a relay with this node id, of which `number` is known to it alone.
#[must_use]
pub fn mark(id: &str, number: u32) -> String {
    let number = format!("/{number:08x}");
    let ends = id.char_indices().map(|(at, one)| at + one.len_utf8());
    let end = ends.take_while(|end| end + number.len() <= MARK_BYTES_MAX).last();
    format!("{}{number}", id.get(..end.unwrap_or_default()).unwrap_or_default())
}

/// Returns the words for a stream that has come through this relay before.
#[must_use]
pub fn loop_at(mark: &str, why: &str) -> String {
    format!("{LOOP}{mark}{WHY}{why}")
}

/// Returns the mark that such words name, if they are such words.
#[must_use]
pub fn loop_of(words: &str) -> Option<&str> {
    let (_, named) = words.split_once(LOOP)?;
    Some(named.rsplit_once(WHY)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-25: marks of any number and length are a bounded number of bounded marks, and whoever brings any is a relay.
    #[test]
    fn what_a_node_brings_is_bounded() {
        let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        assert_eq!(Marks::of(&many).unwrap().relays(), &many[984..]);
        let long = ["x".repeat(64 * 1024), String::new(), "near".to_owned()];
        assert_eq!(Marks::of(&long).unwrap().relays(), ["near"]);
        assert_eq!(Marks::of(&long[..1]).unwrap().relays().len(), 0);
        assert_eq!(Marks::of(&[]), None);
    }

    /// The mark of a relay is always kept by others, and differs for each relay.
    #[test]
    fn an_own_mark_fits() {
        assert_eq!(mark("relay-1", 255), "relay-1/000000ff");
        let long = mark(&"ä".repeat(1000), 7);
        assert!(long.ends_with("/00000007"));
        assert_eq!(Marks::of(std::slice::from_ref(&long)).unwrap().relays(), [long]);
    }

    #[test]
    fn the_words_name_the_mark() {
        let odd = "a`; b/0000";
        for mark in ["relay-1/00ff", odd] {
            assert_eq!(loop_of(&loop_at(mark, "its upstream leads back to it")), Some(mark));
        }
        // As 0.1.0 says it, in the body of an answer over HTTP.
        let old =
            "{\"error\":\"loop: the request has already come through relay `zone/1`; its upstream leads back to it\"}";
        assert_eq!(loop_of(old), Some("zone/1"));
        assert_eq!(loop_of("loop: of something else"), None);
    }
}
