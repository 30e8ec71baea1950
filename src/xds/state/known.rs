// SPDX-License-Identifier: Apache-2.0
//! What is known of one name.
//!
//! Owns the values. Does not know how they were learned.

use std::sync::Arc;

use crate::{Brief, Resource, Version};

/// What is known of a name; a name that is in no map is Unknown. Never two-valued (K-15).
#[derive(Clone, Debug)]
pub enum Known {
    /// It does not exist.
    Absent(Reason),
    /// It exists, with this content.
    Present(Arc<Resource>),
    /// A client says that it holds this version of it (C-12). Only in a table of what a client holds.
    Held(Brief),
}

impl Known {
    /// Returns the resource, if it exists.
    pub const fn resource(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Present(resource) => Some(resource),
            Self::Absent(_) | Self::Held(_) => None,
        }
    }

    /// Whether it is the content with this version.
    pub fn is(&self, version: Version) -> bool {
        match self {
            Self::Present(resource) => resource.version() == version,
            Self::Held(held) => *held == Brief::from(version),
            Self::Absent(_) => false,
        }
    }
}

impl PartialEq for Known {
    /// Equal content: bodies are compared by their hash alone.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Present(a), Self::Present(b)) => Arc::ptr_eq(a, b) || a.version() == b.version(),
            (Self::Present(found), known) | (known, Self::Present(found)) => known.is(found.version()),
            (Self::Absent(a), Self::Absent(b)) => a == b,
            (Self::Held(a), Self::Held(b)) => a == b,
            (Self::Absent(_), Self::Held(_)) | (Self::Held(_), Self::Absent(_)) => false,
        }
    }
}

/// How the relay knows that a name does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The server said so, or left it out of a full state.
    Said,
    /// The server did not answer for it in time. K-16: no reason to take it from a client that holds it.
    TimedOut,
    /// Its time to live ran out (E-11).
    Expired,
}
