//! What clients reject of one type (E-24).
//!
//! Owns that only what is held is said. Does not know when the server may be told.

use std::time::Instant;

use super::Feed;
use xds::{Name, Rejection, Version};

impl Feed {
    /// Takes what the clients reject.
    pub(in crate::client) fn clients_reject(&mut self, rejections: &[Rejection]) {
        let kept = &self.kept;
        let is_current = |name: &Name, version: Version| kept.version(name) == Some(version);
        self.outbound.clients_reject(rejections, is_current);
    }

    /// Returns what the server is to be told now; it counts as told.
    pub(in crate::client) fn take_rejections(&mut self, now: Instant) -> Vec<Rejection> {
        let kept = &self.kept;
        let is_current = |name: &Name, version: Version| kept.version(name) == Some(version);
        self.outbound.take_rejections(now, is_current)
    }

    /// Whether the server is to be told anything, now or later.
    pub(in crate::client) fn has_unsaid(&self) -> bool {
        self.wanted() && self.outbound.has_unsaid()
    }
}
