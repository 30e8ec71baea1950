// SPDX-License-Identifier: Apache-2.0
//! What one connection takes of the limits that all connections share.
//!
//! Owns the counts and the rule of fair shares: nobody takes more of a limit than is left for all others. So whoever comes late finds
//! as much as each of those who took all that they could. Does not know what is counted.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The claims of one connection.
#[derive(Debug, Default)]
pub struct Claims {
    number: u64,
    names: AtomicUsize,
}

impl Claims {
    pub(super) const fn new(number: u64) -> Self {
        Self {
            number,
            names: AtomicUsize::new(0),
        }
    }

    /// Its number among all connections.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns how many leases this connection was the first to request, across all views.
    #[must_use]
    pub fn names(&self) -> usize {
        self.names.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, names: usize) {
        self.names.fetch_add(names, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, names: usize) {
        self.names.fetch_sub(names, Ordering::Relaxed);
    }
}

/// Whether a connection that has `own` of what is limited may take one more while `left` are left.
pub(super) const fn is_fair(own: usize, left: usize) -> bool {
    own < left
}
