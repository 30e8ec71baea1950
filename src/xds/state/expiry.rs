// SPDX-License-Identifier: Apache-2.0
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
