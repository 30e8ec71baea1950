// SPDX-License-Identifier: Apache-2.0
//! How long one client has waited for something of one type, and when that is over.
//!
//! Owns the times that a stream must look at. Does not know what follows for the stream.

use std::time::{Duration, Instant};

use super::Subscription;
use crate::server::waits::Wait;
use xds::TypeSight;

impl Subscription {
    /// Returns since when the client may wait for something that it has asked for and nobody has answered. That it was told of a name in
    /// the end that it does not exist is no answer of the server.
    pub(in crate::server) fn waits_since(&self, slot: TypeSight<'_>) -> Option<Instant> {
        let waits = self.books.ledger().own().waiting() > 0 || self.want.wildcard() && !slot.is_complete();
        (waits || self.asks_silent(slot)).then(|| self.asked.since())
    }

    /// Whether the client asks for a name for which the server did not answer in time.
    fn asks_silent(&self, slot: TypeSight<'_>) -> bool {
        let silent: usize = slot.silent().map(|names| names.len()).sum();
        if silent <= self.books.ledger().own().asked_len() {
            let mut names = slot.silent().flatten();
            return names.any(|name| self.books.ledger().asks(name) && slot.is_silent(name));
        }
        let mut asked = self.books.ledger().own().from("").filter(|entry| entry.is_asked());
        asked.any(|entry| slot.is_silent(entry.name()))
    }

    /// Returns when the client has waited for this long, or a full state is tried once more.
    pub(in crate::server) fn poll_timeout(&self, bound: Duration) -> Option<Instant> {
        let waits = [Wait::Again, Wait::Endpoints].map(|wait| self.waits.get(wait));
        self.asked
            .ends(bound)
            .into_iter()
            .chain(waits.into_iter().flatten())
            .min()
    }

    /// Takes note of the time.
    pub(in crate::server) fn handle_timeout(&mut self, bound: Duration, now: Instant) {
        if self.waits.is_over(Wait::Again, now) {
            self.books.try_again(false);
        }
        self.waits.is_over(Wait::Endpoints, now);
        self.asked.waive(bound, now);
    }
}
