// SPDX-License-Identifier: Apache-2.0
//! The way of one signal to its collector.
//!
//! Owns how long a collector is left alone after a failure, and what the log says when exports begin to fail, and when they work
//! again. Knows nothing of what is exported.

use std::time::{Duration, Instant};

use prost::Message;

use super::collector::Collector;
use super::environment::CollectorTarget;
use super::refusal::{Answer, CollectorRefusal};
use crate::clock;

/// A collector of one signal.
pub(super) struct Outlet {
    signal: &'static str,
    collector: Collector,
    /// The first pause, and the next one.
    first: Duration,
    pause: Duration,
    /// Until then the collector is left alone.
    rests: Option<Instant>,
    failing: bool,
}

/// What became of a message.
pub(super) enum Delivery<A> {
    /// The collector has it, and says this.
    Taken(A),
    /// The collector will never take it.
    Refused,
    /// It can be sent again later.
    Kept,
}

/// The longest pause that the collector has not asked for.
const PAUSE: Duration = Duration::from_secs(30);

impl Outlet {
    /// Creates the way to a collector to which something is sent in this interval.
    pub(super) fn new(signal: &'static str, target: CollectorTarget, interval: Duration) -> Self {
        let first = interval.min(PAUSE);
        Self {
            signal,
            collector: Collector::new(target),
            first,
            pause: first,
            rests: None,
            failing: false,
        }
    }

    /// Whether the collector may be tried now.
    pub(super) fn is_ready(&self) -> bool {
        self.rests.is_none_or(|rests| clock::now() >= rests)
    }

    /// Sends a message.
    pub(super) async fn send<Q, A>(&mut self, message: Q) -> Delivery<A>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let refusal = match self.collector.send(message).await {
            Ok(answer) => {
                self.works();
                return Delivery::Taken(answer);
            }
            Err(refusal) => refusal,
        };
        self.fails(&refusal);
        match refusal.verdict() {
            Answer::Never => {
                self.rests = None;
                Delivery::Refused
            }
            Answer::Later(asked) => {
                self.rests = Some(clock::now() + asked.unwrap_or(self.pause));
                self.pause = (self.pause * 2).min(PAUSE);
                Delivery::Kept
            }
        }
    }

    fn works(&mut self) {
        (self.rests, self.pause) = (None, self.first);
        if std::mem::take(&mut self.failing) {
            let (signal, endpoint) = (self.signal, &self.collector.target().uri);
            tracing::info!(%endpoint, signal, "{signal} are exported again");
        }
    }

    fn fails(&mut self, refusal: &CollectorRefusal) {
        if std::mem::replace(&mut self.failing, true) {
            return;
        }
        let (signal, target) = (self.signal, self.collector.target());
        let endpoint = &target.uri;
        let error = match refusal {
            CollectorRefusal::Broken(_) => format!("{refusal}; {}", target.doubt()),
            CollectorRefusal::Unreachable(_)
            | CollectorRefusal::Late(_)
            | CollectorRefusal::Answered(..)
            | CollectorRefusal::Unwritten(_) => refusal.to_string(),
        };
        match refusal.verdict() {
            Answer::Never => tracing::warn!(
                %endpoint, signal, error,
                "the collector refuses {signal}; what it refuses is dropped, and the relay says when it takes them again"
            ),
            Answer::Later(_) => tracing::warn!(
                %endpoint, signal, error,
                "cannot export {signal}; the relay tries again and says when it works"
            ),
        }
    }

    /// Logs that the collector did not take all of a message.
    pub(super) fn took_a_part(&self, rejected: i64, why: &str) {
        if rejected > 0 {
            let (signal, endpoint) = (self.signal, &self.collector.target().uri);
            tracing::debug!(%endpoint, signal, rejected, why, "the collector took only a part of the {signal}");
        }
    }
}
