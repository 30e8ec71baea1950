//! The maximum age of a connection.
//!
//! Owns when the client must reconnect, and how long that waits for outstanding acknowledgements. Knows nothing of streams.

use std::task::Context;
use std::time::{Duration, Instant};

use crate::downstream::alarm::Alarm;

/// The age of one connection.
pub(super) struct Age {
    /// When it is old, and when it ends even if something is not settled. None once it ends.
    ends: Option<(Instant, Instant)>,
    alarm: Alarm,
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
        Self {
            ends,
            alarm: Alarm::default(),
        }
    }

    /// Whether the client must reconnect now; true only once. To be called in each turn. This waits for `settled`: a client that
    /// leaves before it acknowledges a response may forget that response, and after a rejection another relay would not help it.
    pub(super) fn is_over(&mut self, settled: impl FnOnce() -> bool, now: Instant, cx: &mut Context<'_>) -> bool {
        let Some((old, last)) = self.ends else { return false };
        // Nearly every call ends here.
        if now < old && self.alarm.is_set() && !self.alarm.is_due(now) {
            return false;
        }
        if last <= now || old <= now && settled() {
            self.ends = None;
            return true;
        }
        let next = if old <= now { last } else { old };
        if self.alarm.poll(Some(next), cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn an_old_connection_waits_as_long_again() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let cx = &mut Context::from_waker(Waker::noop());
        let mut age = Age::new(Some(hour), 0, now);
        assert!(!age.is_over(|| true, now + hour / 2, cx));
        assert!(!age.is_over(|| false, now + hour, cx), "something is not settled");
        assert!(age.is_over(|| true, now + hour, cx) && !age.is_over(|| true, now + hour, cx));
        let mut age = Age::new(Some(hour), 0, now);
        assert!(!age.is_over(|| false, now + hour, cx) && age.is_over(|| false, now + 2 * hour, cx));
        assert!(!Age::new(None, 20, now).is_over(|| true, now + 9 * hour, cx));
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
