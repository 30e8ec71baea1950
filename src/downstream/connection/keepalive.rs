//! Pings on a connection from which nothing comes.
//!
//! Owns when they are sent, and when a client that answers none is given up. Refuses to close.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use crate::downstream::alarm::Alarm;

/// The pings of one connection.
pub(super) struct Keepalive {
    pings: Option<(Duration, PingPong)>,
    alarm: Alarm,
    /// How much the client has ever sent, and when that was last seen to grow.
    heard: (u64, Instant),
    /// When a ping was sent that is not answered yet.
    asked: Option<Instant>,
}

/// How long a client may take to answer a ping; never longer than the pause between two of them.
const ANSWER_MAX: Duration = Duration::from_secs(20);

impl Keepalive {
    /// A client that was silent for `every` is asked whether it is there.
    pub(super) fn new(every: Option<Duration>, pings: Option<PingPong>, now: Instant) -> Self {
        Self {
            pings: every.zip(pings),
            alarm: Alarm::default(),
            heard: (0, now),
            asked: None,
        }
    }

    /// To be called in each turn, with what the client has ever sent. Ready when it is not there any more.
    pub(super) fn poll(&mut self, received: u64, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Some((every, pings)) = &mut self.pings else {
            return Poll::Pending;
        };
        if received != self.heard.0 {
            self.heard = (received, now);
        }
        // Whoever is heard puts off what comes next: until the alarm rings there is nothing to find out.
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
            // A connection that is about to end takes none.
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
