// SPDX-License-Identifier: Apache-2.0
//! The progress of a fleet, counted by all its threads. Scenarios wait for it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::fleet::client::Outcome;
use crate::fleet::violation::Violation;

/// Counters that only grow, except when a client starts anew or loses its stream.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    complete: AtomicU32,
    messages: AtomicU64,
    named: AtomicU64,
    returned: AtomicU64,
    /// Clients that were let in and use streams, those of them that have one, and how often any got one.
    streamers: AtomicU32,
    streaming: AtomicU32,
    streamed: AtomicU64,
    /// The longest time that a client was without a stream that it had, since this was last taken.
    gap_micros: AtomicU64,
    /// The number of complete clients that rings `changed`.
    awaited: AtomicU32,
    violations: Mutex<Vec<Breach>>,
    violated: AtomicU32,
    /// The last one.
    refusal: Mutex<Option<Refusal>>,
    /// Rings when as many clients are complete as are awaited, and at every violation.
    pub(crate) changed: Notify,
}

/// A violation that one client saw.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) client: u32,
    pub(crate) what: String,
    pub(crate) transcript: Vec<String>,
}

/// A server that does not serve a client at all. That is no breach of the protocol.
#[derive(Clone, Debug, thiserror::Error)]
#[error("client {client} is not served: {why}")]
pub(crate) struct Refusal {
    pub(crate) client: u32,
    pub(crate) why: String,
    /// Whether the client does not try again.
    pub(crate) is_final: bool,
}

/// How many violations are kept in full; all are counted.
const VIOLATIONS_TOLD_MAX: usize = 10;

impl Progress {
    pub(crate) fn complete(&self) -> u32 {
        self.complete.load(Ordering::Acquire)
    }

    /// Returns the number of responses to all clients so far.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Acquire)
    }

    /// Returns the number of resources in them, including removals.
    pub(crate) fn named(&self) -> u64 {
        self.named.load(Ordering::Acquire)
    }

    /// Returns how often clients came back.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    pub(crate) fn come_back(&self, clients: u64) {
        self.returned.fetch_add(clients, Ordering::AcqRel);
    }

    /// Returns how many clients have a stream; none if no client uses streams.
    pub(crate) fn streaming(&self) -> Option<u64> {
        let streaming = u64::from(self.streaming.load(Ordering::Acquire));
        (self.streamers.load(Ordering::Acquire) > 0).then_some(streaming)
    }

    /// Returns how often clients got a stream.
    pub(crate) fn streamed(&self) -> u64 {
        self.streamed.load(Ordering::Acquire)
    }

    /// Notes for how long clients were without a stream that they have again.
    pub(crate) fn note_gap(&self, gap: Duration) {
        let micros = u64::try_from(gap.as_micros()).unwrap_or(u64::MAX);
        self.gap_micros.fetch_max(micros, Ordering::AcqRel);
    }

    /// Returns the longest time since the last call.
    pub(crate) fn take_gap(&self) -> Duration {
        Duration::from_micros(self.gap_micros.swap(0, Ordering::AcqRel))
    }

    /// Notes clients that will ask for streams.
    pub(crate) fn admit_streams(&self, clients: u32) {
        self.streamers.fetch_add(clients, Ordering::AcqRel);
    }

    pub(crate) fn gain_streams(&self, clients: u32) {
        self.streaming.fetch_add(clients, Ordering::AcqRel);
        self.streamed.fetch_add(u64::from(clients), Ordering::AcqRel);
    }

    pub(crate) fn lose_streams(&self, clients: u32) {
        self.streaming.fetch_sub(clients, Ordering::AcqRel);
    }

    /// Notes that a complete client has started anew.
    pub(crate) fn begin_anew(&self) {
        self.complete.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn violated(&self) -> u32 {
        self.violated.load(Ordering::Acquire)
    }

    /// Returns the first violations, each with its client.
    pub(crate) fn violations(&self) -> Vec<Breach> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the last refusal of a client that was never served.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        self.changed.notify_waiters();
    }

    /// Rings `changed` as soon as `clients` clients are complete.
    pub(crate) fn expect(&self, clients: u32) {
        self.awaited.store(clients, Ordering::Release);
    }

    pub(crate) fn answered(&self, outcome: Outcome) {
        self.messages.fetch_add(u64::from(outcome.messages), Ordering::AcqRel);
        self.named.fetch_add(u64::from(outcome.named), Ordering::AcqRel);
        if !outcome.completed {
            return;
        }
        let complete = self.complete.fetch_add(1, Ordering::AcqRel) + 1;
        if complete == self.awaited.load(Ordering::Acquire) {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn note(&self, client: u32, violation: &Violation, transcript: Vec<String>) {
        {
            let mut told = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() < VIOLATIONS_TOLD_MAX {
                told.push(Breach {
                    client,
                    what: violation.to_string(),
                    transcript,
                });
            }
        }
        self.violated.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }
}
