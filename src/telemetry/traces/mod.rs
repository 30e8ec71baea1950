// SPDX-License-Identifier: Apache-2.0
//! The changes from control planes that are traced now.
//!
//! Owns which ones are, and until when. Nothing is kept for a change that is not traced, and nobody asks clients: whoever sends a
//! change finds it by the time at which its content arrived, and keeps what it has sent until the client answers.

mod change;
mod sampler;
#[cfg(test)]
mod tests;
pub mod traceparent;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::RwLock;
use prometheus_client::registry::Registry;

pub use change::{ChangeCourse, Delivery, TracedArrival, TracedChange, TracedNews};
pub use sampler::Sampler;

use super::labels::WordCounters;
use crate::xds::TypeUrl;

/// The changes that are traced.
#[derive(Debug)]
pub struct Traces {
    /// Set once, if traces are exported.
    sampler: OnceLock<Sampler>,
    /// In the order of their arrival.
    open: RwLock<Vec<Arc<TracedChange>>>,
    /// How many these are. Read for every response.
    number: AtomicUsize,
    results: WordCounters,
}

/// How many changes are traced at the same time.
const OPEN_MAX: usize = 256;

impl Traces {
    pub(super) fn register(own: &mut Registry) -> Arc<Self> {
        let results = WordCounters::new("result", "exported dropped");
        Arc::new(Self {
            sampler: OnceLock::new(),
            open: RwLock::default(),
            number: AtomicUsize::new(0),
            results: results.register(
                own,
                "traces",
                "Changes that were traced, and whether the collector has their spans",
            ),
        })
    }

    /// Begins to trace those changes that the sampler chooses.
    pub fn start(&self, sampler: Sampler) {
        // A second sampler is none.
        let _ = self.sampler.set(sampler);
    }

    /// Whether any changes are to be traced.
    pub fn is_on(&self) -> bool {
        self.sampler.get().is_some()
    }

    /// Whether any change is traced now.
    pub fn is_any(&self) -> bool {
        self.number.load(Ordering::Relaxed) > 0
    }

    /// Begins the trace of a change, before clients can be sent it. `look` is called if it is to be traced, and returns what is
    /// new in the response, if anything.
    pub fn begin(
        &self,
        arrival: &TracedArrival,
        look: impl FnOnce() -> Option<TracedNews>,
    ) -> Option<Arc<TracedChange>> {
        let sampler = self.sampler.get()?;
        let trace = sampler.decide(arrival.parent.as_ref(), arrival.received)?;
        let news = look()?;
        sampler.spend(arrival.received);
        let mut open = self.open.write();
        if open.len() >= OPEN_MAX {
            drop(open);
            self.dropped(1);
            return None;
        }
        let superseded = open.iter().filter(|change| {
            let before = &change.arrival;
            before.type_url == arrival.type_url && news.replaced.contains(&before.received)
        });
        let links = arrival
            .stream
            .iter()
            .chain(superseded.map(|before| &before.own))
            .cloned();
        let change = TracedChange::new(trace, links.collect(), arrival.clone(), news);
        let at = open.partition_point(|other| other.arrival.received <= arrival.received);
        open.insert(at, change.clone());
        self.number.store(open.len(), Ordering::Relaxed);
        Some(change)
    }

    /// Returns the traced changes in a response of this type, oldest first. `since` is when the oldest content that is new to the
    /// client had arrived; `brings` says whether the response has content that arrived at this time.
    pub fn in_response(
        &self,
        type_url: &TypeUrl,
        since: Instant,
        brings: impl Fn(Instant) -> bool,
    ) -> Vec<Arc<TracedChange>> {
        let open = self.open.read();
        let from = open.partition_point(|change| change.arrival.received < since);
        let later = open
            .iter()
            .skip(from)
            .filter(|change| change.arrival.type_url == *type_url);
        let carried = later.filter(|change| {
            let received = change.arrival.received;
            received == since || brings(received)
        });
        carried.cloned().collect()
    }

    /// Returns the changes that are over, once; all of them if `now` is none.
    pub fn take_over(&self, now: Option<Instant>) -> Vec<Arc<TracedChange>> {
        if !self.is_any() {
            return Vec::new();
        }
        let mut open = self.open.write();
        let over = |change: &mut Arc<TracedChange>| now.is_none_or(|now| change.is_over(now));
        let over = open.extract_if(.., over).collect();
        self.number.store(open.len(), Ordering::Relaxed);
        over
    }

    /// Counts changes whose spans the collector has.
    pub fn exported(&self, changes: usize) {
        self.results.of("exported").inc_by(changes as u64);
    }

    /// Counts changes whose spans are lost.
    pub fn dropped(&self, changes: usize) {
        self.results.of("dropped").inc_by(changes as u64);
    }
}
