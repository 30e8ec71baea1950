// SPDX-License-Identifier: Apache-2.0
//! The maximum age of a connection.
//!
//! Owns when the client must reconnect, and how long that waits for outstanding acknowledgements. Knows nothing of streams.

use std::time::{Duration, Instant};

/// The age of one connection.
pub(super) struct Age {
    /// When it is old, and when it ends even if something is not settled. None once it ends.
    ends: Option<(Instant, Instant)>,
}

impl Age {
    /// Starts the age of a connection now. The maximum is `age`, changed at random by up to `jitter` percent in either direction.
    pub(super) fn new(age: Option<Duration>, jitter: u8, now: Instant) -> Self {
        let jitter = f64::from(jitter.min(100)) / 100.0;
        let age = age.map(|age| age.mul_f64(rand::random_range(1.0 - jitter..=1.0 + jitter)));
        let ends = age.and_then(|age| {
            let old = now.checked_add(age)?;
            Some((old, old.checked_add(age)?))
        });
        Self { ends }
    }

    /// Whether the client must reconnect now; true only once. To be called in each turn. This waits for `settled`: a client that
    /// leaves before it acknowledges a response may forget that response, and after a rejection another relay would not help it.
    pub(super) fn is_over(&mut self, settled: impl FnOnce() -> bool, now: Instant) -> bool {
        let over = self
            .ends
            .is_some_and(|(old, last)| last <= now || old <= now && settled());
        self.ends.take_if(|_| over).is_some()
    }

    /// When to call [`Self::is_over`] at the latest.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.ends.map(|(old, last)| if old <= now { last } else { old })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_connection_waits_as_long_again() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let mut age = Age::new(Some(hour), 0, now);
        assert!(!age.is_over(|| true, now + hour / 2));
        assert!(!age.is_over(|| false, now + hour), "something is not settled");
        assert!(age.is_over(|| true, now + hour) && !age.is_over(|| true, now + hour));
        let mut age = Age::new(Some(hour), 0, now);
        assert!(!age.is_over(|| false, now + hour) && age.is_over(|| false, now + 2 * hour));
        assert!(!Age::new(None, 20, now).is_over(|| true, now + 9 * hour));
    }

    #[test]
    fn some_earlier_and_some_later() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let old = |_| Age::new(Some(Duration::from_secs(1000)), 10, now).ends.unwrap().0 - now;
        let mut all: Vec<u64> = (0..1000).map(|at| old(at).as_secs()).collect();
        all.sort_unstable();
        assert!(all[0] >= 900 && all[999] <= 1100 && all[250] < 975 && all[750] > 1025);
    }
}
