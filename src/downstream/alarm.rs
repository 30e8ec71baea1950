// SPDX-License-Identifier: Apache-2.0
//! A timer that is set again and again.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::unconstrained;
use tokio::time::{Sleep, sleep_until};

use crate::clock;

/// Rings at the time for which it was set last, and sometimes earlier: setting a later time costs nothing until the earlier time
/// has come.
#[derive(Default)]
pub(super) struct Alarm {
    /// None until it is first needed. Most connections never need it.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready when a set time has come; otherwise it wakes the task at that time. Must be polled again after it has rung.
    pub(super) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at.map(clock::due) else {
            self.sleep.take_if(|sleep| sleep.is_elapsed());
            return Poll::Pending;
        };
        match &mut self.sleep {
            // The earlier time wakes the task first.
            Some(sleep) if sleep.deadline() <= at && !sleep.is_elapsed() => return Poll::Pending,
            Some(sleep) => sleep.as_mut().reset(at),
            None => self.sleep = Some(Box::pin(sleep_until(at))),
        }
        // Unconstrained: even if the task has used up its budget for this turn, the alarm must register its waker.
        let sleep = self.sleep.as_mut();
        sleep.map_or(Poll::Pending, |sleep| pin!(unconstrained(sleep.as_mut())).poll(cx))
    }

    /// Whether it was set, and may ring.
    pub(super) const fn is_set(&self) -> bool {
        self.sleep.is_some()
    }

    /// Whether it has rung.
    pub(super) fn has_rung(&self) -> bool {
        self.sleep.as_ref().is_some_and(|sleep| sleep.is_elapsed())
    }
}
