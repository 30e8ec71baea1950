// SPDX-License-Identifier: Apache-2.0
//! One session of a view.
//!
//! Owns who it is and how it is reached. Does not know what it leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::bell::Bell;
use crate::claims::Claims;
use classes::Node;

/// One session.
#[derive(Default)]
pub(crate) struct Seated {
    pub(crate) bell: Bell,
    /// The owner of what the session reads here; `None`: what has no owner.
    owner: Option<Arc<str>>,
    /// Those of its connection.
    claims: Arc<Claims>,
    /// Who its client says it is, if that is known.
    node: Option<Arc<Node>>,
    /// Whether it reads another view, and waits here for a reason to read this one.
    watches: AtomicBool,
    /// Whether its session has seats at the views of other servers as well.
    compares: AtomicBool,
    /// Locked while the session's leases change; locked before everything else, and never two at once.
    pub(crate) review: Mutex<Review>,
}

impl Seated {
    pub(crate) fn new(owner: Option<Arc<str>>, claims: Arc<Claims>, node: Option<Arc<Node>>) -> Self {
        Self {
            owner,
            claims,
            node,
            ..Self::default()
        }
    }

    pub(crate) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// What its connection takes of the limits.
    pub(crate) const fn claims(&self) -> &Arc<Claims> {
        &self.claims
    }

    /// Who its client says it is.
    pub(crate) const fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Whether its session reads another view.
    pub(crate) fn watches(&self) -> bool {
        self.watches.load(Ordering::Relaxed)
    }

    /// Returns whether that is a change.
    pub(crate) fn watch(&self, watches: bool) -> bool {
        self.watches.swap(watches, Ordering::Relaxed) != watches
    }

    /// Whether its session must be told of each change of the state of this view's server.
    pub(crate) fn compares(&self) -> bool {
        self.compares.load(Ordering::Relaxed)
    }

    pub(crate) fn compare(&self, compares: bool) {
        self.compares.store(compares, Ordering::Relaxed);
    }
}

/// Whether a session has changed what it leases.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// Whether it has changed anything since it was last looked at.
    pub(crate) changed: bool,
    /// Whether it is in the list of sessions to look at.
    pub(crate) noted: bool,
}
