// SPDX-License-Identifier: Apache-2.0
//! What is measured: counters and times of clients, processor time and memory of processes, and the record of a run.
//!
//! Owns the figures and their units. Refuses to know what happens in a run: it is told.

pub(crate) mod counted;
mod hot;
pub(crate) mod loss;
pub(crate) mod process;
pub(crate) mod quantities;
pub(crate) mod record;
pub(crate) mod scrape;
pub(crate) mod sockets;
pub(crate) mod tally;

use std::time::Instant;

/// The present moment, for every room.
#[expect(clippy::disallowed_methods, reason = "a load test measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
