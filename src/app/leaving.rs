//! How the relay leaves: first it is not ready any more while all are served, then its listeners close and its clients go one after
//! the other, then it ends.
//!
//! Owns that order, and what a signal or an order of the operator means in each part of it. Refuses to know how a client goes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::admin::DrainOrder;
use crate::clock;
use crate::config::Timers;
use crate::shutdown::{DrainTrigger, Stop, StopSignals, after};
use crate::telemetry::{Health, Metrics, Status};

/// Over so much of the time to drain clients are spread: the rest is for the last of them to go.
const SPREAD: f64 = 0.8;

/// What tells the relay to leave.
pub(super) struct Leaving {
    signals: StopSignals,
    orders: mpsc::Receiver<DrainOrder>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    announce: Duration,
    drain: Duration,
    /// How many signals have come since it was told to leave, or with that.
    signalled: usize,
}

impl Leaving {
    pub(super) fn new(
        signals: StopSignals,
        orders: mpsc::Receiver<DrainOrder>,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
        timers: &Timers,
    ) -> Self {
        Self {
            signals,
            orders,
            health,
            metrics,
            announce: timers.drain_announce,
            drain: timers.drain,
            signalled: 0,
        }
    }

    /// Waits until it is time for clients to leave.
    pub(super) async fn announced(&mut self) {
        let announces = tokio::select! {
            stop = self.signals.next() => {
                self.signalled = 1;
                stop == Stop::Terminate
            }
            Some(order) = self.orders.recv() => order.graceful,
        };
        let known = self.health.status() == Status::Draining || self.metrics.connections.get() == 0;
        self.health.advance(Status::Draining);
        if !announces || known || self.announce.is_zero() {
            return;
        }
        tracing::info!(within = ?self.announce, "not ready any more; clients are served until others have heard of it");
        let over = clock::sleep(self.announce);
        tokio::pin!(over);
        while self.signalled < 2 {
            tokio::select! {
                () = &mut over => return,
                _ = self.signals.next() => self.signalled += 1,
            }
        }
    }

    /// Lets clients leave. It is over when they have, and a signal has come that ends the program.
    pub(super) async fn left(mut self, trigger: &DrainTrigger, last: impl Future<Output = ()>) {
        tracing::info!(within = ?self.drain, clients = self.metrics.connections.get(), "draining");
        let deadline = after(self.drain);
        trigger.begin(self.drain.mul_f64(SPREAD), deadline);
        let gone = async {
            // A disk that hangs does not keep the relay from ending.
            tokio::join!(trigger.finished(deadline), tokio::time::timeout_at(deadline, last)).0
        };
        tokio::pin!(gone);
        let mut finished = None;
        while finished.is_none() || self.signalled == 0 {
            tokio::select! {
                all = &mut gone, if finished.is_none() => finished = Some(all),
                _ = self.signals.next() => {
                    if self.signalled > 0 && finished.is_none() {
                        tracing::warn!("stopped at once by another signal");
                        return;
                    }
                    self.signalled += 1;
                }
            }
        }
        tracing::info!(finished = finished.unwrap_or_default(), "stopped");
    }
}
