// SPDX-License-Identifier: Apache-2.0
//! A rate limit: for a client's requests, and for streams that begin.
//!
//! Owns a bucket that holds what may come in one second. Reads nothing itself: the reader asks first.

use std::time::{Duration, Instant};

/// The bucket of one stream. Requests of a faster client are read later; its stream goes on.
#[derive(Debug)]
pub(in crate::downstream) struct RequestPace {
    /// The time that each request uses up, in nanoseconds; zero means no limit.
    interval: u32,
    /// The time up to which earlier requests have used up the rate.
    paid: Instant,
}

/// One second.
const BURST_NANOS: u32 = 1_000_000_000;

impl RequestPace {
    /// Creates a limit of `per_second` requests; 0 means no limit.
    pub(in crate::downstream) fn new(per_second: u32, now: Instant) -> Self {
        let interval = BURST_NANOS.checked_div(per_second).unwrap_or_default();
        Self { interval, paid: now }
    }

    /// Returns when the next request may be read.
    pub(in crate::downstream) fn next(&self) -> Instant {
        let burst = Duration::from_nanos(u64::from(BURST_NANOS - self.interval));
        self.paid.checked_sub(burst).unwrap_or(self.paid)
    }

    /// Counts a request that was read.
    pub(in crate::downstream) fn count(&mut self, now: Instant) {
        // Without a limit nothing is used up, also for a reader whose clock is behind.
        if self.interval > 0 {
            self.paid = self.paid.max(now) + Duration::from_nanos(u64::from(self.interval));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_second_at_once_and_then_evenly() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let mut pace = RequestPace::new(10, start);
        for _ in 0..10 {
            assert!(pace.next() <= start);
            pace.count(start);
        }
        assert_eq!(pace.next(), start + Duration::from_millis(100));
        let later = start + Duration::from_secs(5);
        for _ in 0..10 {
            assert!(pace.next() <= later);
            pace.count(later);
        }
        assert_eq!(pace.next(), later + Duration::from_millis(100));

        let mut unbound = RequestPace::new(0, start);
        for _ in 0..1_000_000 {
            unbound.count(later);
        }
        assert!(unbound.next() <= start);
    }
}
