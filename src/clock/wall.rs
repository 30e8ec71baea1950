// SPDX-License-Identifier: Apache-2.0
//! Times in a readable form.
//!
//! Owns the wall clock, which is only shown, and that a moment of the relay's time is shown as when it was, however long the process was
//! suspended since. Measures nothing by the wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prost_reflect::prost_types::Timestamp;

/// The same moment by both clocks, to convert others from one clock to the other.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// By the machine's monotonic clock.
    pub now: Instant,
    /// By the wall clock.
    pub wall: SystemTime,
}

/// The pair by which times are converted. Two pairs are read a few hundred nanoseconds apart from each other, so a moment would be
/// shown as another time in each answer.
static KEPT: Mutex<Option<WallClock>> = Mutex::new(None);
/// How far the clocks may drift apart before times are converted by a new pair: the wall clock was set, or the machine was
/// suspended.
const DRIFT: Duration = Duration::from_secs(1);

impl WallClock {
    /// Reads both clocks. A moment is shown as the same time in all answers, until the clocks have drifted apart.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "times are shown to people")]
    pub fn read() -> Self {
        let read = Self {
            now: super::real(),
            wall: SystemTime::now(),
        };
        let mut kept = KEPT.lock();
        let steady = kept.map_or(read, |kept| kept.steady(read));
        *kept = Some(steady);
        steady
    }

    /// Returns the later pair `read`, with the wall clock as it follows from this one, unless it was set meanwhile.
    fn steady(self, read: Self) -> Self {
        let (said, follows) = (read.shown(read.now), self.shown(read.now));
        if said.abs_diff(follows) >= DRIFT {
            return read;
        }
        Self {
            wall: UNIX_EPOCH + follows,
            ..read
        }
    }

    /// Returns the date and time, such as `2026-11-20T12:03:07Z`.
    #[must_use]
    pub fn time(self, at: Instant) -> String {
        date_and_time(self.unix(at).as_secs())
    }

    /// Returns the same with nanoseconds, such as `2026-11-20T12:03:07.250000000Z`.
    #[must_use]
    pub fn exact_time(self, at: Instant) -> String {
        let at = self.unix(at);
        let whole = date_and_time(at.as_secs());
        format!("{}.{:09}Z", whole.trim_end_matches('Z'), at.subsec_nanos())
    }

    /// Returns how many whole days are left until a time in seconds since 1970; 0 if it is over.
    #[must_use]
    pub fn days_until(self, seconds: u64) -> u64 {
        seconds.saturating_sub(self.shown(self.now).as_secs()) / 86_400
    }

    /// Returns the time of day, with the date if it is not today.
    #[must_use]
    pub fn short(self, at: Instant) -> String {
        let (then, now) = (self.unix(at).as_secs(), self.shown(self.now).as_secs());
        if then / 86_400 == now / 86_400 {
            of_day(then % 86_400)
        } else {
            self.time(at)
        }
    }

    /// Returns the time by the wall clock.
    #[must_use]
    pub fn system(self, at: Instant) -> SystemTime {
        UNIX_EPOCH + self.unix(at)
    }

    /// Returns how long ago that was, with the time in which the process was suspended.
    #[must_use]
    pub fn age(self, at: Instant) -> Duration {
        self.now.saturating_duration_since(super::OWN.real(at))
    }

    /// Returns the time since 1970.
    #[must_use]
    pub fn unix(self, at: Instant) -> Duration {
        self.shown(super::OWN.real(at))
    }

    /// Returns the time since 1970 of a moment of the machine's clock.
    fn shown(self, at: Instant) -> Duration {
        let wall = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        match at.checked_duration_since(self.now) {
            Some(ahead) => wall.saturating_add(ahead),
            None => wall.saturating_sub(self.now.saturating_duration_since(at)),
        }
    }
}

/// Returns a time in seconds since 1970 as date and time.
#[must_use]
pub fn date_and_time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp { seconds, nanos: 0 }.to_string()
}

fn of_day(second: u64) -> String {
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment is the same time, however long the clocks take to be read, until the wall clock is set.
    #[test]
    fn a_moment_is_one_time() {
        let start = WallClock::read();
        let after = |now: u64, wall: u64| WallClock {
            now: start.now + Duration::from_nanos(now),
            wall: start.wall + Duration::from_nanos(wall),
        };
        let (at, mut clock) = (start.now + Duration::from_nanos(7), start);
        for (now, wall) in [(100, 333), (1_000, 900), (5_000_000_000, 5_900_000_000)] {
            clock = clock.steady(after(now, wall));
            assert_eq!((clock.unix(at), clock.now), (start.unix(at), after(now, wall).now));
        }
        for wall in [9_000_000_000, 3_000_000_000] {
            let set = clock.steady(after(6_000_000_000, wall));
            assert_eq!(
                (set.now, set.wall),
                (after(6_000_000_000, wall).now, after(0, wall).wall)
            );
        }
        let moment = super::super::now();
        let times: Vec<Duration> = (0..1000).map(|_| WallClock::read().unix(moment)).collect();
        assert!(times.iter().all(|time| Some(time) == times.first()));
    }

    #[test]
    fn dates_are_right() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (19_783, "2024-03-01"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_and_time(days * 86_400), format!("{expected}T00:00:00Z"));
        }
    }
}
