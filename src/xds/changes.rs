// SPDX-License-Identifier: Apache-2.0
//! What one upstream message, or the passing of time, changes in a view.
//!
//! Owns the values that the upstream machine hands to the cache. Knows nothing of either of them.

use std::sync::Arc;

use super::{Expiry, Name, Reason, Resource, ResourceError, TypeUrl};

/// Changes of one type, applied together or not at all (K-20).
#[derive(Clone, Debug)]
pub struct Changes {
    /// The type.
    pub type_url: TypeUrl,
    /// Whether they are about what a wildcard covers; if not, they are about names that were requested.
    pub wildcard: bool,
    /// What changed, in order.
    pub updates: Vec<Update>,
    /// The new completeness of the wildcard, if it changed.
    pub complete: Option<bool>,
    /// Whether the server has answered for this type on its present stream; `None` leaves that as it was.
    pub answered: Option<bool>,
    /// What they are a part of.
    pub phase: Phase,
}

/// What changes are a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The first whole state of a stream.
    First,
    /// The same; the server does not know what the relay has, and says everything.
    Anew,
    /// The first whole state of a stream, which ends with them.
    Last,
    /// What follows it, or no word of a control plane.
    #[default]
    Steady,
    /// The word of another relay, which has held already what was to be held.
    Relayed,
}

/// One change.
#[derive(Clone, Debug)]
pub enum Update {
    /// The resource exists with this content, or was confirmed.
    Put(Arc<Resource>, Option<Expiry>),
    /// The name does not exist.
    Absent(Name, Reason),
    /// Nothing is known of the name any more, because nobody wants it.
    Forget(Name),
    /// Every member of this collection is known (C-22).
    Whole(Name),
    /// The name has this error, or no error any more (E-09).
    Error(Name, Option<Arc<ResourceError>>),
}

impl Changes {
    /// Creates changes of one half of a type that are no part of a first state, and say nothing of the type as a whole.
    #[must_use]
    pub fn of((type_url, wildcard): (TypeUrl, bool), updates: Vec<Update>) -> Self {
        Self {
            type_url,
            wildcard,
            updates,
            complete: None,
            answered: None,
            phase: Phase::Steady,
        }
    }
}

impl Phase {
    /// Whether they are a part of the first whole state of a stream.
    #[must_use]
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Anew | Self::Last)
    }
}

impl Update {
    /// The name that it is about.
    pub fn name(&self) -> &Name {
        match self {
            Self::Put(resource, _) => resource.name(),
            Self::Absent(name, _) | Self::Forget(name) | Self::Whole(name) | Self::Error(name, _) => name,
        }
    }
}
