// SPDX-License-Identifier: Apache-2.0
//! What the client was sent under one name.
//!
//! Owns the kinds of rows. Does not know where they are kept, and what is current.

use std::sync::Arc;

use xds::{Brief, Holds, Known, Resource, Version};

/// One row of the ledger: what the client may hold under a name, and whether it was told so.
#[derive(Clone, Debug, Default)]
pub(in crate::server) enum Row {
    /// It holds nothing, and does not wait for anything. If it asks for the name, it was told so; or what it asks for was sent under
    /// another name (C-20).
    #[default]
    Nothing,
    /// It holds nothing, and waits for an answer.
    Asked,
    /// It may hold anything.
    Perhaps,
    /// It holds content with this version, as it says itself (C-12).
    Brought(Brief),
    /// It was sent this, and waits for an answer all the same.
    Again(Arc<Resource>),
    /// It holds this.
    Sent(Arc<Resource>),
}

impl From<&Known> for Row {
    fn from(known: &Known) -> Self {
        match known {
            Known::Present(resource) => Self::Sent(resource.clone()),
            Known::Held(version) => Self::Brought(*version),
            Known::Absent(_) => Self::Nothing,
        }
    }
}

impl Row {
    /// Whether the client may hold something.
    pub(in crate::server) const fn perhaps(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Asked)
    }

    /// Whether the client holds the content with this version.
    pub(in crate::server) fn is(&self, version: Version) -> bool {
        match self {
            Self::Brought(held) => *held == Brief::from(version),
            Self::Sent(held) => held.version() == version,
            Self::Nothing | Self::Asked | Self::Perhaps | Self::Again(_) => false,
        }
    }

    /// Returns the same as a row of a client that must be told again.
    pub(in crate::server) fn again(self) -> Self {
        match self {
            Self::Sent(resource) => Self::Again(resource),
            Self::Nothing => Self::Asked,
            Self::Brought(_) => Self::Perhaps,
            Self::Asked | Self::Perhaps | Self::Again(_) => self,
        }
    }

    /// Whether the client waits for an answer.
    pub(in crate::server) const fn waits(&self) -> bool {
        matches!(self, Self::Asked | Self::Again(_))
    }

    /// Returns what was sent, perhaps without its bytes.
    pub(in crate::server) const fn sent(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Sent(resource) | Self::Again(resource) => Some(resource),
            Self::Nothing | Self::Asked | Self::Perhaps | Self::Brought(_) => None,
        }
    }

    /// Returns what the client holds. `brings`: it may hold anything of which it was sent nothing yet.
    pub(in crate::server) fn holds(&self, brings: bool) -> Holds {
        match self {
            Self::Sent(resource) | Self::Again(resource) if !resource.is_hollow() => {
                // What is counted is who has not looked at its replacement.
                Holds::Own(Arc::new(resource.twin()))
            }
            Self::Brought(version) if *version != Brief::ANY => Holds::Version(*version),
            Self::Nothing | Self::Asked if !brings => Holds::Nothing,
            Self::Nothing | Self::Asked | Self::Perhaps | Self::Brought(_) | Self::Again(_) | Self::Sent(_) => {
                Holds::Unknown
            }
        }
    }

    /// Returns what was sent, if it can be sent again.
    pub(in crate::server) fn whole(&self) -> Option<&Arc<Resource>> {
        self.sent().filter(|resource| !resource.is_hollow())
    }
}
