// SPDX-License-Identifier: Apache-2.0
//! Types that the server cannot be asked for: delta-only types, if it does not speak delta; types without a REST path, if it is
//! polled.
//!
//! Owns that the server is not asked for them, and that names that wait for it get an error. Does not know how the dialect is
//! chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::feed::Feed;
use xds::{Changes, Dialect, Name, ResourceError, TypeUrl};

/// What the relay knows of the types that the server cannot be asked for.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    polled: bool,
    /// The error that clients get, if it is known that there are such types.
    error: Option<Arc<ResourceError>>,
    /// Those of them that somebody wants.
    types: BTreeSet<TypeUrl>,
    /// Whether `types` has changed since it was last taken.
    changed: bool,
}

impl Unserved {
    pub(super) const fn is_polled(&self) -> bool {
        self.polled
    }

    /// H-03: the server is polled.
    pub(super) fn poll(&mut self) {
        self.polled = true;
        self.error = Some(Arc::new(ResourceError::no_path()));
    }

    /// The server does not speak delta; `why` says how the relay knows.
    pub(super) fn lack_delta(&mut self, why: &str) {
        let error = Some(Arc::new(ResourceError::no_delta(why)));
        self.changed |= self.error != error && !self.types.is_empty();
        self.error = error;
    }

    /// The server answers in delta, or is asked in delta again.
    pub(super) fn clear(&mut self) {
        self.error = None;
        self.changed |= !std::mem::take(&mut self.types).is_empty();
    }

    /// Whether a type can be requested in this dialect.
    pub(super) fn asks(&self, dialect: Dialect, type_url: &TypeUrl) -> bool {
        let no_path = self.polled && type_url.path().is_none();
        !no_path && (dialect == Dialect::Delta || !type_url.traits().delta_only)
    }

    /// Gives the waiting names of a type an error, if the server is known not to serve the type; `only`: no other name than this
    /// one waits.
    pub(super) fn tell(&mut self, feed: &mut Feed, only: Option<&Name>) -> Option<Changes> {
        let type_url = feed.type_url();
        let concerned = match self.polled {
            true => type_url.path().is_none(),
            false => type_url.traits().delta_only,
        };
        let error = self.error.as_ref().filter(|_| concerned)?;
        if !feed.wanted() {
            self.changed |= self.types.remove(type_url);
            return None;
        }
        self.changed |= self.types.insert(type_url.clone());
        feed.unserved(error, only)
    }

    /// Takes those of these types that are wanted, each with the reason; `None` if they have not changed since the last time.
    pub(super) fn take(&mut self) -> Option<BTreeMap<TypeUrl, Arc<str>>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let why = self.error.as_ref().map(|error| error.message.clone());
        let types = self.types.iter().cloned();
        Some(types.zip(why.into_iter().cycle()).collect())
    }
}
