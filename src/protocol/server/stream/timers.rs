// SPDX-License-Identifier: Apache-2.0
//! When a stream must be looked at although nothing has come for it.
//!
//! Owns the times of its types, its gates and its loss. Does not know what waits for them.

use std::time::Instant;

use super::{Rest, Server};
use crate::end::End;
use xds::Sight;

impl Server {
    /// Returns when `handle_timeout` and `poll_response` must be called again at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = &self.settings.timers;
        let of_types = self.types.iter().filter_map(|one| one.poll_timeout(timers.unanswered));
        let gates = [&self.additions, &self.removals].map(|gate| gate.poll_timeout(timers.order_gate));
        of_types
            .chain(gates.into_iter().flatten())
            .chain(self.loss_timeout())
            .min()
    }

    /// The time of `poll_timeout` has come. Returns the end of the stream, if it must end.
    pub fn handle_timeout(&mut self, sight: &Sight, now: Instant) -> Option<End> {
        self.rest = Rest::Waits;
        let bound = self.settings.timers.unanswered;
        for gate in [&mut self.additions, &mut self.removals] {
            gate.handle_timeout(self.settings.timers.order_gate, now);
        }
        // G-18: a client that was sent nothing may find another server; one that was sent something stays. Clients of gRPC
        // leave all the same if that server is lost (`handle_loss`).
        let served = self.nonces.given() > 0;
        let holds = served || self.types.iter().any(|one| one.knows_any(sight));
        for one in &mut self.types {
            if !one.handle_timeout(bound, now) {
                continue;
            }
            if !holds {
                one.look_again(now);
            }
            let hopeless = one.hopeless(sight, self.caller.is_relay());
            if let Some(name) = hopeless.filter(|_| !served) {
                let slot = one.type_sight(sight);
                let error = name.map_or_else(|| slot.refusal(), |name| slot.error(name));
                let end = End::unanswered(one.type_url(), bound, slot.reason(name));
                return Some(end.explained(error.map(|error| &*error.message)));
            }
        }
        self.handle_loss(sight, now)
    }
}
