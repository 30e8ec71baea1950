// SPDX-License-Identifier: Apache-2.0
//! The traces that wait for their collector.
//!
//! Owns how many are kept while it cannot be reached: the latest that fit. Does not know which changes are traced.

use std::collections::VecDeque;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;

use super::environment::Batches;
use super::outlet::{Delivery, Outlet};
use super::spans::{self, SPANS};
use crate::clock::{self, WallClock};
use crate::telemetry::{TracedChange, Traces};

/// Changes that are over and not exported.
pub(super) struct Queue {
    traces: Arc<Traces>,
    resource: ResourceAttributesWithSchema,
    /// How many changes may wait, and how many are exported at a time.
    most: usize,
    batch: usize,
    outlet: Outlet,
    waiting: VecDeque<Arc<TracedChange>>,
}

impl Queue {
    pub(super) fn new(
        traces: Arc<Traces>,
        resource: ResourceAttributesWithSchema,
        batches: Batches,
        outlet: Outlet,
    ) -> Self {
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

    /// Takes the changes that are over, and exports them unless the collector is left alone.
    pub(super) async fn export(&mut self) {
        self.take(self.traces.take_over(Some(clock::now())));
        if self.outlet.is_ready() {
            self.send().await;
        }
    }

    /// Exports all changes, over or not.
    pub(super) async fn finish(&mut self) {
        self.take(self.traces.take_over(None));
        self.send().await;
    }

    fn take(&mut self, over: Vec<Arc<TracedChange>>) {
        self.waiting.extend(over);
        let lost = self.waiting.len().saturating_sub(self.most);
        self.waiting.drain(..lost);
        self.traces.dropped(lost);
    }

    async fn send(&mut self) {
        while !self.waiting.is_empty() {
            let batch = self.batch.min(self.waiting.len());
            match self.outlet.send(self.request(batch)).await {
                Delivery::Taken(answer) => {
                    self.traces.exported(batch);
                    let answer: ExportTraceServiceResponse = answer;
                    if let Some(part) = answer.partial_success {
                        self.outlet.took_a_part(part.rejected_spans, &part.error_message);
                    }
                }
                Delivery::Refused => self.traces.dropped(batch),
                Delivery::Kept => return,
            }
            self.waiting.drain(..batch);
        }
    }

    fn request(&self, batch: usize) -> ExportTraceServiceRequest {
        let clock = WallClock::read();
        let changes = self.waiting.iter().take(batch);
        let spans = changes.flat_map(|change| spans::spans(change, clock)).collect();
        ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(spans, &self.resource),
        }
    }
}
