// SPDX-License-Identifier: Apache-2.0
//! A name of which the client has rejected something.
//!
//! Owns what others may know of it. Changes nothing.

use std::sync::Arc;
use std::time::Instant;

use super::Dispute;
use xds::{Holds, Objection, Refusal, Stance, Version};

impl Dispute {
    /// What the client holds.
    pub(crate) const fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Whether a full state can leave it out, or list it as it was.
    pub(crate) const fn may_be_listed(&self) -> bool {
        !matches!(self.holds, Holds::Unknown | Holds::Version(_))
    }

    /// The version that was rejected last.
    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    /// Since when that is rejected.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// Whether it is held back or still to be tried.
    pub(crate) const fn is_open(&self) -> bool {
        self.group.is_some() || self.refused.is_some()
    }

    /// Whether older content is wanted: it is held back, and the client holds nothing of it.
    pub(super) const fn lacks(&self) -> bool {
        self.refused.is_some() && matches!(self.holds, Holds::Nothing)
    }

    /// Whether this is the older content that was sent in the place of what is held back.
    pub(super) fn was_offered(&self, version: Version) -> bool {
        self.refused.is_some() && self.older.last().is_some_and(|one| one.version() == version)
    }

    /// Whether it is held back, and had no second try.
    pub(super) const fn may_be_tried(&self) -> bool {
        self.refused.is_some() && !self.again
    }

    /// Returns where the client stands, as the view is told.
    pub(super) fn stance(&self) -> Stance {
        let refusal = |objection: &Arc<Objection>| Refusal {
            version: Some(self.version),
            objection: objection.clone(),
            since: self.since,
        };
        Stance {
            rejects: self.refused.as_ref().map(refusal),
            holds: self.holds.clone(),
        }
    }
}
