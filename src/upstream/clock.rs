//! The edge at which this shell reads the clock and rolls dice.
//!
//! Owns both. Refuses to know what they are for.

use std::time::{Duration, SystemTime};

pub(super) use crate::clock::now;

/// The time since 1970, by which tokens end.
#[expect(clippy::disallowed_methods, reason = "the shell's one place to read the clock")]
pub(super) fn unix() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// A number evenly spread over 0 to 1.
pub(super) fn dice() -> f64 {
    rand::random()
}
