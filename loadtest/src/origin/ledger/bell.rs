// SPDX-License-Identifier: Apache-2.0
//! What the ledgers of a world share: who is told of new announcements and of deliveries, and how many of these are to come.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::{Notify, watch};

use super::trials::Trials;

/// The bell that the ledgers of a world share.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Counts announcements.
    pub(super) changes: watch::Sender<u64>,
    /// Rings when the last client that lacked some content got it.
    pub(crate) delivered: Notify,
    /// The number of deliveries still to come: of each content to each client that lacks it.
    pub(super) owed: AtomicI64,
    pub(crate) trials: Trials,
}

impl Bell {
    /// Returns a receiver that notices new announcements.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How many deliveries are to come.
    pub(crate) fn owed(&self) -> u64 {
        u64::try_from(self.owed.load(Ordering::Relaxed)).unwrap_or_default()
    }
}
