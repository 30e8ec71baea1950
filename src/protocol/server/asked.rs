//! Since when a client waits for what it asked for.
//!
//! Owns how long that may last. Refuses to know what it asked for, and what follows when nobody answers.

use std::time::{Duration, Instant};

/// The requests of one type that ask for more.
#[derive(Debug)]
pub(super) struct Asked {
    wait: Wait,
    last: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Something was said since the client asked.
    Over,
    /// A request may be without an answer since then.
    Since(Instant),
    /// Nobody answered in time.
    Waived,
}

impl Asked {
    /// The stream names the type for the first time.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            wait: Wait::Over,
            last: now,
        }
    }

    /// The client asks for more.
    pub(super) const fn more(&mut self, now: Instant) {
        if !matches!(self.wait, Wait::Since(_)) {
            self.wait = Wait::Since(now);
        }
        self.last = now;
    }

    /// Something was said.
    pub(super) const fn answered(&mut self) {
        if matches!(self.wait, Wait::Since(_)) {
            self.wait = Wait::Over;
        }
    }

    /// When the client last asked for more.
    pub(super) const fn last(&self) -> Instant {
        self.last
    }

    /// When the wait ends.
    pub(super) fn ends(&self, bound: Duration) -> Option<Instant> {
        match self.wait {
            Wait::Since(since) => Some(since + bound),
            Wait::Over | Wait::Waived => None,
        }
    }

    /// Whether the wait has just ended: what is unknown then counts as absent once a healthy server has answered past it.
    pub(super) fn waive(&mut self, bound: Duration, now: Instant) -> bool {
        let ended = self.ends(bound).is_some_and(|ends| now >= ends);
        if ended {
            self.wait = Wait::Waived;
        }
        ended
    }

    /// Whether nobody answered in time.
    pub(super) fn is_waived(&self) -> bool {
        self.wait == Wait::Waived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L-14: who asks again waits since it first asked, and hope is back.
    #[test]
    fn the_first_request_counts() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let (bound, second) = (Duration::from_secs(15), Duration::from_secs(1));
        let mut asked = Asked::new(now);
        assert!(!asked.waive(bound, now + 2 * bound));
        asked.more(now);
        asked.more(now + second);
        assert_eq!((asked.ends(bound), asked.last()), (Some(now + bound), now + second));
        assert!(!asked.waive(bound, now + bound - second));
        assert!(asked.waive(bound, now + bound) && asked.is_waived() && asked.ends(bound).is_none());
        asked.more(now + bound);
        assert!(!asked.is_waived());
        asked.answered();
        assert_eq!(asked.ends(bound), None);
    }
}
