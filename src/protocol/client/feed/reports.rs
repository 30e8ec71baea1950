// SPDX-License-Identifier: Apache-2.0
//! What the server is told of the rejections of clients (E-24).
//!
//! Owns that it is told only while there is nothing else to send. Knows nothing of the clients.

use std::time::Instant;

use super::Feed;
use crate::client::complaint::complaint;
use crate::client::{Reported, Request};
use xds::{Dialect, Rejection};

impl Feed {
    /// A client has rejected something.
    pub(in crate::client) fn rejected(&mut self, now: Instant) {
        self.late.get_or_insert_default().rejected(now);
    }

    /// Returns whether the clients are to be asked now what they reject.
    pub(in crate::client) fn asks_clients(&mut self, now: Instant) -> bool {
        let late = self.late.as_mut().filter(|_| self.outbound.is_at_rest());
        late.is_some_and(|late| late.asks(now))
    }

    /// Takes all that clients reject.
    pub(in crate::client) fn hear_clients(&mut self, rejections: &[Rejection]) {
        if let Some(late) = &mut self.late {
            late.answer(rejections, &self.kept);
        }
    }

    /// Returns a request that tells the server of it, and what it is told.
    pub(in crate::client) fn report(&mut self, dialect: Dialect, now: Instant) -> Option<(Request, Reported)> {
        let late = self.late.as_mut().filter(|_| self.outbound.is_at_rest())?;
        let rejections = Some(late.take(now, &self.kept)).filter(|all| !all.is_empty())?;
        let words = complaint(&self.type_url, &rejections);
        let reported = Reported {
            type_url: self.type_url.clone(),
            contents: rejections.into_iter().filter_map(|one| one.content).collect(),
            at: now,
        };
        Some((self.outbound.again(&self.type_url, dialect, Some(words)), reported))
    }
}
