// SPDX-License-Identifier: Apache-2.0
//! What the control plane says of a name that waits.
//!
//! Owns the values. Does not know why it waits.

use std::sync::Arc;

use xds::{Name, Reason, Resource, Update};

/// What the control plane has said.
#[derive(Debug)]
pub(super) enum Word {
    /// That the resource is gone, and errors of the name that came since.
    Remove(Vec<Update>),
    /// That an endpoint assignment has no endpoints any more.
    Empty(Update),
    /// This content, which newly names these clusters.
    Put(Arc<Resource>, Vec<Name>),
    /// Nothing: an earlier run of the relay has held it, and the control plane has not spoken of it since.
    Unheard,
}

impl Word {
    /// Returns what was said.
    pub(super) fn into_updates(self) -> Vec<Update> {
        match self {
            Self::Remove(updates) => updates,
            Self::Empty(update) => vec![update],
            Self::Put(content, _) => vec![Update::Put(content, None)],
            Self::Unheard => Vec::new(),
        }
    }
}

impl From<Update> for Word {
    /// What is said of a name that goes.
    fn from(update: Update) -> Self {
        if matches!(update, Update::Put(..)) {
            Self::Empty(update)
        } else {
            Self::Remove(vec![update])
        }
    }
}

/// Whether the control plane says that a name does not exist, or that the wildcard or a collection does not have it any more.
/// K-16: that it does not answer takes nothing from anybody. The end of a time to live never waits.
pub(super) const fn removes(update: &Update) -> bool {
    matches!(update, Update::Absent(_, Reason::Said) | Update::Forget(_))
}
