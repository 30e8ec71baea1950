// SPDX-License-Identifier: Apache-2.0
//! Clients that hung and were cut off.
//!
//! Owns who they were, for ten minutes. Knows nothing of streams.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Clients that hung and were cut off, by what they are called.
#[derive(Debug, Default)]
pub struct Hung(Mutex<BTreeMap<String, CutOff>>);

/// When a client was cut off last, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// When.
    pub at: Instant,
    /// What it did not do.
    pub why: &'static str,
}

/// How long they are shown.
const SHOWN: Duration = Duration::from_secs(10 * 60);
/// How many are remembered. Others are only counted.
const REMEMBERED_MAX: usize = 4096;

impl Hung {
    /// The client that is called so was cut off.
    pub fn note(&self, name: String, why: &'static str, now: Instant) {
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, one| is_shown(one, now));
        }
        if known.len() < REMEMBERED_MAX || known.contains_key(&name) {
            known.insert(name, CutOff { at: now, why });
        }
    }

    /// Returns those of the last ten minutes, the last one first.
    pub fn all(&self, now: Instant) -> Vec<(String, CutOff)> {
        let mut known = self.0.lock();
        known.retain(|_, one| is_shown(one, now));
        let mut all: Vec<_> = known.iter().map(|(name, one)| (name.clone(), *one)).collect();
        all.sort_by_key(|(_, one)| std::cmp::Reverse(one.at));
        all
    }
}

fn is_shown(one: &CutOff, now: Instant) -> bool {
    now.saturating_duration_since(one.at) < SHOWN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// A client is shown once, for ten minutes after the last time. There is a bound.
    #[test]
    fn ten_minutes() {
        let (hung, began) = (Hung::default(), clock::now());
        let at = |minutes: u64| began + Duration::from_secs(60 * minutes);
        let names = |minutes| {
            hung.all(at(minutes))
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        hung.note("a".to_owned(), "it did not read", at(0));
        hung.note("b".to_owned(), "it answered no ping", at(1));
        assert_eq!(names(2), ["b", "a"]);
        hung.note("a".to_owned(), "it answered no ping", at(3));
        assert_eq!(names(3), ["a", "b"]);
        assert_eq!(names(11), ["a"]);
        assert_eq!(names(13), [""; 0]);
        for client in 0..2 * REMEMBERED_MAX {
            hung.note(client.to_string(), "it did not read", at(20));
        }
        assert_eq!(names(20).len(), REMEMBERED_MAX);
        hung.note("c".to_owned(), "it did not read", at(31));
        assert_eq!(names(31), ["c"]);
    }
}
