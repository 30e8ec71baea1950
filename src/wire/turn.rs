// SPDX-License-Identifier: Apache-2.0
//! The turn to work on a large request or a rejection: connections share a few threads, and many of these at the same time would take all
//! of them.
//!
//! Owns the queue of all streams of the process. Does not know what is done in a turn, or for how long.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// The turns of one stream. It is in the queue from a poll on, until its turn begins.
#[derive(Default)]
pub struct StreamTurns(Option<Pin<Box<Queued>>>);

/// The turn of one stream. It ends when this is dropped.
pub type Permit = SemaphorePermit<'static>;
type Queued = dyn Future<Output = Result<Permit, AcquireError>> + Send;

/// One large request is worked on at a time: a slice of it, then one of the next.
static ONE: Semaphore = Semaphore::const_new(1);

impl StreamTurns {
    /// Ready with the turn; none if nobody counts turns any more.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Permit>> {
        let queued = self.0.get_or_insert_with(|| Box::pin(ONE.acquire()));
        let turn = ready!(queued.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(turn.ok())
    }
}
