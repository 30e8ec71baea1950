// SPDX-License-Identifier: Apache-2.0
//! What refused tokens cost the connection that sent them.
//!
//! Owns how many may be refused before tokens of the connection are not looked at for a while. Knows nothing of what makes a token
//! good.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

/// The refused tokens of one connection. One that had none takes a pointer.
#[derive(Debug, Default)]
pub(super) struct Lockout(ArcSwapOption<RefusedCount>);

#[derive(Debug)]
struct RefusedCount {
    count: u32,
    /// Until when no token is looked at.
    until: Instant,
}

/// So many tokens may be refused without a wait: many clients may share a connection, and some be misconfigured.
const FREE: u32 = 16;
/// The wait after one more, which doubles with each.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Refusals are forgotten if there was none for so long.
const FORGOTTEN: Duration = Duration::from_secs(30);

impl Lockout {
    /// Returns for how long no token of the connection is looked at.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let refusals = self.0.load();
        let left = refusals.as_ref()?.until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// A token was refused.
    pub(super) fn note_refused(&self, now: Instant) {
        let before = self.0.load();
        let lasting = before.as_ref().filter(|refusals| now < refusals.until + FORGOTTEN);
        let count = lasting.map_or(0, |refusals| refusals.count).saturating_add(1);
        let wait = match count.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(more) => WAIT_MIN.saturating_mul(1 << more.min(16)).min(WAIT_MAX),
        };
        let until = now + wait;
        self.0.store(Some(Arc::new(RefusedCount { count, until })));
    }

    /// A token was good: that makes up for one that was refused.
    pub(super) fn note_good(&self, now: Instant) {
        if let Some(refusals) = &*self.0.load() {
            let count = refusals.count - 1;
            self.0
                .store((count > 0).then(|| Arc::new(RefusedCount { count, until: now })));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_forgotten() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let mut now = Instant::now();
        let lockout = Lockout::default();
        for _ in 0..FREE {
            lockout.note_refused(now);
            assert_eq!(lockout.left(now), None);
        }
        let mut waits = Vec::new();
        for _ in 0..50 {
            lockout.note_refused(now);
            let wait = lockout.left(now).unwrap();
            now += wait;
            assert_eq!(lockout.left(now), None);
            waits.push(wait);
        }
        assert_eq!(waits[..3], [10, 20, 40].map(Duration::from_millis));
        assert!(waits.is_sorted() && waits[49] == WAIT_MAX);
        now += FORGOTTEN;
        lockout.note_refused(now);
        assert_eq!(lockout.left(now), None);
        lockout.note_good(now);
        assert!(lockout.0.load().is_none());
        lockout.note_good(now);
    }

    /// Good tokens among bad ones keep a connection open only as long as there are as many of them.
    #[test]
    fn good_ones_make_up_for_as_many() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let lockout = Lockout::default();
        for _ in 0..100 {
            lockout.note_refused(now);
            lockout.note_good(now);
        }
        assert_eq!(lockout.left(now), None);
        for _ in 0..2 * FREE {
            lockout.note_refused(now);
            lockout.note_refused(now);
            lockout.note_good(now);
        }
        lockout.note_refused(now);
        assert!(lockout.left(now).is_some());
    }
}
