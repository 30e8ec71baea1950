//! How often a line that says the same again is logged.
//!
//! Owns the pace: one line at once, and then one a minute. Does not write the lines.

use std::time::{Duration, Instant};

/// The lines about one thing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinePace {
    written: Option<Instant>,
    suppressed: u64,
}

/// How long nothing is written after a line.
const PACE: Duration = Duration::from_secs(60);

impl LinePace {
    /// If a line may be written now, returns how many were suppressed since the last one.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        if !self.is_due(now) {
            self.suppressed += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }

    /// Whether the next line may be written.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.written
            .is_none_or(|written| now.saturating_duration_since(written) >= PACE)
    }
}
