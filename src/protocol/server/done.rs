//! Whether a client stream has nothing more to send, so that an acknowledgement needs no further work.
//!
//! Owns the short way for such an acknowledgement. Does not know what else a request may contain.

use super::flight::{Receipt, ReceiptKind};
use super::name_faults::NameFaults;
use super::stream::Server;
use super::subscription::Subscription;
use xds::{Sight, TypeSight};

impl Server {
    /// Takes a delta request that only acknowledges a response, and that was read without decoding it. Returns `None`, without
    /// any effect, if no such response is on its way.
    pub fn handle_acknowledgement(&mut self, type_url: &[u8], nonce: &[u8]) -> Option<Receipt> {
        let nonces = self.nonces;
        let subscription = self
            .types
            .iter_mut()
            .find(|one| one.type_url.url().as_bytes() == type_url)?;
        let number = nonces.number(nonce)?;
        let flight = subscription.flights.settle(number)?;
        let changed = subscription.accept(&flight);
        Some(Receipt {
            type_url: subscription.type_url.clone(),
            kind: ReceiptKind::Ack(changed),
            faults: NameFaults::default(),
        })
    }

    /// Returns whether the stream had nothing more to send when it was last polled, and will have nothing when the responses on
    /// their way are acknowledged. It then need not be polled before there is other input.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn note_done(&mut self, sight: &Sight) {
        let waits = self.additions.waits() || self.removals.waits() || self.is_ending();
        let sated = |one: &Subscription| one.sated(one.type_sight(sight));
        self.done = !waits && self.types.iter().all(sated);
    }
}

impl Subscription {
    /// Whether there is nothing to send until something changes or the client asks.
    fn sated(&self, slot: TypeSight<'_>) -> bool {
        // Rejected resources may be sent again once another response is acknowledged.
        let waits = self.first || self.cold.waits() || self.collections.restless();
        !waits && !self.is_under_way() && self.is_compared(slot) && !self.frees(slot)
    }
}
