//! The due times of actions at a fixed rate, whether or not earlier ones are complete.

use std::time::{Duration, Instant};

/// Turns at equal distances from a beginning. What is late is not put off: the next turn is due when it always was, and a late one
/// is timed from when it was due, so that no stall leaves itself out of the figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    begin: Instant,
    interval: Duration,
}

impl Schedule {
    pub(crate) fn new(begin: Instant, per_second: f64) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(Duration::MAX);
        Self { begin, interval }
    }

    /// When this turn, counted from 0, is due.
    pub(crate) fn due(&self, turn: u32) -> Instant {
        let after = self.interval.saturating_mul(turn);
        self.begin.checked_add(after).unwrap_or(self.begin)
    }
}
