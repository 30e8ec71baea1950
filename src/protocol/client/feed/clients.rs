//! What clients reject of one type (E-24).
//!
//! Owns that only what is held is said, and only when the server may be told. Knows nothing of requests.

use std::time::Instant;

use super::Feed;
use xds::Rejection;

impl Feed {
    /// A client has rejected something.
    pub(in crate::client) fn rejected(&mut self, now: Instant) {
        self.late.get_or_insert_default().rejected(now);
    }

    /// Returns whether the clients are to be asked now what they reject; they count as asked.
    pub(in crate::client) fn asks_clients(&mut self, now: Instant) -> bool {
        let rests = self.outbound.is_at_rest();
        self.late.as_mut().is_some_and(|late| rests && late.asks(now))
    }

    /// Takes the clients' answer.
    pub(in crate::client) fn clients_reject(&mut self, rejections: &[Rejection]) {
        if let Some(mut late) = self.late.take() {
            late.answer(rejections, |name, version| self.holds(name) == Some(version));
            self.late = Some(late);
        }
    }

    /// Returns what the server is to be told now; it counts as told.
    pub(in crate::client) fn take_rejections(&mut self, now: Instant) -> Vec<Rejection> {
        let Some(mut late) = self.late.take_if(|_| self.outbound.is_at_rest()) else {
            return Vec::new();
        };
        let rejections = late.take(now, |name, version| self.holds(name) == Some(version));
        self.late = Some(late);
        rejections
    }

    /// Whether the server is to be told anything, now or later.
    pub(in crate::client) fn has_unsaid(&self) -> bool {
        self.wanted() && self.late.as_ref().is_some_and(|late| late.is_ready())
    }
}
