//! The effects of time on one type.
//!
//! Owns when work is due. Knows nothing of the content of responses.

use std::time::{Duration, Instant};

use super::Feed;
use xds::{Changes, Dialect, Reason};

impl Feed {
    /// E-27: takes the last question, if the server has passed over it for as long as it may take for a name.
    pub(in crate::client) fn take_overdue_question(&mut self, now: Instant) -> Option<Instant> {
        self.silence.take_overdue(self.patience.does_not_exist, now)
    }

    /// Whether the server has said anything about the type since then, on this stream.
    pub(in crate::client) fn has_heard_since(&self, then: Instant) -> bool {
        self.silence.has_heard_since(then)
    }

    /// All responses are acknowledged, or the present one cannot be.
    pub(in crate::client) fn unanswerable(&mut self, now: Instant) {
        self.completeness.answered(now);
        self.collections.answered(now);
    }

    /// The type in this place answers. Returns whether that changes when the wildcard is complete: it does if the server was asked for it
    /// later, and has begun to answer here.
    pub(in crate::client) const fn overtaken(&mut self, by: u32) -> bool {
        self.place < by && self.completeness.overtaken()
    }

    /// Takes the pause that the server has shown since the last call.
    pub(in crate::client) const fn take_pause(&mut self) -> Option<Duration> {
        self.pause.take()
    }

    pub(in crate::client) fn bytes(&mut self, at: Instant) {
        self.completeness.bytes(at);
        self.collections.bytes(at);
    }

    pub(in crate::client) fn deadline(&self) -> Option<Instant> {
        let complete = self.completeness.deadline(self.patience.wildcard());
        let all = [
            self.kept.deadline(),
            self.names.deadline(),
            self.silence.deadline(self.patience.does_not_exist),
            complete,
            self.collections.deadline(self.patience.unlearned()),
            self.outbound.acks.deadline(),
            self.late
                .as_ref()
                .filter(|_| self.outbound.is_at_rest())
                .and_then(|late| late.deadline()),
        ];
        all.into_iter().flatten().min()
    }

    pub(in crate::client) fn timeout(&mut self, now: Instant) -> Option<Changes> {
        self.pass(now);
        let mut updates = Vec::new();
        while let Some(name) = self.kept.expired(now) {
            self.gone(&name, Reason::Expired, &mut updates);
        }
        while let Some(name) = self.names.overdue(now) {
            self.overdue(name, &mut updates);
        }
        let settled = self.collections.timeout(self.patience.unlearned(), now);
        self.members_settled(settled, &mut updates);
        let settled = self.completeness.timeout(self.patience.wildcard(), now);
        let complete = self.settled(settled, &mut updates);
        // Only the end of a delta answer is a matter of time.
        self.conclude(Dialect::Delta);
        let changes = self.changes(updates, complete, None);
        self.settle();
        changes
    }
}
