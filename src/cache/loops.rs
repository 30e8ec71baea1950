// SPDX-License-Identifier: Apache-2.0
//! Who has brought a mark that a control plane refuses as a loop (K-25).
//!
//! Owns for how long these are refused. Does not end sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use classes::Marks;

/// Senders and the marks that they may not bring for a while.
#[derive(Debug, Default)]
pub(crate) struct Loops(Mutex<RefusedMarks>);

/// By sender and mark, until when.
type RefusedMarks = BTreeMap<(Arc<str>, Box<str>), Instant>;

/// How long. A real loop is asked about once in that time; a client that invents a mark of the control plane disturbs others once.
const REFUSED: Duration = Duration::from_secs(10 * 60);
/// So many are remembered; those that end first are forgotten first.
const REFUSED_MAX: usize = 4096;

impl Loops {
    /// A control plane has named this mark, which these have brought.
    pub(super) fn note(&self, mark: &str, senders: impl Iterator<Item = Arc<str>>, now: Instant) {
        let mut refused = self.0.lock();
        for sender in senders {
            refused.insert((sender, mark.into()), now + REFUSED);
        }
        while refused.len() > REFUSED_MAX {
            let first = refused.iter().min_by_key(|(_, until)| **until);
            let Some(key) = first.map(|(key, _)| key.clone()) else {
                return;
            };
            refused.remove(&key);
        }
    }

    /// Returns the mark for which a client is refused, if there is one.
    pub(super) fn refuses(&self, marks: &Marks) -> Option<Box<str>> {
        let sender = marks.sender()?;
        let refused = self.0.lock();
        if refused.is_empty() {
            return None;
        }
        let brought = |mark: &&String| refused.contains_key(&(sender.clone(), mark.as_str().into()));
        let mark = marks.relays().iter().find(brought)?;
        Some(mark.as_str().into())
    }

    /// Forgets those whose time is over.
    pub(super) fn sweep(&self, now: Instant) {
        self.0.lock().retain(|_, until| now < *until);
    }

    /// The control planes are others now.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-25: who has brought the mark is refused with it for ten minutes, and nobody else, nor the same with other marks.
    #[test]
    fn who_brings_the_mark_is_refused_for_a_while() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let loops = Loops::default();
        let of = |sender: &str, marks: &[&str]| {
            let marks: Vec<String> = marks.iter().map(|mark| (*mark).to_owned()).collect();
            Marks::of(&marks).unwrap().from(Some(sender))
        };
        loops.note("upper", [Arc::from("ip:1")].into_iter(), now);
        let refused = |marks| loops.refuses(&marks).as_deref().map(str::to_owned);
        assert_eq!(refused(of("ip:1", &["upper", "own"])), Some("upper".to_owned()));
        assert_eq!(refused(of("ip:1", &["other"])), None);
        assert_eq!(refused(of("ip:2", &["upper"])), None);
        loops.sweep(now + REFUSED - Duration::from_millis(1));
        assert!(refused(of("ip:1", &["upper"])).is_some());
        loops.sweep(now + REFUSED);
        assert_eq!(refused(of("ip:1", &["upper"])), None);
        for n in 0..2 * REFUSED_MAX {
            loops.note("upper", [Arc::from(n.to_string())].into_iter(), now);
        }
        assert_eq!(loops.0.lock().len(), REFUSED_MAX);
    }
}
