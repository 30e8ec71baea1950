// SPDX-License-Identifier: Apache-2.0
//! Large requests, and the first one: they are worked on one after the other, on a thread of their own.
//!
//! Owns their order. Connections share a few threads, and whoever had the thread of a large request would wait for it. Knows nothing of
//! what is worked on.

use tokio::sync::Semaphore;

use super::refusal::PollRefusal;

/// A body with more bytes is large. It takes a millisecond to read.
pub(super) const BODY_BYTES: usize = 64 * 1024;
/// A request for more names is large.
pub(super) const NAMES: usize = 1024;

static TURN: Semaphore = Semaphore::const_new(1);

/// Does the work when all work before it is done, even if nobody waits for the result any more.
pub(super) async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PollRefusal> {
    let turn = TURN.acquire().await;
    let turn = turn.map_err(|_| PollRefusal::unavailable("the relay stops; poll again"))?;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await
        .map_err(|error| PollRefusal::internal(format!("the request could not be worked on: {error}")))
}
