//! The end of a resource's life.
//!
//! Owns when it is, and which heartbeat said so. Refuses to know clocks.

use std::time::Instant;

/// How long a resource still lives, and which heartbeat said so (K-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// When it ends.
    pub at: Instant,
    /// Counts confirmations, so that each is passed on once.
    pub beat: u32,
}

impl Expiry {
    /// When the first of several ends; another one if any of them was confirmed.
    pub(in crate::xds) fn of_all(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.reduce(|one, other| Self {
            at: one.at.min(other.at),
            beat: one.beat.wrapping_add(other.beat),
        })
    }
}
