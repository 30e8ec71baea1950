//! When clients are asked about one type.
//!
//! Owns how often. Does not know what they are asked.

use std::time::{Duration, Instant};

/// So many questions follow rejections at once. Clients of one kind mostly reject together, and the second one may be all it takes.
const AT_ONCE: u32 = 4;
/// Later ones come at most once in this time.
const AGAIN: Duration = Duration::from_secs(1);

/// The questions about one type.
#[derive(Debug, Default)]
pub(super) struct Pace {
    due: Option<Instant>,
    asked: Option<Instant>,
    asking: bool,
    /// When the last question would have come if all had come one after the other.
    even: Option<Instant>,
    /// As long as this, whoever tries what is condemned is expected to answer.
    trial: Option<Instant>,
    /// As long as this, those are whom it was sent before, if there are any.
    pending: Option<Instant>,
    /// When everything that is condemned is asked about.
    review: Option<Instant>,
}

/// What it is time to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// What clients have rejected, and what was condemned a moment ago.
    News,
    /// Everything that is condemned, too.
    All,
}

impl Pace {
    /// There is reason to ask.
    pub(super) fn wish(&mut self, now: Instant) {
        let ahead = AGAIN * (AT_ONCE - 1);
        let full = self.even.filter(|even| *even > now + ahead);
        self.at(full.map_or(now, |even| even - ahead));
    }

    /// A client tries what is condemned, and will answer until this time.
    pub(super) fn watch(&mut self, until: Instant) {
        self.trial = self.trial.max(Some(until));
        self.at(self.asked.map_or(until, |at| at + AGAIN));
    }

    /// Those to whom it was sent before will answer until this time.
    pub(super) fn expect(&mut self, until: Instant) {
        self.pending = self.pending.max(Some(until));
        self.at(self.asked.map_or(until, |at| at + AGAIN));
    }

    /// It is asked at this time at the latest.
    pub(super) fn at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Everything that is condemned is asked about at this time at the latest.
    pub(super) fn review(&mut self, at: Instant) {
        self.review = Some(self.review.map_or(at, |review| review.min(at)));
        self.at(at);
    }

    /// Returns what to ask, if it is time; then it counts as asked.
    pub(super) fn ask(&mut self, now: Instant) -> Option<Extent> {
        if self.asking || self.due.is_none_or(|due| due > now) {
            return None;
        }
        let reviews = self.review.take_if(|at| *at <= now).is_some();
        let extent = if reviews || self.trial.is_some() {
            Extent::All
        } else {
            Extent::News
        };
        self.even = Some(self.even.map_or(now, |even| even.max(now)) + AGAIN);
        (self.due, self.asked, self.asking) = (self.review, Some(now), true);
        Some(extent)
    }

    /// The answer is there. `pending`: somebody may still accept what is condemned.
    pub(super) fn answered(&mut self, pending: bool, now: Instant) {
        self.asking = false;
        self.trial.take_if(|until| *until <= now);
        self.pending.take_if(|until| !pending || *until <= now);
        if self.trial.is_some() || self.pending.is_some() {
            self.at(self.asked.map_or(now, |at| at + AGAIN));
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
