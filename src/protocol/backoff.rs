//! How long to wait before the next stream to a server.
//!
//! Owns the sequence of waits. Refuses to roll dice: randomness is an argument.

use std::time::Duration;

/// The waits between the streams to one server.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
}

/// E-14: how the waits begin, grow, spread and end.
const FIRST: Duration = Duration::from_secs(1);
const GROWTH: f64 = 1.6;
const SPREAD: f64 = 0.2;
const MOST: Duration = Duration::from_secs(120);
/// A stream that lived shorter than this was closed quickly.
const QUICK: Duration = Duration::from_secs(10);

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The server answered: what went wrong before does not count any more (E-14).
    pub fn handle_response(&mut self) {
        self.next = FIRST;
    }

    /// An attempt ended without any response. How long to wait; `dice` is evenly spread over 0 to 1.
    pub fn handle_failure(&mut self, dice: f64) -> Duration {
        let wait = self.next.mul_f64(1.0 + SPREAD * (2.0 * dice - 1.0));
        self.next = self.next.mul_f64(GROWTH).min(MOST);
        wait
    }

    /// A stream ended after a response, which is no failure. How long to wait; `dice` is evenly spread over 0 to 1.
    pub fn handle_end(&mut self, lived: Duration, dice: f64) -> Duration {
        self.next = FIRST;
        // K-22: many streams that end together do not begin together.
        let spread = FIRST.mul_f64(SPREAD * dice);
        // E-15: a server that answers once and closes, for ever, is asked once a second at the most.
        if lived < QUICK { FIRST + spread } else { spread }
    }
}
