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
        for one in &mut self.types {
            one.handle_timeout(bound, now);
        }
        self.handle_loss(sight, now)
    }
}
