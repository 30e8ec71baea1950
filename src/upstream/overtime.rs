// SPDX-License-Identifier: Apache-2.0
//! Long work of writers, while others have their turns in its thread.
//!
//! Owns what counts as long, and how much of it there is at a time. Knows nothing of the work.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::OnceLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use super::clock::now;
use crate::protocol::FIELD_BYTES_MIN;
use crate::telemetry::leave_out;

/// To read, hold back and publish so many resources takes about 2 ms. To hand a thread over to others takes some 20 µs.
pub(super) const MANY: usize = 1000;
/// As many bytes as this have at most so many resources.
pub(super) const MANY_BYTES: usize = MANY * FIELD_BYTES_MIN;

/// There are as many places as threads for turns: what long work takes in memory is bounded by that.
static PLACES: OnceLock<Semaphore> = OnceLock::new();

/// Does what may be long; if it is, and a place is free, others take over the thread meanwhile.
pub(super) fn work<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    match places().filter(|_| is_long).map(Semaphore::try_acquire) {
        Some(Ok(_place)) => beside_others(work),
        Some(Err(_)) | None => work(),
    }
}

/// Ends a turn that may be long; if it is, others take over the thread meanwhile. It waits for a place.
pub(super) async fn turn<F: Future>(is_long: bool, mut turn: Pin<&mut F>) -> F::Output {
    let Some(places) = places().filter(|_| is_long) else {
        return turn.await;
    };
    let _place = places.acquire().await;
    poll_fn(|cx| beside_others(|| turn.as_mut().poll(cx))).await
}

fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    let begun = now();
    let done = block_in_place(work);
    leave_out(now().saturating_duration_since(begun));
    done
}

/// There are none where one thread does everything.
fn places() -> Option<&'static Semaphore> {
    let runtime = Handle::try_current().ok()?;
    let has_threads = runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    has_threads.then(|| PLACES.get_or_init(|| Semaphore::new(runtime.metrics().num_workers())))
}
