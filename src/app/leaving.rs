// SPDX-License-Identifier: Apache-2.0
//! How the relay stops. First it is no longer ready, but still serves all clients. Then its listeners close and its clients are
//! moved away one after the other. Then it ends.
//!
//! Owns these steps, and what a signal or an operator's drain order means in each of them. Does not close clients itself.

use std::io::{IsTerminal as _, stdin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::reload::Live;
use crate::admin::DrainOrder;
use crate::clock;
use crate::shutdown::{DrainTrigger, Stop, StopSignals, after};
use crate::supervisor::Supervisor;
use crate::telemetry::{Health, Metrics, RelayStatus};

/// The part of the drain time over which the departures of clients are spread. The rest is for the last of them to finish.
const SPREAD: f64 = 0.8;
/// How long the departure of each client may take: a relay with few clients need not wait for a herd that is none.
const EACH: Duration = Duration::from_millis(20);
/// How long a drain takes at most for somebody who waits at a terminal, unless the configuration says how long.
const IMPATIENT: Duration = Duration::from_secs(1);
/// What the end may take after the drain, before a service manager should worry.
const SPARE: Duration = Duration::from_secs(10);

/// Everything that can tell the relay to stop.
pub(super) struct Leaving {
    signals: StopSignals,
    orders: mpsc::Receiver<DrainOrder>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    live: Arc<Live>,
    supervisor: Arc<Supervisor>,
    /// The number of signals so far, including the one that told the relay to stop.
    signalled: usize,
    /// Whether it was somebody at a terminal who told it to stop.
    at_terminal: bool,
}

impl Leaving {
    pub(super) fn new(
        signals: StopSignals,
        orders: mpsc::Receiver<DrainOrder>,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
        live: Arc<Live>,
        supervisor: Arc<Supervisor>,
    ) -> Self {
        Self {
            signals,
            orders,
            health,
            metrics,
            live,
            supervisor,
            signalled: 0,
            at_terminal: false,
        }
    }

    /// Waits for a signal or an order to stop, and then until the announcement is over and draining begins.
    pub(super) async fn announced(&mut self) {
        let announces = tokio::select! {
            stop = self.signals.next() => {
                self.signal();
                self.at_terminal = stop == Stop::Interrupt && stdin().is_terminal();
                stop == Stop::Terminate
            }
            Some(order) = self.orders.recv() => order.graceful,
        };
        let known = self.health.status() == RelayStatus::Draining || self.metrics.connections.get() == 0;
        self.health.advance(RelayStatus::Draining);
        let announce = self.live.config().timers.drain_announce;
        if !announces || known || announce.is_zero() {
            return;
        }
        tracing::info!(within = ?announce, "not ready any more; clients are still served while load balancers notice");
        let over = clock::sleep(announce);
        tokio::pin!(over);
        while self.signalled < 2 {
            tokio::select! {
                () = &mut over => return,
                _ = self.signals.next() => self.signal(),
            }
        }
    }

    /// Returns how long clients may take to leave.
    fn drain(&self) -> Duration {
        let config = self.live.config();
        let drain = config.timers.drain;
        let is_set = || config.written.json().pointer("/timers/drain").is_some();
        match self.at_terminal && !is_set() {
            true => drain.min(IMPATIENT),
            false => drain,
        }
    }

    /// Counts a signal. The first one says that the relay ends.
    fn signal(&mut self) {
        self.signalled += 1;
        if self.signalled == 1 {
            let config = self.live.config();
            let timers = &config.timers;
            self.supervisor
                .stopping(timers.drain_announce.saturating_add(timers.drain).saturating_add(SPARE));
        }
    }

    /// Drains clients. Returns when they are gone and there was a signal, or at once at a further signal.
    pub(super) async fn left(mut self, trigger: &DrainTrigger, last: impl Future<Output = ()>) {
        let drain = self.drain();
        let clients = self.metrics.connections.get();
        let hint = "another signal stops at once";
        tracing::info!(within = ?drain, clients, hint, "draining");
        let deadline = after(drain);
        trigger.begin(spread(drain, clients), deadline);
        let gone = async {
            // A hanging disk must not keep the relay from ending.
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
                    self.signal();
                }
            }
        }
        tracing::info!(finished = finished.unwrap_or_default(), "stopped");
    }
}

/// Returns the time over which the departures of so many clients are spread.
fn spread(drain: Duration, clients: i64) -> Duration {
    let clients = u32::try_from(clients).unwrap_or(u32::MAX);
    drain.mul_f64(SPREAD).min(EACH.saturating_mul(clients))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_leave_soon() {
        let drain = Duration::from_secs(20);
        let spreads = [0, 1, 300, 800, 100_000].map(|clients| spread(drain, clients).as_millis());
        assert_eq!(spreads, [0, 20, 6000, 16_000, 16_000]);
    }
}
