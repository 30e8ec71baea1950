// SPDX-License-Identifier: Apache-2.0
//! Waits that follow the relay's own time.
//!
//! Owns that a wait goes on where it was after the process was suspended. Does not know what is waited for.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::Timer;

use super::{OWN, now};

/// A wait until a moment of the relay's own time.
#[derive(Debug)]
pub struct Sleep {
    inner: Pin<Box<tokio::time::Sleep>>,
    /// How far the relay's time was behind when that was set.
    lost: Duration,
}

/// Gives the transport the relay's own time.
#[derive(Clone, Copy, Debug)]
pub struct OwnTimer;

/// Waits until then.
#[must_use]
pub fn sleep_until(at: Instant) -> Sleep {
    let (due, lost) = OWN.until(at);
    Sleep::new(tokio::time::sleep_until(due.into()), lost)
}

/// Waits for so long.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of the runtime's timers, which a test may stop"
)]
pub fn sleep(time: Duration) -> Sleep {
    let (due, lost) = OWN.after(tokio::time::Instant::now().into_std(), time);
    match due {
        Some(due) => Sleep::new(tokio::time::sleep_until(due.into()), lost),
        // For ever, as far as that matters.
        None => Sleep::new(tokio::time::sleep(time), lost),
    }
}

/// Waits until then; without a time, for ever.
pub async fn sleep_if(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits for `work`, but no longer than `time`: then the result is `None`.
pub async fn timeout<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep(time) => None,
    }
}

impl Sleep {
    fn new(inner: tokio::time::Sleep, lost: Duration) -> Self {
        Self {
            inner: Box::pin(inner),
            lost,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.inner.as_mut().poll(cx));
            // This call notices whether the process was suspended.
            let _ = now();
            let lost = OWN.lost();
            let more = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
            if more.is_zero() {
                return Poll::Ready(());
            }
            let due = self.inner.deadline() + more;
            self.inner.as_mut().reset(due);
        }
    }
}

impl hyper::rt::Sleep for Sleep {}

impl Timer for OwnTimer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep(time))
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep_until(at))
    }

    fn now(&self) -> Instant {
        now()
    }
}
