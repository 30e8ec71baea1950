//! The time of a process that may stand still.
//!
//! Owns what it makes of the machine's clock. Refuses to read one: time is an argument.

use std::time::{Duration, Instant};

/// K-27: a process that did not run knows nothing about its peers' silence, so no time passes for it meanwhile, and none until
/// what came meanwhile was read.
///
/// Invariant: as long as the clock goes on, so does this time, and it never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Awake {
    /// When the process was last seen to run.
    seen: Instant,
    /// This time stands still until then.
    until: Instant,
    /// How far this time is behind the clock.
    lost: Duration,
}

/// A process of which nothing was seen for longer than this stood still.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// So long it reads what came meanwhile before its time goes on.
const GRACE: Duration = Duration::from_secs(1);

impl Awake {
    /// The time of a process that runs at this moment.
    #[must_use]
    pub const fn new(real: Instant) -> Self {
        Self {
            seen: real,
            until: real,
            lost: Duration::ZERO,
        }
    }

    /// The process runs at this moment: its own time.
    pub fn at(&mut self, real: Instant) -> Instant {
        if real.saturating_duration_since(self.seen) > LATE {
            let stood = self.own(self.seen);
            self.until = real + GRACE;
            self.lost = self.until.saturating_duration_since(stood);
        }
        self.seen = self.seen.max(real);
        self.own(real)
    }

    /// When its own time will be this, unless it stands still before.
    #[must_use]
    pub fn real(&self, own: Instant) -> Instant {
        own + self.lost
    }

    /// How far its own time is behind.
    pub(super) const fn lost(&self) -> Duration {
        self.lost
    }

    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    fn own(&self, real: Instant) -> Instant {
        let real = real.max(self.until);
        real.checked_sub(self.lost).unwrap_or(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However often it stands still: its time stops where it was, goes on a moment later, and never goes back.
    #[test]
    fn time_stands_still_with_the_process() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut awake = Awake::new(start);
        assert_eq!(awake.at(at(900)), at(900));
        assert_eq!(awake.at(at(1900)), at(1900), "that may happen to anybody");
        // It stands still for 18.1 seconds.
        assert_eq!(awake.at(at(20_000)), at(1900));
        assert_eq!(awake.at(at(20_900)), at(1900));
        assert_eq!(awake.real(at(2000)), at(21_100));
        assert_eq!(awake.at(at(21_100)), at(2000));
        // Twice, the second time while it still reads.
        assert_eq!(awake.at(at(25_000)), at(2000));
        assert_eq!(awake.at(at(25_500)), at(2000));
        assert_eq!(awake.at(at(29_000)), at(2000));
        assert_eq!(awake.at(at(30_000)), at(2000));
        assert_eq!(awake.at(at(30_001)), at(2001));
        // Whoever was late to look.
        assert_eq!(awake.at(at(29_500)), at(2000));
        assert_eq!(awake.at(at(30_002)), at(2002));
    }
}
