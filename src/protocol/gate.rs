// SPDX-License-Identifier: Apache-2.0
//! Limits how many streams to one server are being opened at a time.
//!
//! Owns who may open a stream next, and how a server without room slows that down. Knows nothing of connections, and makes no
//! random numbers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::backoff::Backoff;

/// The gate in front of one server. Every stream to the server passes it while it is being opened.
///
/// Invariant: a ticket is in exactly one of `opening` and `queue`, or the gate does not know it any more.
#[derive(Debug)]
pub struct OpenLimit {
    /// How many streams may be opening now.
    width: usize,
    opening: BTreeSet<Ticket>,
    /// Streams for which the server had no room the last time (`true`) come after all others.
    queue: BTreeSet<(bool, Ticket)>,
    /// The number of the newest ticket.
    last: u64,
    /// Nobody enters before this time, because the server had no room.
    closed_until: Option<Instant>,
    pace: Backoff,
}

/// One stream that waits to be opened or is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// How many streams to a server may be opening at most.
const WIDTH: usize = 16;
/// The longest pause for a server without room.
const PACE_MOST: Duration = Duration::from_secs(5);

impl Default for OpenLimit {
    fn default() -> Self {
        Self {
            width: WIDTH,
            opening: BTreeSet::new(),
            queue: BTreeSet::new(),
            last: 0,
            closed_until: None,
            pace: Backoff::new(PACE_MOST),
        }
    }
}

impl OpenLimit {
    /// A stream wants to open; `refused`: the server had no room for it the last time.
    pub fn handle_arrival(&mut self, refused: bool) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.queue.insert((refused, ticket));
        ticket
    }

    /// The stream is open, has failed, or is not wanted any more.
    pub fn handle_leave(&mut self, ticket: Ticket) {
        if !self.opening.remove(&ticket) {
            for refused in [false, true] {
                self.queue.remove(&(refused, ticket));
            }
        }
    }

    /// The server answered on a stream, so it has room.
    pub fn handle_answer(&mut self) {
        self.pace.handle_response();
        self.closed_until = None;
        self.width = (self.width + 1).min(WIDTH);
    }

    /// The server has no room for a stream. It gets a pause, and then one stream at a time.
    pub fn handle_exhausted(&mut self, dice: f64, now: Instant) {
        self.width = 1;
        if self.closed_until.is_none_or(|until| until <= now) {
            self.closed_until = Some(now + self.pace.handle_failure(dice));
        }
    }

    /// Returns the tickets that may enter now and could not before.
    pub fn enter(&mut self, now: Instant) -> Vec<Ticket> {
        let mut entered = Vec::new();
        if self.closed_until.is_some_and(|until| now < until) {
            return entered;
        }
        while self.opening.len() < self.width {
            let Some((_, ticket)) = self.queue.pop_first() else {
                break;
            };
            self.opening.insert(ticket);
            entered.push(ticket);
        }
        entered
    }

    /// Whether the stream may be opened.
    pub fn is_open_for(&self, ticket: Ticket) -> bool {
        self.opening.contains(&ticket)
    }

    /// Returns until when nobody enters, if the gate is closed.
    pub const fn closed_until(&self) -> Option<Instant> {
        self.closed_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test begins at some instant")]
    fn begin() -> Instant {
        Instant::now()
    }

    /// E-14: sixteen at a time and in order; a ticket that leaves the queue holds up no other.
    #[test]
    fn sixteen_at_a_time() {
        let (mut gate, now) = (OpenLimit::default(), begin());
        let tickets: Vec<Ticket> = (0..40).map(|_| gate.handle_arrival(false)).collect();
        assert_eq!(gate.enter(now), tickets[..16]);
        assert_eq!(gate.enter(now), []);
        gate.handle_leave(tickets[16]);
        gate.handle_leave(tickets[3]);
        assert_eq!(gate.enter(now), tickets[17..18]);
        assert!(gate.is_open_for(tickets[17]) && !gate.is_open_for(tickets[3]));
    }

    /// After a pause that grows to five seconds, a server without room gets one stream, and more as it answers.
    #[test]
    fn a_server_without_room() {
        let (mut gate, mut now) = (OpenLimit::default(), begin());
        let old = gate.handle_arrival(true);
        let tickets: Vec<Ticket> = (0..3).map(|_| gate.handle_arrival(false)).collect();
        for wait in [1.0, 1.6, 2.56, 4.096, 5.0, 5.0] {
            gate.handle_exhausted(0.5, now);
            let until = gate.closed_until().unwrap();
            assert!((until.duration_since(now).as_secs_f64() - wait).abs() < 0.01, "{wait}");
            gate.handle_exhausted(0.5, now);
            assert_eq!(gate.closed_until(), Some(until), "two refusals at once count as one");
            assert_eq!(gate.enter(now), []);
            now = until;
        }
        assert_eq!(gate.enter(now), tickets[..1]);
        gate.handle_answer();
        assert_eq!(gate.enter(now), tickets[1..2]);
        gate.handle_leave(tickets[0]);
        gate.handle_leave(tickets[1]);
        assert_eq!(gate.enter(now), [tickets[2], old], "a refused stream comes last");
    }
}
