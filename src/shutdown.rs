//! The end of the program: signals in, one drain for everybody out. It owns when to stop and until when; what stopping
//! means is up to whoever holds a [`Drain`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Tells everybody to stop, and sees when they have.
#[derive(Debug)]
pub struct DrainTrigger {
    deadline: watch::Sender<Option<Instant>>,
    begun: Arc<AtomicBool>,
    bell: Arc<Notify>,
}

/// Held by whoever has something to bring to an end; dropping the last one ends the drain.
#[derive(Clone, Debug)]
pub struct Drain {
    deadline: watch::Receiver<Option<Instant>>,
    begun: Arc<AtomicBool>,
    /// For those who would keep more to listen to the deadline.
    bell: Arc<Notify>,
}

/// A drain that has not begun.
#[must_use]
pub fn drain() -> (DrainTrigger, Drain) {
    let (sender, receiver) = watch::channel(None);
    let begun = Arc::new(AtomicBool::new(false));
    let bell = Arc::new(Notify::new());
    let trigger = DrainTrigger {
        deadline: sender,
        begun: begun.clone(),
        bell: bell.clone(),
    };
    let drain = Drain {
        deadline: receiver,
        begun,
        bell,
    };
    (trigger, drain)
}

impl DrainTrigger {
    /// Tells everybody to stop by `deadline`.
    pub fn begin(&self, deadline: Instant) {
        self.deadline.send_modify(|place| {
            *place = Some(deadline);
            // Before anybody is woken, and before anybody can read the deadline: who sees the one sees the other.
            self.begun.store(true, Ordering::Release);
        });
        self.bell.notify_waiters();
    }

    /// Waits until every [`Drain`] is dropped, at most until `deadline`; says whether all of them were.
    pub async fn finished(&self, deadline: Instant) -> bool {
        tokio::time::timeout_at(deadline, self.deadline.closed()).await.is_ok()
    }
}

impl Drop for DrainTrigger {
    fn drop(&mut self) {
        self.begun.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }
}

impl Drain {
    /// Whether it is time to stop.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// For who is polled often for other reasons.
    #[must_use]
    pub fn listen(self) -> Draining {
        Draining {
            drain: self,
            bell: None,
            over: false,
        }
    }

    /// Waits until it is time to stop, and says by when one must have.
    pub async fn draining(&mut self) -> Instant {
        let deadline = self
            .deadline
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|deadline| *deadline);
        // Without a trigger nobody waits any more.
        deadline.unwrap_or_else(now)
    }
}

/// Waits for the end within one task, and costs nothing while there are other reasons to be woken.
pub struct Draining {
    drain: Drain,
    /// From the first poll on: what wakes the task also shows in the flag.
    bell: Option<Pin<Box<OwnedNotified>>>,
    over: bool,
}

impl Draining {
    /// Ready once, when it is time to stop: by when one must have.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        if self.over {
            return Poll::Pending;
        }
        if self.bell.is_none() {
            let bell = self.bell.insert(Box::pin(self.drain.bell.clone().notified_owned()));
            // Whoever has begun before this has set the flag, and whoever begins after it wakes the task.
            let _ = bell.as_mut().poll(context);
        }
        if !self.drain.is_draining() {
            return Poll::Pending;
        }
        self.over = true;
        self.bell = None;
        // Without a trigger nobody waits any more.
        let deadline = *self.drain.deadline.borrow();
        Poll::Ready(deadline.unwrap_or_else(now))
    }
}

/// The two signals that ask the program to stop.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on the signals no longer kill the program.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The instant that lies `wait` from now.
#[must_use]
pub fn after(wait: Duration) -> Instant {
    now() + wait
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline of the whole program starts at the clock"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_when_its_last_holder_is_gone() {
        let (trigger, drain) = drain();
        let mut other = drain.clone();
        assert!(!drain.is_draining());
        let deadline = after(Duration::from_secs(20));
        trigger.begin(deadline);
        assert!(drain.is_draining());
        assert_eq!(other.draining().await, deadline);
        drop(drain);
        assert!(!trigger.finished(after(Duration::from_secs(1))).await);
        drop(other);
        assert!(trigger.finished(deadline).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_trigger_ends_everything() {
        let (trigger, mut drain) = drain();
        drop(trigger);
        assert!(drain.is_draining());
        assert_eq!(drain.draining().await, now());
    }
}
