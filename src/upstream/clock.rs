//! The edge at which this shell reads the clock and rolls dice.
//!
//! Owns both. Refuses to know what they are for.

use std::time::Instant;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "the shell's one place to read the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// A number evenly spread over 0 to 1.
pub(super) fn dice() -> f64 {
    rand::random()
}
