//! A response of the server, until the machine has taken it.
//!
//! Owns where a server writes to which span of its own a change belongs. Knows nothing of how streams begin and end.

use std::time::Instant;

use opentelemetry::trace::SpanContext;

use super::Leg;
use crate::protocol::Cutter;
use crate::telemetry::traceparent;
use crate::upstream::failure::Failure;
use crate::xds::{Changes, Dialect};

impl Leg {
    /// Decodes a response and hands it to the machine. Returns what it changes, and the server's span for it. A-19: the span is taken
    /// from the server's identifier, which is then the same in all responses.
    pub(super) fn decode(
        &mut self,
        message: Cutter,
        dialect: Dialect,
        received: Instant,
    ) -> Result<(Vec<Changes>, Option<SpanContext>), Failure> {
        Ok(match dialect {
            Dialect::Sotw => {
                let mut response = message.sotw()?;
                let span = response.identifier().and_then(traceparent::take);
                (self.client.handle_sotw(response, received), span)
            }
            Dialect::Delta => {
                let mut response = message.delta()?;
                let span = response.identifier().and_then(traceparent::take);
                (self.client.handle_delta(response, received), span)
            }
        })
    }
}
