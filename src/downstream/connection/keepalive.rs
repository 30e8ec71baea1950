//! Pings on a connection whose client is silent.
//!
//! Owns when pings are sent, and when a client that does not answer is given up. Does not close the connection.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use crate::downstream::alarm::Alarm;

/// The pings of one connection.
pub(super) struct Keepalive {
    pings: Option<(Duration, PingPong)>,
    alarm: Alarm,
    /// The bytes that the client has ever sent, and when that last grew.
    heard: (u64, Instant),
    /// When the unanswered ping was sent.
    asked: Option<Instant>,
}

/// How long a client may take to answer a ping; never longer than the interval between two pings.
const ANSWER_MAX: Duration = Duration::from_secs(20);

impl Keepalive {
    /// Creates the pings of a connection: a client that was silent for `every` gets one.
    pub(super) fn new(every: Option<Duration>, pings: Option<PingPong>, now: Instant) -> Self {
        Self {
            pings: every.zip(pings),
            alarm: Alarm::default(),
            heard: (0, now),
            asked: None,
        }
    }

    /// To be called in each turn, with the bytes that the client has ever sent. Ready when it did not answer a ping in time.
    pub(super) fn poll(&mut self, received: u64, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Some((every, pings)) = &mut self.pings else {
            return Poll::Pending;
        };
        if received != self.heard.0 {
            self.heard = (received, now);
        }
        // Received bytes only postpone the next ping, so nothing needs to be checked before the alarm rings.
        if self.asked.is_none() && self.alarm.is_set() && !self.alarm.is_due(now) {
            return Poll::Pending;
        }
        if self.asked.is_some() && pings.poll_pong(cx).is_ready() {
            self.asked = None;
            self.heard.1 = now;
        }
        let mut due = match self.asked {
            Some(asked) => asked + ANSWER_MAX.min(*every),
            None => self.heard.1 + *every,
        };
        if due <= now {
            if self.asked.is_some() {
                return Poll::Ready(());
            }
            // This fails if the connection is about to end.
            drop(pings.send_ping(Ping::opaque()));
            self.asked = Some(now);
            due = now + ANSWER_MAX.min(*every);
        }
        if self.alarm.poll(Some(due), cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
