//! The gates between types: make before break (D-01 to D-04).
//!
//! Owns how long a gate has been closed and when it opens by itself. Refuses to know what is behind it.

use std::time::{Duration, Instant};

/// A gate that opens by itself: every wait has a bound.
#[derive(Debug, Default)]
pub(super) struct Gate {
    since: Option<Instant>,
    expired: u64,
}

impl Gate {
    /// Something waits behind the closed gate: whether it may pass all the same, because it has waited long enough.
    pub(super) fn wait(&mut self, bound: Duration, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) >= bound
    }

    /// Something passed the closed gate.
    pub(super) const fn pass(&mut self) {
        self.expired += 1;
        self.since = None;
    }

    /// Nothing waits.
    pub(super) const fn clear(&mut self) {
        self.since = None;
    }

    /// When it opens by itself, if something waits.
    pub(super) fn opens(&self, bound: Duration) -> Option<Instant> {
        self.since.map(|since| since + bound)
    }

    /// How often it opened by itself.
    pub(super) const fn expired(&self) -> u64 {
        self.expired
    }
}
