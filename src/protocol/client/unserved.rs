// SPDX-License-Identifier: Apache-2.0
//! Types that the server cannot be asked for: delta-only types, if it does not speak delta; types without a REST path, if it is
//! polled.
//!
//! Owns that the server is not asked for them, and that names that wait for it get an error. Does not know how the dialect is
//! chosen.

use std::sync::Arc;

use super::feed::Feed;
use xds::{Changes, Dialect, Name, ResourceError, TypeUrl};

/// Which types the server cannot be asked for, and the error that clients get.
#[derive(Debug, Default)]
pub(super) enum Unserved {
    /// None, as far as is known.
    #[default]
    Nothing,
    /// H-03: the server is polled.
    NoPath(Arc<ResourceError>),
    /// The server does not speak delta.
    NoDelta(Arc<ResourceError>),
}

impl Unserved {
    pub(super) const fn is_polled(&self) -> bool {
        matches!(self, Self::NoPath(_))
    }

    /// The server is polled.
    pub(super) fn of_polls() -> Self {
        Self::NoPath(Arc::new(ResourceError::no_path()))
    }

    /// The server does not speak delta; `why` says how the relay knows.
    pub(super) fn without_delta(why: &str) -> Self {
        Self::NoDelta(Arc::new(ResourceError::no_delta(why)))
    }

    /// Whether a type can be requested in this dialect.
    pub(super) fn asks(&self, dialect: Dialect, type_url: &TypeUrl) -> bool {
        let no_path = self.is_polled() && type_url.path().is_none();
        !no_path && (dialect == Dialect::Delta || !type_url.traits().delta_only)
    }

    /// Returns the error for this type, if the server is known not to serve it.
    pub(super) fn error(&self, type_url: &TypeUrl) -> Option<&Arc<ResourceError>> {
        match self {
            Self::NoPath(error) => type_url.path().is_none().then_some(error),
            Self::NoDelta(error) => type_url.traits().delta_only.then_some(error),
            Self::Nothing => None,
        }
    }

    /// Gives the waiting names of a type an error, if the server is known not to serve the type; `only`: no other name than this
    /// one waits.
    pub(super) fn tell(&self, feed: &mut Feed, only: Option<&Name>) -> Option<Changes> {
        let error = self.error(feed.type_url()).filter(|_| feed.wanted())?;
        feed.unserved(error, only)
    }
}
