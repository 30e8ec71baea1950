// SPDX-License-Identifier: Apache-2.0
//! The gates between types: make before break (D-01 to D-04).
//!
//! Owns how long a gate has been closed and when it opens by itself. Does not know what waits behind it.

use std::time::{Duration, Instant};

/// A gate that opens by itself: every wait has a bound.
#[derive(Debug, Default)]
pub(super) enum OrderGate {
    /// Nothing waits.
    #[default]
    Free,
    /// Something has waited since then.
    Waits(Instant),
    /// The same, and it pauses until so many milliseconds after that.
    Pauses(Instant, u32),
    /// The same; its time has come and nothing has passed yet, so it needs no timer any more.
    Ripe(Instant),
}

impl OrderGate {
    /// Something waits behind the closed gate. Returns whether it has waited long enough to pass anyway.
    pub(super) fn wait(&mut self, bound: Duration, now: Instant) -> bool {
        if self.since().is_none() {
            *self = Self::Waits(now);
        }
        self.is_ripe(bound, now)
    }

    /// Something waits, and may pass when this moment has come, if nothing else holds it back then.
    pub(super) fn pause(&mut self, until: Instant, now: Instant) {
        let since = self.since().unwrap_or(now);
        let pause = until.saturating_duration_since(since).as_micros().div_ceil(1000);
        *self = Self::Pauses(since, u32::try_from(pause).unwrap_or(u32::MAX));
    }

    /// What it waited for has come. Returns when a pause after that is over, if it has waited.
    pub(super) fn paused(&self, quiet: Duration, now: Instant) -> Option<Instant> {
        match self {
            Self::Free | Self::Ripe(_) => None,
            Self::Waits(_) => Some(now + quiet),
            Self::Pauses(since, pause) => Some(after(*since, *pause)),
        }
    }

    /// Something waits, and has not waited for longer than since then.
    pub(super) fn wait_from(&mut self, since: Instant) {
        *self = Self::Waits(self.since().map_or(since, |before| before.max(since)));
    }

    /// Nothing waits.
    pub(super) const fn clear(&mut self) {
        *self = Self::Free;
    }

    /// Returns whether something waits.
    pub(super) const fn waits(&self) -> bool {
        self.since().is_some()
    }

    /// Returns whether something has waited long enough.
    pub(super) fn is_ripe(&self, bound: Duration, now: Instant) -> bool {
        self.since().is_some_and(|since| now >= since + bound)
    }

    /// A timer fired.
    pub(super) fn handle_timeout(&mut self, bound: Duration, now: Instant) {
        if let Some(since) = self.since().filter(|_| self.is_ripe(bound, now)) {
            *self = Self::Ripe(since);
        }
    }

    /// Returns when the gate opens by itself, if something waits.
    pub(super) fn poll_timeout(&self, bound: Duration) -> Option<Instant> {
        match self {
            Self::Waits(since) => Some(*since + bound),
            Self::Pauses(since, pause) => Some((*since + bound).min(after(*since, *pause))),
            Self::Free | Self::Ripe(_) => None,
        }
    }

    const fn since(&self) -> Option<Instant> {
        match self {
            Self::Free => None,
            Self::Waits(since) | Self::Pauses(since, _) | Self::Ripe(since) => Some(*since),
        }
    }
}

fn after(since: Instant, milliseconds: u32) -> Instant {
    since + Duration::from_millis(milliseconds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D-04: every wait has a bound, and needs a timer only once.
    #[test]
    fn a_gate_opens_by_itself() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let (bound, mut gate) = (Duration::from_secs(5), OrderGate::default());
        assert!(gate.poll_timeout(bound).is_none() && !gate.wait(bound, now));
        let ends = gate.poll_timeout(bound).unwrap();
        assert!(ends == now + bound && !gate.wait(bound, now + bound / 2) && gate.wait(bound, ends));
        gate.handle_timeout(bound, ends);
        assert!(gate.is_ripe(bound, ends) && gate.poll_timeout(bound).is_none());
        gate.clear();
        assert!(!gate.waits());
    }

    /// D-03: a pause begins when the wait is over, is no longer than that, and ends with the bound at the latest.
    #[test]
    fn a_pause_after_a_wait() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let (bound, quiet, mut gate) = (Duration::from_secs(5), Duration::from_secs(1), OrderGate::default());
        assert_eq!(gate.paused(quiet, now), None);
        gate.wait(bound, now);
        let until = gate.paused(quiet, now + quiet).unwrap();
        gate.pause(until, now + quiet);
        assert_eq!((until, gate.poll_timeout(bound)), (now + quiet * 2, Some(until)));
        assert_eq!(gate.paused(quiet, until), Some(until));
        gate.pause(now + bound + quiet, until);
        assert_eq!(gate.poll_timeout(bound), Some(now + bound));
        gate.handle_timeout(bound, now + bound);
        assert!(gate.is_ripe(bound, now + bound) && gate.poll_timeout(bound).is_none());
    }
}
