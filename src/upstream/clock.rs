// SPDX-License-Identifier: Apache-2.0
//! The only place where this shell reads the clock and draws random numbers.
//!
//! Knows nothing of what they are used for.

use std::time::{Duration, SystemTime};

pub(super) use crate::clock::now;

/// Returns the time since 1970, in which tokens state their expiry.
#[expect(clippy::disallowed_methods, reason = "the shell's one place to read the clock")]
pub(super) fn unix() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns a random number, evenly spread over 0 to 1.
pub(super) fn dice() -> f64 {
    rand::random()
}
