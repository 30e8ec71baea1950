// SPDX-License-Identifier: Apache-2.0
//! The marks of the relays that clients of a view come through (K-25).
//!
//! Owns which of them are passed on and when, and who has brought each. Knows nothing of nodes, and ends no session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use classes::Marks;

/// The marks that the sessions of a view bring.
#[derive(Debug, Default)]
pub(super) struct RelayChain {
    /// Whether any session has ever brought any: hardly any client is a relay.
    used: AtomicBool,
    brought: Mutex<BroughtMarks>,
}

#[derive(Debug, Default)]
struct BroughtMarks {
    /// By the number of the session. Those of sessions that have gone are not passed on any more.
    sessions: BTreeMap<u32, Arc<Marks>>,
    /// Whose marks were passed on last and before that: the server may speak of a session that has gone.
    passed_on: [Vec<Arc<Marks>>; 2],
    /// When marks were passed on last.
    taken: Option<Instant>,
    /// Whether there are other marks than those that were passed on.
    news: bool,
}

/// So many marks are passed on: those of each sender in turn, so that nobody who invents marks keeps out others.
const PASSED_ON_MAX: usize = 256;
/// Marks are passed on no more often: clients may invent them without a pause.
const PACE: Duration = Duration::from_secs(1);

impl RelayChain {
    /// A session brings these marks, in place of those that it brought before. Returns whether the writer must be told.
    pub(super) fn bring(&self, session: u32, marks: Option<&Arc<Marks>>) -> bool {
        let marks = marks.filter(|marks| marks.sender().is_some());
        if marks.is_none() && !self.used.load(Ordering::Acquire) {
            return false;
        }
        self.used.store(true, Ordering::Release);
        let mut brought = self.brought.lock();
        let before = match marks {
            Some(marks) => brought.sessions.insert(session, marks.clone()),
            None => brought.sessions.remove(&session),
        };
        let relays = |marks: Option<&Arc<Marks>>| marks.map(|marks| marks.relays().to_vec());
        let new = relays(marks) != relays(before.as_ref());
        new && !std::mem::replace(&mut brought.news, true)
    }

    /// Returns when the writer is to be told of other marks.
    pub(super) fn due(&self) -> Option<Instant> {
        let brought = self.brought.lock();
        brought.taken.filter(|_| brought.news).map(|taken| taken + PACE)
    }

    /// Returns the marks that are passed on from now on, if they are others, and the time has come.
    pub(super) fn take(&self, now: Instant) -> Option<Vec<String>> {
        let mut brought = self.brought.lock();
        if !brought.news || brought.taken.is_some_and(|taken| now < taken + PACE) {
            return None;
        }
        brought.news = false;
        brought.taken = Some(now);
        let [last, before] = &mut brought.passed_on;
        std::mem::swap(last, before);
        let sessions = brought.sessions.values().cloned().collect();
        let [last, _] = &mut brought.passed_on;
        *last = sessions;
        Some(passed_on(brought.sessions.values()))
    }

    /// The server refuses what has come through this relay. Returns the sessions that bring its mark, which is not passed on any more,
    /// and all who have brought it.
    pub(super) fn end(&self, mark: &str) -> (Vec<u32>, BTreeSet<Arc<str>>) {
        let mut brought = self.brought.lock();
        let bring = |marks: &Arc<Marks>| marks.relays().iter().any(|relay| relay == mark);
        let all = brought.sessions.values().chain(brought.passed_on.iter().flatten());
        let senders = all
            .filter(|marks| bring(marks))
            .filter_map(|marks| marks.sender().cloned());
        let senders = senders.collect();
        let mut ended = Vec::new();
        brought.sessions.retain(|session, marks| {
            let ends = bring(marks);
            ended.extend(ends.then_some(*session));
            !ends
        });
        // Without waiting: the view is not served meanwhile.
        (brought.news, brought.taken) = (true, None);
        (ended, senders)
    }
}

