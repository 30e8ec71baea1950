//! The time of a process that may be suspended.
//!
//! Owns how it follows from the machine's clock. Does not read a clock: time is an argument.

use std::time::{Duration, Instant};

/// K-27: a process that did not run does not know whether its peers were silent. So no time passes for it meanwhile, and none
/// until it has read what arrived meanwhile.
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

/// A process that was not seen to run for longer than this was suspended.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// How long it reads what arrived meanwhile, before its time goes on.
const GRACE: Duration = Duration::from_secs(1);

impl Awake {
    /// Creates the time of a process that runs at this moment.
    #[must_use]
    pub const fn new(real: Instant) -> Self {
        Self {
            seen: real,
            until: real,
            lost: Duration::ZERO,
        }
    }

    /// Notes that the process runs at this moment, and returns its own time.
    pub fn at(&mut self, real: Instant) -> Instant {
        if real.saturating_duration_since(self.seen) > LATE {
            let stood = self.own(self.seen);
            self.until = real + GRACE;
            self.lost = self.until.saturating_duration_since(stood);
        }
        self.seen = self.seen.max(real);
        self.own(real)
    }

    /// Returns when its own time will be `own`, unless the process is suspended before that.
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

    /// However often the process is suspended: its time stops where it was, goes on a moment later, and never goes back.
    #[test]
    fn time_stands_still_with_the_process() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut awake = Awake::new(start);
        assert_eq!(awake.at(at(900)), at(900));
        assert_eq!(awake.at(at(1900)), at(1900), "that may happen to anybody");
        // It is suspended for 18.1 seconds.
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
        // A caller that read the clock earlier.
        assert_eq!(awake.at(at(29_500)), at(2000));
        assert_eq!(awake.at(at(30_002)), at(2002));
    }
}
