// SPDX-License-Identifier: Apache-2.0
//! The views of other servers that a view has to do with.
//!
//! Owns which of them sessions read, and who is woken by what happens here. Does not choose a server.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::View;
use crate::onlookers::Onlookers;
use crate::routes::WakeOnFailure;

/// What one view knows of the others.
pub struct Neighbours {
    wake_on_failure: Mutex<WakeOnFailure>,
    /// The view of another server that sessions of this one read, as far as the last one that moved there has said.
    elsewhere: Mutex<Weak<View>>,
    /// Those whose writers wait for what this view has, or for who reads it.
    onlookers: Onlookers,
}

impl Neighbours {
    pub(super) fn new(wake_on_failure: WakeOnFailure) -> Self {
        Self {
            wake_on_failure: Mutex::new(wake_on_failure),
            elsewhere: Mutex::default(),
            onlookers: Onlookers::default(),
        }
    }

    /// Which sessions are woken when the server fails.
    pub(super) fn wake_on_failure(&self) -> WakeOnFailure {
        *self.wake_on_failure.lock()
    }

    pub(super) fn set_wake_on_failure(&self, wake_on_failure: WakeOnFailure) {
        *self.wake_on_failure.lock() = wake_on_failure;
    }

    /// A session of this view reads that one, of another server.
    pub(super) fn note_elsewhere(&self, other: &Arc<View>) {
        *self.elsewhere.lock() = Arc::downgrade(other);
    }

    /// Returns that view.
    #[must_use]
    pub fn elsewhere(&self) -> Option<Arc<View>> {
        self.elsewhere.lock().upgrade()
    }

    /// The writer of that view is woken at the next change of this one.
    pub(crate) fn note_onlooker(&self, other: &Arc<View>) {
        self.onlookers.add(other);
    }

    /// Something has changed here.
    pub(super) fn wake_onlookers(&self) {
        self.onlookers.wake();
    }
}
