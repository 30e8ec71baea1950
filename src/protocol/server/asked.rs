// SPDX-License-Identifier: Apache-2.0
//! How long a client has waited for an answer, and what is news to it afterwards.
//!
//! Owns the bound of that wait. Does not know what the client asked for, and what follows if nobody answers.

use std::time::{Duration, Instant};

/// The requests of one type that ask for more.
#[derive(Debug)]
pub(super) struct OpenRequests {
    wait: Wait,
    /// The last request, its answer, or the last interruption. What had arrived by then is no news.
    last: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Something was sent since the client asked.
    Over,
    /// A request may be unanswered since then.
    Since(Instant),
    /// Nobody answered in time.
    Waived,
}

impl OpenRequests {
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

    /// Something was sent.
    pub(super) const fn answered(&mut self, now: Instant) {
        if matches!(self.wait, Wait::Since(_)) {
            self.wait = Wait::Over;
            self.last = now;
        }
    }

    /// The client reads another server from now on, or has rejected a response. What had arrived by now is sent again, or late, for
    /// that reason.
    pub(super) const fn interrupted(&mut self, now: Instant) {
        self.last = now;
    }

    /// Whether content that arrived then is a change to the client: it is no answer to a request, nothing that another server had
    /// already, and no further try after a rejection.
    pub(super) fn is_news(&self, received: Instant) -> bool {
        received > self.last
    }

    /// Returns when the client last asked for more, was answered, or was interrupted.
    pub(super) const fn last(&self) -> Instant {
        self.last
    }

    /// Returns since when a request may be unanswered. What was sent since the client last asked may have answered it in part.
    pub(super) const fn since(&self) -> Instant {
        match self.wait {
            Wait::Since(since) => since,
            Wait::Over | Wait::Waived => self.last,
        }
    }

    /// Returns when the wait ends.
    pub(super) fn ends(&self, bound: Duration) -> Option<Instant> {
        match self.wait {
            Wait::Since(since) => Some(since + bound),
            Wait::Over | Wait::Waived => None,
        }
    }

    /// The wait ends if its time is over. From then on, unknown names count as absent once a healthy server has answered without them.
    pub(super) fn waive(&mut self, bound: Duration, now: Instant) {
        if self.ends(bound).is_some_and(|ends| now >= ends) {
            self.wait = Wait::Waived;
        }
    }

    /// Returns whether nobody answered in time.
    pub(super) fn is_waived(&self) -> bool {
        self.wait == Wait::Waived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L-14: a repeated request waits since the first one; a new one after the wait has ended waits again.
    #[test]
    fn the_first_request_counts() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let (bound, second) = (Duration::from_secs(15), Duration::from_secs(1));
        let mut asked = OpenRequests::new(now);
        asked.waive(bound, now + 2 * bound);
        assert!(!asked.is_waived());
        asked.more(now);
        asked.more(now + second);
        assert_eq!((asked.ends(bound), asked.last()), (Some(now + bound), now + second));
        assert_eq!(asked.since(), now);
        asked.waive(bound, now + bound - second);
        assert!(!asked.is_waived());
        asked.waive(bound, now + bound);
        assert!(asked.is_waived() && asked.ends(bound).is_none());
        asked.more(now + bound);
        assert!(!asked.is_waived());
        asked.answered(now + bound + second);
        assert_eq!((asked.ends(bound), asked.since()), (None, now + bound + second));
    }

    /// What arrives after the answer is news; a further response is no further answer.
    #[test]
    fn what_is_news() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut asked = OpenRequests::new(now);
        asked.more(after(1));
        asked.answered(after(3));
        assert!(!asked.is_news(after(2)) && !asked.is_news(after(3)) && asked.is_news(after(4)));
        asked.answered(after(5));
        assert!(asked.is_news(after(4)));
        asked.interrupted(after(6));
        assert!(!asked.is_news(after(4)) && asked.is_news(after(7)));
    }
}
