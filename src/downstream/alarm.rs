//! One timer that is set again and again.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Rings when the time comes for which it was set last.
#[derive(Default)]
pub(super) struct Alarm {
    /// None until it is needed for the first time: most connections never do.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready when `at` has come; otherwise the task is woken then.
    pub(super) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at.map(tokio::time::Instant::from_std) else {
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}
