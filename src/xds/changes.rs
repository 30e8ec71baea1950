//! What one upstream message, or the passing of time, changes in a view.
//!
//! Owns the words between the upstream machine and the cache. Refuses to know either of them.

use std::sync::Arc;

use super::{Expiry, Name, Reason, Resource, ResourceError, TypeUrl};

/// Changes of one type, applied together or not at all (K-20).
#[derive(Clone, Debug)]
pub struct Changes {
    /// The type.
    pub type_url: TypeUrl,
    /// Whether they are about what a wildcard covers, or about names that were asked for.
    pub wildcard: bool,
    /// What changed, in order.
    pub updates: Vec<Update>,
    /// If the completeness of a wildcard changed: to what.
    pub complete: Option<bool>,
    /// Whether the server has answered for this type on its present stream; `None` leaves that as it was.
    pub answered: Option<bool>,
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
    /// There is nothing like this one any more: of its name, for those whom it was meant for (TP2).
    Withdraw(Arc<Resource>),
    /// Every member of this collection is known (C-22).
    Whole(Name),
    /// What is wrong with the name, or that nothing is any more (E-09).
    Error(Name, Option<Arc<ResourceError>>),
}

impl Update {
    /// The name that it is about.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Self::Put(resource, _) | Self::Withdraw(resource) => resource.name(),
            Self::Absent(name, _) | Self::Forget(name) | Self::Whole(name) | Self::Error(name, _) => name,
        }
    }
}
