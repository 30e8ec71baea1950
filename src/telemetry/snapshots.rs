// SPDX-License-Identifier: Apache-2.0
//! The counters of snapshots.
//!
//! Owns their names and what they mean. Decides nothing.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::labels::WordCounters;

/// The counters of snapshots.
#[derive(Debug)]
pub struct SnapshotMetrics {
    /// Snapshots that were written.
    pub written: Counter,
    /// Snapshots that could not be written.
    pub not_written: Counter,
    /// Snapshots that were loaded into a view.
    pub loaded: Counter,
    /// Snapshots that are damaged or cannot be read.
    pub not_loaded: Counter,
    /// Snapshots that came from other relays.
    pub received: Counter,
    /// Relays of which none came, although they were asked.
    pub not_received: Counter,
}

impl SnapshotMetrics {
    pub(super) fn register(own: &mut Registry) -> Self {
        let words = "written not_written loaded not_loaded received not_received";
        let snapshots = WordCounters::new("result", words);
        let snapshots = snapshots.register(own, "snapshots", "Snapshots written and loaded, and those that failed");
        Self {
            written: snapshots.of("written"),
            not_written: snapshots.of("not_written"),
            loaded: snapshots.of("loaded"),
            not_loaded: snapshots.of("not_loaded"),
            received: snapshots.of("received"),
            not_received: snapshots.of("not_received"),
        }
    }
}
