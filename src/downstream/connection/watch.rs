// SPDX-License-Identifier: Apache-2.0
//! When a connection must do something although nothing has happened: ping a silent client, or leave because it is old.
//!
//! Owns the one timer for both. Does not close the connection.

use std::task::{Context, Poll};
use std::time::Instant;

use super::age::Age;
use super::keepalive::Keepalive;
use crate::clock;
use crate::downstream::alarm::Alarm;

/// The times of one connection.
pub(super) struct Watch {
    age: Age,
    keepalive: Keepalive,
    alarm: Alarm,
}

impl Watch {
    pub(super) fn new(age: Age, keepalive: Keepalive) -> Self {
        Self {
            age,
            keepalive,
            alarm: Alarm::default(),
        }
    }

    /// See [`Age::is_over`].
    pub(super) fn is_old(&mut self, settled: impl FnOnce() -> bool, now: Instant) -> bool {
        self.age.is_over(settled, now)
    }

    /// To be called at the end of each turn, with the bytes that the client has ever sent, and whether it has to read first
    /// ([`Keepalive::ask`]). Ready when it did not answer a ping in time.
    pub(super) fn poll(&mut self, received: u64, blocked: bool, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.keepalive.hear(received, now);
        // Nearly every call ends here.
        if !self.keepalive.asks() && self.alarm.is_set() && !self.alarm.has_rung() {
            return Poll::Pending;
        }
        let Ok(ping) = self.keepalive.ask(blocked, now, cx) else {
            return Poll::Ready(());
        };
        let next = clock::earliest([ping, self.age.next(now)]);
        if self.alarm.poll(next, cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
