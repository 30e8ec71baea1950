//! The effects of time on one type.
//!
//! Owns when work is due. Knows nothing of the content of responses.

use std::time::{Duration, Instant};

use super::Feed;
use crate::client::acks::Ack;
use xds::{Changes, Dialect, Reason};

impl Feed {
    /// Takes the answer to the last response. K-06: the relay acknowledges on its own and waits for no client.
    pub(in crate::client) fn acknowledge(&mut self, ack: Ack, dialect: Dialect, now: Instant) {
        if dialect == Dialect::Delta && ack.nonce.is_empty() {
            self.unanswerable(now);
        }
        self.outbound.acks_mut().received(ack, dialect, now);
    }

    /// All responses are acknowledged, or the present one cannot be.
    pub(super) fn unanswerable(&mut self, now: Instant) {
        self.completeness.answered(now);
        self.collections.answered(now);
    }

    /// The type in this place answers. Returns whether that changes when the wildcard is complete: it does if the server was asked for it
    /// later, and has begun to answer here.
    pub(in crate::client) const fn overtaken(&mut self, by: u32) -> bool {
        self.outbound.place() < by && self.completeness.overtaken()
    }

    pub(in crate::client) fn bytes(&mut self, at: Instant) {
        self.completeness.bytes(at);
        self.collections.bytes(at);
    }

    pub(in crate::client) fn deadline(&self) -> Option<Instant> {
        let patience = self.exchange.patience();
        let all = [
            self.kept.deadline(),
            self.names.deadline(),
            self.exchange.deadline(),
            self.completeness.deadline(patience.wildcard()),
            self.collections.deadline(patience.unlearned()),
            self.outbound.deadline(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns what has changed, and the pause that the server has shown within its answer.
    pub(in crate::client) fn timeout(&mut self, now: Instant) -> (Option<Changes>, Option<Duration>) {
        self.exchange.pass(now);
        let mut updates = Vec::new();
        while let Some(name) = self.kept.expired(now) {
            self.gone(&name, Reason::Expired, &mut updates);
        }
        while let Some(name) = self.names.overdue(now) {
            self.overdue(name, &mut updates);
        }
        let patience = self.exchange.patience();
        let settled = self.collections.timeout(patience.unlearned(), now);
        self.members_settled(settled, &mut updates);
        let settled = self.completeness.timeout(patience.wildcard(), now);
        let pause = settled.pause;
        let complete = self.settled(settled, &mut updates);
        // Only the end of a delta answer is a matter of time.
        self.conclude(Dialect::Delta);
        let changes = self.changes(updates, complete, None);
        self.exchange.settle();
        (changes, pause)
    }
}
