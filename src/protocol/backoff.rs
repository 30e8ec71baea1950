// SPDX-License-Identifier: Apache-2.0
//! How long to wait before the next stream to a server.
//!
//! Owns the sequence of waits. Does not make random numbers: they are arguments.

use std::time::{Duration, Instant};

/// The waits between the streams to one server.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    most: Duration,
    /// G-11: whether clients read another server until this one answers.
    superseded: bool,
}

/// The time between the end of a stream and the next attempt.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    since: Instant,
    wait: Duration,
}

/// E-14: how the waits begin, grow, spread and end.
const FIRST: Duration = Duration::from_secs(1);
const GROWTH: f64 = 1.6;
const SPREAD: f64 = 0.2;
/// While a client waits for something that the relay does not have, the next attempt starts after this time at the latest.
const AWAITED: Duration = Duration::from_secs(5);
/// A stream that ended sooner than this counts as closed quickly.
const QUICK: Duration = Duration::from_secs(10);

impl Backoff {
    /// Creates waits that grow to `most`, before the random spread is added.
    #[must_use]
    pub fn new(most: Duration) -> Self {
        Self {
            next: FIRST.min(most),
            most,
            superseded: false,
        }
    }

    /// Replaces the longest wait.
    pub fn set_most(&mut self, most: Duration) {
        self.most = most;
        self.next = self.next.min(most);
    }

    /// The server answered: earlier failures do not count any more (E-14).
    pub fn handle_response(&mut self) {
        self.next = FIRST.min(self.most);
        self.superseded = false;
    }

    /// Clients read another server meanwhile. Until this one answers, it is tried each second (G-11).
    pub const fn handle_superseded(&mut self) {
        self.superseded = true;
    }

    /// An attempt ended without any response. Returns how long to wait; `dice` is uniform between 0 and 1.
    pub fn handle_failure(&mut self, dice: f64) -> Duration {
        let wait = if self.superseded {
            FIRST.min(self.most)
        } else {
            self.next
        };
        let wait = wait.mul_f64(1.0 + SPREAD * (2.0 * dice - 1.0));
        self.next = self.next.mul_f64(GROWTH).min(self.most);
        wait
    }

    /// A stream ended after a response. It asked only for types that are suspected of ending streams, so a short life counts as a
    /// failure.
    pub fn handle_end_alone(&mut self, lived: Duration, dice: f64) -> Duration {
        if lived < QUICK {
            return self.handle_failure(dice);
        }
        self.handle_end(lived, dice)
    }

    /// A stream ended after a response, which is no failure. Returns how long to wait; `dice` is uniform between 0 and 1.
    pub fn handle_end(&mut self, lived: Duration, dice: f64) -> Duration {
        self.handle_response();
        // K-22: streams that end together must not all start again at the same moment.
        let spread = FIRST.mul_f64(SPREAD * dice);
        // E-15: a server that answers once and closes, again and again, gets at most one stream per second.
        if lived < QUICK { FIRST + spread } else { spread }
    }
}

impl Pause {
    /// Creates a pause that begins now.
    #[must_use]
    pub const fn new(wait: Duration, now: Instant) -> Self {
        Self { since: now, wait }
    }

    /// G-11: makes it as short as the first one is.
    pub fn shorten(&mut self) {
        self.wait = self.wait.min(FIRST);
    }

    /// Returns when the pause is over; `awaited`: a client waits for something that the relay does not have.
    pub fn due(&self, awaited: bool) -> Instant {
        let wait = if awaited { self.wait.min(AWAITED) } else { self.wait };
        self.since + wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E-14: the pauses grow to what is configured.
    #[test]
    fn pauses_grow_to_the_most() {
        let mut backoff = Backoff::new(Duration::from_secs(4));
        let waits = [(); 6].map(|()| backoff.handle_failure(0.5).as_millis());
        assert_eq!(waits, [1000, 1600, 2560, 4000, 4000, 4000]);
    }

    /// G-11: while clients read another server, the pauses do not grow, and one that has begun is cut short; they go on growing from
    /// the beginning once the server has answered.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test begins at some instant")]
    fn a_preferred_server_is_tried_each_second() {
        let mut backoff = Backoff::new(Duration::from_secs(30));
        let waits = |backoff: &mut Backoff| [(); 3].map(|()| backoff.handle_failure(0.5).as_millis());
        assert_eq!(waits(&mut backoff), [1000, 1600, 2560]);
        backoff.handle_superseded();
        assert_eq!(waits(&mut backoff), [1000, 1000, 1000]);
        backoff.handle_response();
        assert_eq!(waits(&mut backoff), [1000, 1600, 2560]);
        let now = Instant::now();
        let mut pause = Pause::new(Duration::from_secs(20), now);
        pause.shorten();
        assert_eq!(pause.due(false), now + Duration::from_secs(1));
    }

    /// E-14: while a client waits for something that the relay does not have, no pause is longer than five seconds. This also
    /// holds for a client that comes in the middle of a pause.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test begins at some instant")]
    fn who_waits_shortens_a_pause() {
        let now = Instant::now();
        let long = Pause::new(Duration::from_secs(30), now);
        assert_eq!(long.due(false), now + Duration::from_secs(30));
        assert_eq!(long.due(true), now + Duration::from_secs(5));
        let short = Pause::new(Duration::from_secs(2), now);
        assert_eq!(short.due(true), short.due(false));
    }
}
