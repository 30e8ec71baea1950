//! When a resource expires.
//!
//! Owns the instant, and which heartbeat set it. Knows nothing of clocks.

use std::time::Instant;

/// When a resource expires, and which heartbeat set that (K-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// When it expires.
    pub at: Instant,
    /// Counts confirmations, so that each is passed on once.
    pub beat: u32,
}

impl Expiry {
    /// Returns the earliest of several; it differs from before if any of them was confirmed.
    pub(crate) fn of_all(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.reduce(|one, other| Self {
            at: one.at.min(other.at),
            beat: one.beat.wrapping_add(other.beat),
        })
    }
}
