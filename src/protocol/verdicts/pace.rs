//! When clients are asked about one type.
//!
//! Owns how often. Does not know what they are asked.

use std::time::{Duration, Instant};

/// So many questions follow rejections at once. Clients of one kind mostly reject together, and the second one may be all it takes.
const AT_ONCE: u8 = 4;
/// Later ones come at most once in this time.
const AGAIN: Duration = Duration::from_secs(1);
/// After so long without a question, the next ones come at once.
const QUIET: Duration = Duration::from_secs(10);

/// The questions about one type.
#[derive(Debug, Default)]
pub(super) struct Pace {
    due: Option<Instant>,
    asked: Option<Instant>,
    asking: bool,
    recent: u8,
    /// As long as this, somebody is expected to answer for what was sent to him.
    watching: Option<Instant>,
}

impl Pace {
    /// There is reason to ask.
    pub(super) fn wish(&mut self, now: Instant) {
        let again = self.asked.filter(|_| self.recent >= AT_ONCE).map(|at| at + AGAIN);
        self.at(again.map_or(now, |again| again.max(now)));
    }

    /// Somebody will answer until this time.
    pub(super) fn watch(&mut self, until: Instant) {
        self.watching = self.watching.max(Some(until));
        let again = self.asked.map(|at| at + AGAIN);
        self.at(again.unwrap_or(until));
    }

    /// It is asked at this time at the latest.
    pub(super) fn at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Returns whether it is time to ask; then it counts as asked.
    pub(super) fn ask(&mut self, now: Instant) -> bool {
        if self.asking || self.due.is_none_or(|due| due > now) {
            return false;
        }
        let quiet = self.asked.is_none_or(|at| at + QUIET <= now);
        self.recent = if quiet { 1 } else { self.recent.saturating_add(1) };
        (self.due, self.asked, self.asking) = (None, Some(now), true);
        true
    }

    /// The answer is there.
    pub(super) fn answered(&mut self, now: Instant) {
        self.asking = false;
        match self.watching {
            Some(until) if until > now => self.at(self.asked.map_or(now, |at| at + AGAIN)),
            Some(_) | None => self.watching = None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.filter(|_| !self.asking)
    }

    /// Whether nothing is asked, and nothing will be.
    pub(super) const fn is_idle(&self) -> bool {
        self.due.is_none() && !self.asking
    }
}
