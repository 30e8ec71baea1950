//! The traces that wait for their collector.
//!
//! Owns how many are kept while it cannot be reached: the latest that fit. Does not know which changes are traced.

use std::collections::VecDeque;
use std::sync::Arc;

use super::environment::Batches;
use super::outlet::Outlet;
use super::spans::{self, SPANS};
use crate::clock::{self, WallClock};
use crate::proto::opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
use crate::proto::opentelemetry::proto::resource::v1::Resource;
use crate::telemetry::{Change, Traces};

/// Changes that are over and not exported.
pub(super) struct Queue {
    traces: Arc<Traces>,
    resource: Resource,
    /// How many changes may wait, and how many are exported at a time.
    most: usize,
    batch: usize,
    outlet: Outlet,
    waiting: VecDeque<Arc<Change>>,
}

impl Queue {
    pub(super) fn new(traces: Arc<Traces>, resource: Resource, batches: Batches, outlet: Outlet) -> Self {
        // A change has at least one place, however small the bounds are.
        let changes = |spans: usize| (spans / SPANS).max(1);
        Self {
            traces,
            resource,
            most: changes(batches.queue),
            batch: changes(batches.size),
            outlet,
            waiting: VecDeque::new(),
        }
    }

    /// Exports the changes that are over; all, if this is the last export.
    pub(super) async fn export(&mut self, last: bool) {
        let now = (!last).then(clock::now);
        self.waiting.extend(self.traces.take_over(now));
        let lost = self.waiting.len().saturating_sub(self.most);
        self.waiting.drain(..lost);
        self.traces.dropped(lost);
        while !self.waiting.is_empty() {
            let batch = self.batch.min(self.waiting.len());
            let changes = self.waiting.iter().take(batch);
            let request = spans::request(self.resource.clone(), changes, WallClock::read());
            let answer: Option<ExportTraceServiceResponse> = self.outlet.send(request).await;
            let Some(answer) = answer else { return };
            self.waiting.drain(..batch);
            self.traces.exported(batch);
            if let Some(part) = answer.partial_success {
                self.outlet.took_a_part(part.rejected_spans, &part.error_message);
            }
        }
    }
}
