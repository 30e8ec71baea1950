// SPDX-License-Identifier: Apache-2.0
//! The due times of actions at a fixed rate, whether or not earlier ones are complete.

use std::time::{Duration, Instant};

/// Turns at equal distances from a start. A late turn does not delay the next one, and it is timed from when it was due, so that
/// the figures include every stall.
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

    /// Returns when this turn is due; turns count from 0.
    pub(crate) fn due(&self, turn: u32) -> Instant {
        let after = self.interval.saturating_mul(turn);
        self.begin.checked_add(after).unwrap_or(self.begin)
    }
}
