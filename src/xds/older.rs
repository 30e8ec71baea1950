// SPDX-License-Identifier: Apache-2.0
//! Older content that may be used although the control plane says another one, and what a client says of a content that it rejects.
//!
//! Owns the values. Does not decide who uses what.

use std::sync::Arc;
use std::time::Instant;

use super::{Brief, Name, Objection, Resource, TypeUrl, Version};

/// Older content that clients go on using, because they have rejected what came after it; or that clients have accepted.
#[derive(Clone, Debug)]
pub struct Older {
    /// Its type.
    pub type_url: TypeUrl,
    /// The content.
    pub content: Arc<Resource>,
    /// Since when clients go on using it; if none does, since when it is not current any more, or not used any more.
    pub since: Instant,
    /// The node ids of those that go on using it, as far as they are known, those included that went a moment ago.
    pub keepers: Vec<Arc<str>>,
    /// Whether what it names is kept for them.
    pub refers: bool,
}

/// What a client holds of a name of which it has rejected something and accepted nothing since.
#[derive(Clone, Debug)]
pub enum Holds {
    /// Nothing.
    Nothing,
    /// Nobody knows.
    Unknown,
    /// Content with this version, as it says itself.
    Version(Brief),
    /// What it had before.
    Own(Arc<Resource>),
    /// Older content that it was sent in the place of what it rejects.
    Older(Arc<Resource>),
}

/// Where a client stands with a name of which it has rejected something and accepted nothing since.
#[derive(Clone, Debug)]
pub struct Stance {
    /// What it rejects; `None`: other content is on its way to it, or it is still found out what it rejects.
    pub rejects: Option<Refusal>,
    /// What it holds.
    pub holds: Holds,
}

/// A content that a client has rejected.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Its version; `None`: the client is a relay, and says in words what its own clients reject.
    pub version: Option<Version>,
    /// Why.
    pub objection: Arc<Objection>,
    /// Since when.
    pub since: Instant,
}

impl Older {
    /// The name of the content.
    pub fn name(&self) -> &Name {
        self.content.name()
    }
}

impl Holds {
    /// Returns the content, if it is known.
    pub const fn content(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Own(content) | Self::Older(content) => Some(content),
            Self::Nothing | Self::Unknown | Self::Version(_) => None,
        }
    }

    /// Whether it is older content that the client was sent.
    pub const fn is_older(&self) -> bool {
        matches!(self, Self::Older(_))
    }
}
