// SPDX-License-Identifier: Apache-2.0
//! A response of the server, until the machine has taken it.
//!
//! Owns what is counted and traced of a response. Knows nothing of how streams begin and end.

use std::sync::Arc;

use super::Leg;
use super::live::HeardResponse;
use crate::protocol::Received;
use crate::telemetry::{TracedArrival, traceparent};
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::xds::Changes;

impl Leg {
    pub(super) fn received(&mut self, heard: HeardResponse, changes: &mut Vec<Changes>) -> Result<(), Failure> {
        let received = now();
        self.reports.tolerated();
        let size = heard.message.length();
        let mut arrival = heard.message.finish(heard.dialect)?;
        // the server's identifier is then the same in all responses.
        let parent = traceparent::take(arrival.identifier_mut());
        let new = self.client.handle_response(arrival, received);
        let target = self.dialer.target();
        target.record.metrics.responses.inc();
        if let Some(Received {
            type_url,
            valid,
            invalid,
            ignored,
        }) = self.client.take_received()
        {
            target.record.metrics.resources(&type_url, valid, invalid, ignored);
            self.blame.suspects_mut().handle_answer(&type_url);
            if target.record.metrics.traces.is_on() {
                self.arrivals.push(TracedArrival {
                    server: Arc::from(target.record.uri()),
                    type_url,
                    bytes: size,
                    received,
                    decoded: now(),
                    parent,
                    stream: heard.span,
                });
            }
        }
        tracing::debug!(server = target.record.uri(), leg = ?self.dialer.which(), size, "response");
        if heard.first {
            self.answered(changes);
        }
        self.board.heard();
        self.dialer.target().record.metrics.heard();
        changes.extend(new);
        Ok(())
    }
}
