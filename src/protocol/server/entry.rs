//! What a client holds under one name that it asked for.
//!
//! Owns its three forms. Does not know where they are kept.

use std::sync::Arc;

use super::sorted::Named;
use xds::{Held, Name, Resource, Version};

/// What a client holds under one name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    /// Content with this very name.
    Own(&'a Arc<Resource>),
    /// The same, for a name that is wanted only as a member of a collection.
    Member(&'a Arc<Resource>),
    /// Anything else.
    Other(&'a Other),
}

impl<'a> Entry<'a> {
    pub(super) fn name(self) -> &'a Name {
        match self {
            Self::Own(resource) | Self::Member(resource) => resource.name(),
            Self::Other(other) => &other.name,
        }
    }

    /// Returns what is held.
    pub(super) fn held(self) -> Held {
        match self {
            Self::Own(resource) | Self::Member(resource) => Held::Content(resource.clone()),
            Self::Other(other) => other.held.clone(),
        }
    }

    /// Returns whether the name is wanted only as a member of a collection.
    pub(super) const fn is_member(self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Member(_) => true,
            Self::Other(other) => other.member,
        }
    }

    /// See [`Held::is`].
    pub(super) fn is(self, version: Version) -> bool {
        match self {
            Self::Own(resource) | Self::Member(resource) => resource.version() == version,
            Self::Other(other) => other.held.is(version),
        }
    }

    /// See [`Held::perhaps`].
    pub(super) const fn perhaps(self) -> bool {
        match self {
            Self::Own(_) | Self::Member(_) => true,
            Self::Other(other) => other.held.perhaps(),
        }
    }

    /// See [`Held::content`].
    pub(super) const fn content(self) -> Option<&'a Arc<Resource>> {
        match self {
            Self::Own(resource) | Self::Member(resource) => Some(resource),
            Self::Other(other) => other.held.content(),
        }
    }
}

/// A name whose content is missing or has another name.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) name: Name,
    pub(super) held: Held,
    /// Whether it is wanted only as a member of a collection.
    pub(super) member: bool,
}

impl Named for Other {
    const STAYS: bool = false;

    fn name(&self) -> &Name {
        &self.name
    }
}
