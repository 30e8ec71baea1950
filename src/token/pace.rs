// SPDX-License-Identifier: Apache-2.0
//! When the keys of an issuer are fetched.
//!
//! Owns the one pace of all reasons: time that has passed, an unknown key, a fetch that failed. Knows nothing of how keys are fetched.

use std::time::{Duration, Instant};

/// How often keys are fetched.
#[derive(Clone, Copy, Debug)]
pub struct FetchRhythm {
    /// When all is well.
    pub every: Duration,
    /// There are at most two fetches in this time, whatever strangers send.
    pub pair: Duration,
}

/// When the keys of one issuer are fetched.
#[derive(Debug, Default)]
pub(super) struct FetchPace {
    /// The last two fetches, the later one first.
    last: [Option<Instant>; 2],
    /// When the next one is due; none: at once.
    due: Option<Instant>,
    /// Whether somebody has brought a token of an unknown key since the last one began.
    wanted: bool,
    /// Whether one is under way.
    busy: bool,
}

impl Default for FetchRhythm {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(5 * 60),
            pair: Duration::from_secs(60),
        }
    }
}

impl FetchPace {
    /// Notes that somebody needs other keys. Returns whether that is news.
    pub(super) fn want(&mut self) -> bool {
        !std::mem::replace(&mut self.wanted, true)
    }

    /// Returns when to fetch next; none while a fetch is under way.
    pub(super) fn next(&self, rhythm: FetchRhythm, now: Instant) -> Option<Instant> {
        if self.busy {
            return None;
        }
        let due = self.due.filter(|_| !self.wanted).unwrap_or(now);
        let [_, earlier] = self.last;
        Some(earlier.map_or(due, |earlier| due.max(earlier + rhythm.pair)))
    }

    /// Notes that a fetch begins.
    pub(super) fn begin(&mut self, now: Instant) {
        let [last, _] = self.last;
        self.last = [Some(now), last];
        self.wanted = false;
        self.busy = true;
    }

    /// Notes that it has ended. After one that failed the next one follows as soon as it may.
    pub(super) fn end(&mut self, good: bool, rhythm: FetchRhythm, now: Instant) {
        self.busy = false;
        self.due = Some(now + if good { rhythm.every } else { rhythm.pair / 2 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// Whatever happens, there are at most two in a minute; after a good one the next is five minutes later.
    #[test]
    fn two_in_a_minute() {
        let (begun, rhythm) = (now(), FetchRhythm::default());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut pace = FetchPace::default();
        assert_eq!(pace.next(rhythm, at(0)), Some(at(0)));
        pace.begin(at(0));
        assert_eq!(pace.next(rhythm, at(1)), None, "one is under way");
        assert!(pace.want() && !pace.want());
        pace.end(true, rhythm, at(1));
        assert_eq!(pace.next(rhythm, at(2)), Some(at(2)), "an unknown key since it began");
        pace.begin(at(2));
        pace.end(true, rhythm, at(3));
        assert_eq!(pace.next(rhythm, at(4)), Some(at(303)));
        pace.want();
        assert_eq!(pace.next(rhythm, at(4)), Some(at(60)));
        pace.begin(at(60));
        pace.end(false, rhythm, at(61));
        assert_eq!(pace.next(rhythm, at(61)), Some(at(91)), "a failure is tried again");
        let mut begun = Vec::new();
        let mut time = 100;
        while begun.len() < 20 {
            pace.want();
            if pace.next(rhythm, at(time)).is_some_and(|next| next <= at(time)) {
                pace.begin(at(time));
                pace.end(time % 2 == 0, rhythm, at(time));
                begun.push(time);
            }
            time += 1;
        }
        assert!(begun.windows(3).all(|three| three[2] - three[0] >= 60), "{begun:?}");
        assert!(begun[19] <= 100 + 20 * 30, "{begun:?}");
    }
}
