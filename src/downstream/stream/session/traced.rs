// SPDX-License-Identifier: Apache-2.0
//! Responses with traced changes.
//!
//! Owns which client is told to which trace a change belongs: relays, and nobody else. Does not know which changes are traced.

use std::sync::Arc;

use bytes::Buf as _;

use super::Session;
use crate::clock;
use crate::downstream::stream::output::rope;
use crate::protocol::Response;
use crate::telemetry::{TracedChange, traceparent};
use crate::wire::Rope;

impl Session {
    /// Returns the traced changes that are new to the client in a response, oldest first. None if there are none.
    pub(super) fn traced(&self, response: &Response) -> Option<Vec<Arc<TracedChange>>> {
        let traces = &self.shared.metrics.traces;
        let since = response.since.filter(|_| traces.is_any())?;
        let items = response.batch.items();
        let brings = |time| items.iter().any(|item| item.resource.received() == time);
        let traced = traces.in_response(&response.type_url, since, brings);
        (!traced.is_empty()).then_some(traced)
    }

    /// Encodes a response with these traced changes, and notes that it is sent.
    #[cold]
    pub(super) fn encode_traced(&mut self, response: &Response, changes: &[Arc<TracedChange>]) -> Rope {
        let is_relay = self.server.node().is_some_and(|node| node.is_relay());
        // a response of several changes is part of the oldest one's trace.
        let told = changes.first().filter(|_| is_relay);
        let identifier = told.map(|change| traceparent::after(&self.shared.identifier, &change.context()));
        let identifier = identifier.as_ref().unwrap_or(&self.shared.identifier);
        let begun = clock::now();
        let (rope, fresh) = rope(response, &self.method, identifier);
        let ended = clock::now();
        if fresh {
            changes.iter().for_each(|change| change.encode(begun, ended));
        }
        self.accounts.deliver(response.nonce, changes, ended);
        self.accounts.response(&response.type_url, rope.remaining(), fresh);
        rope
    }
}
