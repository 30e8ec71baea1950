// SPDX-License-Identifier: Apache-2.0
//! Pings on a connection whose client is silent.
//!
//! Owns when pings are sent, and when a client that does not answer is given up. Does not close the connection.

use std::task::Context;
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

/// The pings of one connection.
pub(super) struct Keepalive {
    pings: Option<(Duration, PingPong)>,
    /// The bytes that the client has ever sent, and when that last grew.
    heard: (u64, Instant),
    /// When the unanswered ping was sent.
    asked: Option<Instant>,
}

/// The client does not answer pings.
pub(super) struct NoPong;

/// How long a client may take to answer a ping; never longer than the interval between two pings.
const ANSWER_MAX: Duration = Duration::from_secs(20);

impl Keepalive {
    /// Creates the pings of a connection: a client that was silent for `every` gets one.
    pub(super) fn new(every: Option<Duration>, pings: Option<PingPong>, now: Instant) -> Self {
        Self {
            pings: every.zip(pings),
            heard: (0, now),
            asked: None,
        }
    }

    /// Notes the bytes that the client has ever sent.
    pub(super) const fn hear(&mut self, received: u64, now: Instant) {
        if received != self.heard.0 {
            self.heard = (received, now);
        }
    }

    /// Whether a ping is unanswered. Otherwise, what the client sends only postpones the next ping.
    pub(super) const fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Sends a ping if it is time. Returns when to call this again, if ever. `blocked`: the client has not read what was sent before, so
    /// it cannot be asked for an answer to a ping behind that; it has another bound.
    ///
    /// # Errors
    /// The client did not answer a ping in time.
    pub(super) fn ask(&mut self, blocked: bool, now: Instant, cx: &mut Context<'_>) -> Result<Option<Instant>, NoPong> {
        let Some((every, pings)) = &mut self.pings else {
            return Ok(None);
        };
        if self.asked.is_some() && pings.poll_pong(cx).is_ready() {
            self.asked = None;
            self.heard.1 = now;
        }
        let patience = ANSWER_MAX.min(*every);
        if blocked && self.asked.is_some() {
            self.asked = Some(now);
        }
        let due = self.asked.map_or(self.heard.1 + *every, |asked| asked + patience);
        if now < due {
            return Ok(Some(due));
        }
        if self.asked.is_some() {
            return Err(NoPong);
        }
        // This fails if the connection is about to end.
        drop(pings.send_ping(Ping::opaque()));
        self.asked = Some(now);
        Ok(Some(now + patience))
    }
}
