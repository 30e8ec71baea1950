// SPDX-License-Identifier: Apache-2.0
//! Signals, and the end of the program: drains all listeners and connections. Owns when each of them must begin to leave, and the
//! deadline. The holder of a [`Drain`] decides how it leaves.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// When the holders of a [`Drain`] must leave.
#[derive(Clone, Copy, Debug)]
struct Times {
    begun: Instant,
    /// The time over which their departures are spread.
    spread: Duration,
    deadline: Instant,
}

/// When one holder leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it begins to leave.
    pub begins: Instant,
    /// When it must be gone.
    pub deadline: Instant,
}

/// Tells all holders of a [`Drain`] to leave, and waits until they are gone.
#[derive(Debug)]
pub struct DrainTrigger {
    times: watch::Sender<Option<Times>>,
    begun: Arc<AtomicBool>,
    bell: Arc<Notify>,
}

/// Held by every task that has work to finish. The drain is over when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Drain {
    times: watch::Receiver<Option<Times>>,
    begun: Arc<AtomicBool>,
    /// Wakes [`Draining`], which needs less memory than waiting for `times`.
    bell: Arc<Notify>,
}

/// Creates a drain that has not begun.
#[must_use]
pub fn drain() -> (DrainTrigger, Drain) {
    let (sender, receiver) = watch::channel(None);
    let begun = Arc::new(AtomicBool::new(false));
    let bell = Arc::new(Notify::new());
    let trigger = DrainTrigger {
        times: sender,
        begun: begun.clone(),
        bell: bell.clone(),
    };
    let drain = Drain {
        times: receiver,
        begun,
        bell,
    };
    (trigger, drain)
}

impl DrainTrigger {
    /// Tells all holders to leave by `deadline`. Their departures begin at random times within `spread`.
    pub fn begin(&self, spread: Duration, deadline: Instant) {
        let times = Times {
            begun: now(),
            spread,
            deadline,
        };
        self.times.send_modify(|place| {
            *place = Some(times);
            // Set before anybody is woken and before anybody can read the times, so that the flag and the times always agree.
            self.begun.store(true, Ordering::Release);
        });
        self.bell.notify_waiters();
    }

    /// Waits until every [`Drain`] is dropped, at most until `deadline`. Returns whether all were dropped.
    pub async fn finished(&self, deadline: Instant) -> bool {
        tokio::time::timeout_at(deadline, self.times.closed()).await.is_ok()
    }
}

impl Drop for DrainTrigger {
    fn drop(&mut self) {
        self.begun.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }
}

impl Drain {
    /// Whether the drain has begun.
    pub fn is_draining(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Returns a listener for a task that is often polled for other reasons.
    #[must_use]
    pub fn listen(self) -> Draining {
        Draining {
            drain: self,
            bell: None,
            over: false,
        }
    }

    /// Waits until the drain has begun.
    pub async fn draining(&mut self) {
        // If the trigger is dropped, everybody leaves at once.
        drop(self.times.wait_for(Option::is_some).await);
    }

    /// Waits until this holder must begin to leave.
    pub async fn departing(&mut self) {
        self.draining().await;
        tokio::time::sleep_until(self.departure().begins).await;
    }

    /// Returns when this holder leaves, once the drain has begun.
    fn departure(&self) -> Departure {
        let times = *self.times.borrow();
        // If the trigger is dropped, everybody leaves at once.
        let times = times.unwrap_or_else(|| {
            let now = now();
            Times {
                begun: now,
                spread: Duration::ZERO,
                deadline: now,
            }
        });
        Departure {
            begins: times.begun + times.spread.mul_f64(rand::random::<f64>()),
            deadline: times.deadline,
        }
    }
}

/// Waits for the drain within a task. Costs nothing when the task is woken for other reasons.
pub struct Draining {
    drain: Drain,
    /// Set from the first poll on. It only wakes the task; the flag tells whether the drain has begun.
    bell: Option<Pin<Box<OwnedNotified>>>,
    over: bool,
}

impl Draining {
    /// Ready once, when the drain has begun.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Departure> {
        if self.over {
            return Poll::Pending;
        }
        if self.bell.is_none() {
            let bell = self.bell.insert(Box::pin(self.drain.bell.clone().notified_owned()));
            // A drain that began before this has set the flag; a drain that begins later wakes the task.
            let _ = bell.as_mut().poll(context);
        }
        if !self.drain.is_draining() {
            return Poll::Pending;
        }
        self.over = true;
        self.bell = None;
        Poll::Ready(self.drain.departure())
    }
}

/// The signal that asks the program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM, as sent by service managers.
    Terminate,
    /// SIGINT, as sent by Ctrl-C at a terminal.
    Interrupt,
}

/// The two signals that ask the program to stop.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the handlers. From here on the signals no longer kill the program.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.interrupt.recv() => Stop::Interrupt,
        }
    }
}

/// Signals that ask other programs to open their log files again. The relay has none.
#[derive(Debug)]
pub struct OtherSignals {
    user1: Signal,
    user2: Signal,
}

impl OtherSignals {
    /// Installs the handlers. From here on the signals no longer kill the program.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Logs each of them.
    pub async fn run(mut self) {
        loop {
            let name = tokio::select! {
                _ = self.user1.recv() => "SIGUSR1",
                _ = self.user2.recv() => "SIGUSR2",
            };
            tracing::warn!(
                signal = name,
                "ignored: the relay has no log files; SIGHUP reads its configuration again"
            );
        }
    }
}

/// The signal SIGHUP, with which operators ask for files to be read again.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Installs the handler. From here on the signal no longer kills the program.
    pub fn listen() -> std::io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        // The stream never ends.
        let _ = self.0.recv().await;
    }
}

/// Returns the instant that is `wait` from now.
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
        let other = drain.clone();
        assert!(!drain.is_draining());
        let deadline = after(Duration::from_secs(20));
        trigger.begin(Duration::ZERO, deadline);
        assert!(drain.is_draining());
        assert_eq!(other.departure().deadline, deadline);
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
        drain.departing().await;
        assert_eq!(drain.departure().deadline, now());
    }

    /// The holders leave one after the other, all of them within the spread.
    #[tokio::test(start_paused = true)]
    async fn who_leaves_when() {
        let (trigger, drain) = drain();
        let (begun, spread) = (now(), Duration::from_secs(16));
        trigger.begin(spread, begun + Duration::from_secs(20));
        let mut times: Vec<Duration> = (0..1000).map(|_| drain.departure().begins - begun).collect();
        times.sort_unstable();
        assert!(times.iter().all(|time| *time <= spread));
        let quarters = [250, 500, 750].map(|at| times[at].as_secs());
        assert!(
            (2..=6).contains(&quarters[0]) && (6..=10).contains(&quarters[1]) && (10..=14).contains(&quarters[2]),
            "{quarters:?}"
        );
    }
}
