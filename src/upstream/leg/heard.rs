// SPDX-License-Identifier: Apache-2.0
//! A response of the server, until the machine has taken it.
//!
//! Owns what is counted and traced of a response. Knows nothing of how streams begin and end.

use std::sync::Arc;
use std::time::Instant;

use opentelemetry::trace::SpanContext;

use super::Leg;
use super::live::HeardResponse;
use crate::proto::envoy::config::core::v3::ControlPlane;
use crate::protocol::{Cutter, DeltaResponse, Received, SotwResponse};
use crate::telemetry::{TracedArrival, traceparent};
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::xds::{Changes, Dialect};

impl Leg {
    pub(super) fn received(&mut self, heard: HeardResponse, changes: &mut Vec<Changes>) -> Result<(), Failure> {
        let received = now();
        self.reports.tolerated();
        let size = heard.message.length();
        let (new, parent) = self.decode(heard.message, heard.dialect, received)?;
        let target = self.dialer.target();
        target.metrics.responses.inc();
        if let Some(Received {
            type_url,
            valid,
            invalid,
            ignored,
        }) = self.client.take_received()
        {
            target.metrics.resources(&type_url, valid, invalid, ignored);
            self.blame.heard(&type_url);
            if target.metrics.traces.is_on() {
                self.arrivals.push(TracedArrival {
                    server: Arc::from(target.uri()),
                    type_url,
                    bytes: size,
                    received,
                    decoded: now(),
                    parent,
                    stream: heard.span,
                });
            }
        }
        tracing::debug!(server = target.uri(), leg = ?self.dialer.which(), size, "response");
        if heard.first {
            self.answered(changes);
        }
        self.board.heard();
        self.dialer.target().metrics.heard();
        changes.extend(new);
        Ok(())
    }

    /// Decodes a response and hands it to the machine. Returns what it changes, and the server's span for it. A-19: the span is taken
    /// from the server's identifier, which is then the same in all responses.
    fn decode(
        &mut self,
        message: Cutter,
        dialect: Dialect,
        received: Instant,
    ) -> Result<(Vec<Changes>, Option<SpanContext>), Failure> {
        let span = |plane: &mut Option<ControlPlane>| traceparent::take(&mut plane.as_mut()?.identifier);
        Ok(match dialect {
            Dialect::Sotw => {
                let mut response: SotwResponse = message.finish()?;
                let span = span(&mut response.head_mut().control_plane);
                (self.client.handle_sotw(response, received), span)
            }
            Dialect::Delta => {
                let mut response: DeltaResponse = message.finish()?;
                let span = span(&mut response.head_mut().control_plane);
                (self.client.handle_delta(response, received), span)
            }
        })
    }
}
