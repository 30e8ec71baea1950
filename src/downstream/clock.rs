//! The time, as this shell reads it for its machines.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "the shell around the client streams reads the clock for them"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