/// Returns the marks of these, the nearest last: of each sender in turn first the own marks of its relays, then those from farther away.
fn passed_on<'a>(sessions: impl Iterator<Item = &'a Arc<Marks>>) -> Vec<String> {
    let mut senders: BTreeMap<&str, Vec<&Marks>> = BTreeMap::new();
    for marks in sessions {
        let Some(sender) = marks.sender() else { continue };
        senders.entry(sender).or_default().push(marks);
    }
    let mut turns: Vec<_> = senders
        .values()
        .map(|brought| {
            let farthest = brought
                .iter()
                .map(|marks| marks.relays().len())
                .max()
                .unwrap_or_default();
            (0..farthest).flat_map(|distance| {
                let at = move |marks: &&'a Marks| marks.relays().iter().rev().nth(distance);
                brought.iter().filter_map(at)
            })
        })
        .collect();
    let (mut known, mut near) = (BTreeSet::new(), Vec::new());
    while !turns.is_empty() && near.len() < PASSED_ON_MAX {
        turns.retain_mut(|turn| {
            let next = turn.find(|mark| !known.contains(*mark));
            near.extend(next.filter(|mark| known.insert(*mark)));
            next.is_some()
        });
    }
    near.truncate(PASSED_ON_MAX);
    near.into_iter().rev().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(relays: &[&str]) -> Vec<String> {
        relays.iter().map(|relay| (*relay).to_owned()).collect()
    }

    fn marks(sender: &str, relays: &[&str]) -> Option<Arc<Marks>> {
        Marks::of(&list(relays)).map(|marks| Arc::new(marks.from(Some(sender))))
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn start() -> Instant {
        Instant::now()
    }

    /// K-25: marks are passed on when there are others, once a second at most, and no longer than their sessions are there.
    #[test]
    fn those_that_come_and_go() {
        let (chain, now) = (RelayChain::default(), start());
        assert!(!chain.bring(1, None));
        assert_eq!(chain.take(now), None);
        assert!(chain.bring(1, marks("a", &["edge", "zone"]).as_ref()));
        assert_eq!((chain.due(), chain.take(now)), (None, Some(list(&["edge", "zone"]))));
        chain.bring(2, marks("b", &["zone"]).as_ref());
        assert_eq!(chain.due(), Some(now + PACE));
        assert_eq!(chain.take(now), None);
        assert_eq!(chain.take(now + PACE), Some(list(&["edge", "zone"])));
        assert!(chain.bring(1, None));
        assert_eq!(chain.take(now + 2 * PACE), Some(list(&["zone"])));
        assert!(!chain.bring(2, marks("b", &["zone"]).as_ref()), "nothing new");
        let silent = Marks::of(&list(&["edge"])).map(Arc::new);
        assert!(!chain.bring(3, silent.as_ref()), "no rule lets it be a relay");
    }

    /// Who invents marks keeps out nobody's own.
    #[test]
    fn each_sender_has_its_turn() {
        let (chain, now) = (RelayChain::default(), start());
        for session in 0..1000 {
            let invented: Vec<String> = (0..16).map(|n| format!("{session}-{n}")).collect();
            let invented = Marks::of(&invented).map(|marks| Arc::new(marks.from(Some("mallory"))));
            chain.bring(session, invented.as_ref());
        }
        for session in 1000..1100 {
            let own = format!("zone-{session}");
            chain.bring(session, marks(&format!("ip:{session}"), &["far", &own]).as_ref());
        }
        let all = chain.take(now).unwrap();
        let real = all.iter().filter(|mark| mark.starts_with("zone-")).count();
        assert_eq!((all.len(), real), (PASSED_ON_MAX, 100));
        assert!(
            all.iter()
                .rev()
                .take(101)
                .filter(|mark| mark.starts_with("zone-"))
                .count()
                >= 100
        );
    }

    /// The server names a mark: who has brought it is found, whether it is still there or not, and the mark goes at once.
    #[test]
    fn whoever_has_brought_a_mark_is_found() {
        let (chain, now) = (RelayChain::default(), start());
        chain.bring(1, marks("a", &["upper", "own"]).as_ref());
        chain.bring(2, marks("b", &["other"]).as_ref());
        assert_eq!(chain.take(now).map(|all| all.len()), Some(3));
        chain.bring(1, None);
        chain.bring(3, marks("c", &["upper"]).as_ref());
        let senders = |names: &[&str]| -> BTreeSet<Arc<str>> { names.iter().map(|name| Arc::from(*name)).collect() };
        assert_eq!(chain.end("upper"), (vec![3], senders(&["a", "c"])));
        assert_eq!(chain.take(now), Some(list(&["other"])));
        assert_eq!(chain.end("nobody's"), (Vec::new(), senders(&[])));
    }
}
