//! How long to wait before the next stream to a server.
//!
//! Owns the sequence of waits. Refuses to roll dice: randomness is an argument.

use std::time::{Duration, Instant};

/// The waits between the streams to one server.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    most: Duration,
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
/// While a client waits for an answer that nobody has, the next attempt is made after this time at the latest.
const AWAITED: Duration = Duration::from_secs(5);
/// A stream that lived shorter than this was closed quickly.
const QUICK: Duration = Duration::from_secs(10);

impl Backoff {
    /// Waits that grow to `most`, before they are spread.
    #[must_use]
    pub fn new(most: Duration) -> Self {
        Self {
            next: FIRST.min(most),
            most,
        }
    }

    /// The server answered: what went wrong before does not count any more (E-14).
    pub fn handle_response(&mut self) {
        self.next = FIRST.min(self.most);
    }

    /// An attempt ended without any response. How long to wait; `dice` is evenly spread over 0 to 1.
    pub fn handle_failure(&mut self, dice: f64) -> Duration {
        let wait = self.next.mul_f64(1.0 + SPREAD * (2.0 * dice - 1.0));
        self.next = self.next.mul_f64(GROWTH).min(self.most);
        wait
    }

    /// A stream on which only what ends streams is asked for ended after a response: one that did not live long came to nothing.
    pub fn handle_end_alone(&mut self, lived: Duration, dice: f64) -> Duration {
        if lived < QUICK {
            return self.handle_failure(dice);
        }
        self.handle_end(lived, dice)
    }

    /// A stream ended after a response, which is no failure. How long to wait; `dice` is evenly spread over 0 to 1.
    pub fn handle_end(&mut self, lived: Duration, dice: f64) -> Duration {
        self.handle_response();
        // K-22: many streams that end together do not begin together.
        let spread = FIRST.mul_f64(SPREAD * dice);
        // E-15: a server that answers once and closes, for ever, is asked once a second at the most.
        if lived < QUICK { FIRST + spread } else { spread }
    }
}

impl Pause {
    /// A pause that begins now.
    #[must_use]
    pub const fn new(wait: Duration, now: Instant) -> Self {
        Self { since: now, wait }
    }

    /// When it is over; `awaited`: a client waits for an answer that nobody has.
    #[must_use]
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

    /// E-14: while a client waits for an answer that nobody has, no pause is longer than five seconds; whoever comes in its middle
    /// need not wait for its end.
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
