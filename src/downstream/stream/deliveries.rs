// SPDX-License-Identifier: Apache-2.0
//! The traced changes in the responses of one stream that the client has not answered.
//!
//! Owns which response has which changes. Does not know which changes are traced.

use std::sync::Arc;
use std::time::Instant;

use opentelemetry::trace::SpanContext;

use crate::protocol::{Nonce, ReceiptKind};
use crate::telemetry::{Delivery, TracedChange};

/// The responses with traced changes. Every stream has this value, and hardly ever is anything in it.
#[derive(Default)]
pub(super) struct Deliveries(Option<Box<UnansweredDeliveries>>);

#[derive(Default)]
struct UnansweredDeliveries {
    deliveries: Vec<(Nonce, Delivery)>,
}

impl Deliveries {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A response with these changes is sent.
    pub(super) fn add(&mut self, nonce: Nonce, changes: &[Arc<TracedChange>], now: Instant) {
        if !changes.is_empty() {
            let sent = changes.iter().map(|change| (nonce, change.send(now)));
            self.0.get_or_insert_default().deliveries.extend(sent);
        }
    }

    /// Notes the answer to a response. Returns the span of the change from whose arrival the time of convergence counts.
    #[cold]
    pub(super) fn settle(&mut self, kind: &ReceiptKind, nonce: &[u8], now: Instant) -> Option<SpanContext> {
        let UnansweredDeliveries { deliveries } = &mut **self.0.as_mut()?;
        let mut oldest = None;
        for (_, delivery) in deliveries.extract_if(.., |(sent, _)| sent.as_bytes() == nonce) {
            match kind {
                ReceiptKind::Ack(changed) => {
                    let change = delivery.change();
                    if changed
                        .as_ref()
                        .is_some_and(|changed| changed.news && changed.since == change.arrival.received)
                    {
                        oldest = Some(change.own.clone());
                    }
                    delivery.accept(now);
                }
                ReceiptKind::Nack { .. } => delivery.reject(now),
                // The response was not on its way any more.
                ReceiptKind::First | ReceiptKind::Update | ReceiptKind::Stale => {}
            }
        }
        if deliveries.is_empty() {
            self.0 = None;
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every stream has it.
    #[test]
    fn it_takes_one_pointer() {
        assert_eq!(size_of::<Deliveries>(), size_of::<usize>());
    }
}
