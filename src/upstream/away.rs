//! How often it is logged that a server cannot be reached.
//!
//! Owns the pace of these lines. Does not write them, and does not decide what a failure is.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A server or its refusals: one line when it begins, and one each minute while it goes on, however many streams fail.
#[derive(Debug, Default)]
pub(super) struct Away(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    begun: Option<Instant>,
    said: Option<Instant>,
    suppressed: u64,
}

/// How long nothing is written after a line.
const PACE: Duration = Duration::from_secs(60);

impl Away {
    /// An attempt failed. Returns how many failures were not logged since the last line, if this one is to be logged.
    pub(super) fn failed(&self, now: Instant) -> Option<u64> {
        let mut since = self.0.lock();
        since.begun.get_or_insert(now);
        if since
            .said
            .is_some_and(|said| now.saturating_duration_since(said) < PACE)
        {
            since.suppressed += 1;
            return None;
        }
        since.said = Some(now);
        Some(std::mem::take(&mut since.suppressed))
    }

    /// The server answered. Returns how long attempts had failed, if they had.
    pub(super) fn over(&self, now: Instant) -> Option<Duration> {
        let begun = std::mem::take(&mut *self.0.lock()).begun;
        begun.map(|begun| now.saturating_duration_since(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_when_it_goes_one_each_minute_and_one_when_it_is_back() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let away = Away::default();
        assert_eq!(away.over(start), None, "it was not away");
        let said: Vec<(u64, u64)> = (0..150)
            .filter_map(|second| Some((second, away.failed(at(second))?)))
            .collect();
        assert_eq!(said, [(0, 0), (60, 59), (120, 59)]);
        assert_eq!(away.over(at(150)), Some(Duration::from_secs(150)));
        assert_eq!((away.over(at(151)), away.failed(at(152))), (None, Some(0)));
    }
}
