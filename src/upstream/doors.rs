// SPDX-License-Identifier: Apache-2.0
//! Admission of streams to one server: the gate, and the streams that wait at it.
//!
//! Owns when a waiting stream is woken. Does not decide which stream may open: the [`OpenLimit`] does.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use super::clock::{dice, now};
use crate::clock::{Sleep, sleep_until};
use crate::protocol::{OpenLimit, Ticket};

/// The gate of one server, shared by all streams to it.
#[derive(Debug, Default)]
pub(super) struct Doors(Mutex<DoorState>);

#[derive(Debug, Default)]
struct DoorState {
    gate: OpenLimit,
    waiting: BTreeMap<Ticket, Waker>,
}

/// A place among the opening streams, or in the queue for one. Dropping it frees the place for the next stream.
#[derive(Debug)]
pub(super) struct OpenPlace {
    doors: Arc<Doors>,
    ticket: Ticket,
}

impl Doors {
    /// Waits for a place. With `refused`, the server had no room for this stream at its last attempt.
    pub(super) async fn enter(self: Arc<Self>, refused: bool) -> OpenPlace {
        let ticket = self.0.lock().gate.handle_arrival(refused);
        let admission = OpenPlace { doors: self, ticket };
        let mut reopens: Option<Sleep> = None;
        poll_fn(|cx| {
            let Some(closed_until) = admission.look(cx) else {
                return Poll::Ready(());
            };
            if let Some(at) = closed_until {
                let sleep = reopens.insert(sleep_until(at));
                if Pin::new(sleep).poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
            }
            Poll::Pending
        })
        .await;
        admission
    }

    /// The server answered a stream.
    pub(super) fn answered(&self) {
        self.change(OpenLimit::handle_answer);
    }

    /// The server had no room for a stream (RESOURCE_EXHAUSTED).
    pub(super) fn exhausted(&self) {
        let woken = {
            let mut inner = self.0.lock();
            inner.gate.handle_exhausted(dice(), now());
            // Every waiting stream must learn until when the gate is closed now.
            std::mem::take(&mut inner.waiting)
        };
        woken.into_values().for_each(Waker::wake);
    }

    fn change(&self, change: impl FnOnce(&mut OpenLimit)) {
        let woken = {
            let mut inner = self.0.lock();
            change(&mut inner.gate);
            inner.enter()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

impl DoorState {
    /// Admits the streams that may open now; returns their wakers.
    fn enter(&mut self) -> Vec<Waker> {
        let entered = self.gate.enter(now());
        entered
            .iter()
            .filter_map(|ticket| self.waiting.remove(ticket))
            .collect()
    }
}

impl OpenPlace {
    /// Returns `None` if the stream may open now; else the time until which the gate is closed, if it is.
    fn look(&self, cx: &Context<'_>) -> Option<Option<Instant>> {
        let (closed_until, woken) = {
            let mut inner = self.doors.0.lock();
            let woken = inner.enter();
            if inner.gate.is_open_for(self.ticket) {
                (None, woken)
            } else {
                inner.waiting.insert(self.ticket, cx.waker().clone());
                (Some(inner.gate.closed_until().filter(|until| *until > now())), woken)
            }
        };
        woken.into_iter().for_each(Waker::wake);
        closed_until
    }
}

impl Drop for OpenPlace {
    fn drop(&mut self) {
        self.doors.0.lock().waiting.remove(&self.ticket);
        self.doors.change(|gate| gate.handle_leave(self.ticket));
    }
}
