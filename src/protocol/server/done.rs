//! Whether a client stream has said all that there is to say, so that an acknowledgement releases nothing.
//!
//! Owns the short way for such an acknowledgement. Refuses to know what else a request may say.

use super::flight::{Receipt, ReceiptKind};
use super::stream::Server;
use super::subscription::Subscription;
use crate::xds::{Sight, TypeSight};

impl Server {
    /// A delta request that says nothing but that a response was accepted, read without decoding it. `None` if it is about anything
    /// but a response that waits for it: then nothing has happened.
    pub fn handle_acknowledgement(&mut self, type_url: &[u8], nonce: &[u8]) -> Option<Receipt> {
        let nonces = self.nonces;
        let subscription = self
            .types
            .iter_mut()
            .find(|one| one.type_url.url().as_bytes() == type_url)?;
        let number = nonces.number(nonce)?;
        let flight = subscription.flights.settle(number)?;
        let since = subscription.accept(&flight);
        Some(Receipt {
            type_url: subscription.type_url.clone(),
            kind: ReceiptKind::Ack { since },
        })
    }

    /// Whether it had nothing more to say when it was last asked, and has nothing to say either when what is on its way is
    /// acknowledged: until there is other input it need not be asked again.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn note_done(&mut self, sight: &Sight) {
        let waits = self.additions.waits() || self.removals.waits() || self.end.is_some();
        let sated = |one: &Subscription| one.sated(one.type_sight(sight));
        self.done = !waits && self.types.iter().all(sated);
    }
}

impl Subscription {
    /// Whether there is nothing to say until something changes or the client asks.
    fn sated(&self, slot: TypeSight<'_>) -> bool {
        // What was refused may be said after all once something else is acknowledged.
        let waits = self.first || self.cold.waits() || self.collections.restless();
        !waits && !self.is_under_way() && self.up_to_date(slot) && !self.frees(slot)
    }
}
