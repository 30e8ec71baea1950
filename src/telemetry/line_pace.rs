// SPDX-License-Identifier: Apache-2.0
//! How often a line that says the same again is logged.
//!
//! Owns the pace: one line at once, and then one a minute. Does not write the lines.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The lines about one thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinePace {
    written: Option<Instant>,
    suppressed: u64,
}

/// The lines about many things, each of which is known by what is said of it.
#[derive(Debug, Default)]
pub struct LinePaces(Mutex<BTreeMap<u64, LinePace>>);

/// How long nothing is written after a line.
const PACE: Duration = Duration::from_secs(60);
/// How many things have lines of their own; all others share one.
const LINES_MAX: usize = 256;
const OTHERS: u64 = 0;

impl LinePace {
    /// If a line may be written now, returns how many were suppressed since the last one.
    pub fn admit(&mut self, now: Instant) -> Option<u64> {
        if !self.is_due(now) {
            self.suppressed += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }

    /// Whether the next line may be written.
    fn is_due(&self, now: Instant) -> bool {
        self.written
            .is_none_or(|written| now.saturating_duration_since(written) >= PACE)
    }
}

impl LinePaces {
    /// If a line that says these texts may be written now, returns how many that say the same were suppressed since the last one.
    pub fn admit(&self, texts: &[&str], now: Instant) -> Option<u64> {
        let hash = |key, text: &&str| xxh3_64_with_seed(text.as_bytes(), key);
        let key = texts.iter().fold(1, hash);
        let mut lines = self.0.lock();
        if lines.len() >= LINES_MAX && !lines.contains_key(&key) {
            lines.retain(|_, line| !line.is_due(now));
        }
        let full = lines.len() >= LINES_MAX && !lines.contains_key(&key);
        let key = if full { OTHERS } else { key };
        lines.entry(key).or_default().admit(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        Instant::now()
    }

    /// E-22: the next line says how many lines were suppressed.
    #[test]
    fn one_line_a_minute() {
        let (lines, start) = (LinePaces::default(), start());
        assert_eq!(lines.admit(&["cds", "a is bad"], start), Some(0));
        for at in 1..60 {
            let now = start + Duration::from_secs(at);
            assert_eq!(lines.admit(&["cds", "a is bad"], now), None);
        }
        assert_eq!(lines.admit(&["cds", "b is bad"], start), Some(0));
        assert_eq!(lines.admit(&["eds", "a is bad"], start), Some(0));
        assert_eq!(lines.admit(&["cds", "a is bad"], start + MINUTE), Some(59));
        assert_eq!(lines.admit(&["cds", "a is bad"], start + MINUTE * 2), Some(0));
    }

    /// However many different things are said, lines and memory are bounded.
    #[test]
    fn something_new_each_time() {
        let (lines, start) = (LinePaces::default(), start());
        for minute in 0..3 {
            let now = start + MINUTE * minute;
            let written = (0..10_000).filter(|thing| lines.admit(&[&format!("{minute} {thing}")], now).is_some());
            assert!(written.count() <= LINES_MAX + 1);
            assert!(lines.0.lock().len() <= LINES_MAX + 1);
        }
    }
}
