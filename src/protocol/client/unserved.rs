// SPDX-License-Identifier: Apache-2.0
//! Types that the server cannot be asked for: delta-only types, if it does not speak delta; types without a REST path, if it is
//! polled.
//!
//! Owns that the server is not asked for them, and that names that wait for it get an error. Does not know how the dialect is
//! chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::feed::Feed;
use xds::{Changes, Dialect, Name, ResourceError, TypeUrl};

/// What the relay knows of the types that the server cannot be asked for.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    polled: bool,
    /// The error that clients get, if it is known that there are such types.
    error: Option<Arc<ResourceError>>,
    /// Those of them that somebody wanted when they were last taken, each with the reason.
    taken: BTreeMap<TypeUrl, Arc<str>>,
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
        self.error = Some(Arc::new(ResourceError::no_delta(why)));
    }

    /// The server answers in delta, or is asked in delta again.
    pub(super) fn clear(&mut self) {
        self.error = None;
    }

    /// Whether a type can be requested in this dialect.
    pub(super) fn asks(&self, dialect: Dialect, type_url: &TypeUrl) -> bool {
        let no_path = self.polled && type_url.path().is_none();
        !no_path && (dialect == Dialect::Delta || !type_url.traits().delta_only)
    }

    /// Returns the error for this type, if the server is known not to serve it.
    fn error(&self, type_url: &TypeUrl) -> Option<&Arc<ResourceError>> {
        let concerned = match self.polled {
            true => type_url.path().is_none(),
            false => type_url.traits().delta_only,
        };
        self.error.as_ref().filter(|_| concerned)
    }

    /// Gives the waiting names of a type an error, if the server is known not to serve the type; `only`: no other name than this
    /// one waits.
    pub(super) fn tell(&self, feed: &mut Feed, only: Option<&Name>) -> Option<Changes> {
        let error = self.error(feed.type_url()).filter(|_| feed.wanted())?;
        feed.unserved(error, only)
    }

    /// Takes those of these types that are wanted, each with the reason; `None` if they have not changed since the last time.
    pub(super) fn take<'a>(
        &mut self,
        wanted: impl Iterator<Item = &'a TypeUrl>,
    ) -> Option<BTreeMap<TypeUrl, Arc<str>>> {
        let all = wanted.filter_map(|type_url| Some((type_url.clone(), self.error(type_url)?.message.clone())));
        let all: BTreeMap<_, _> = all.collect();
        if all == self.taken {
            return None;
        }
        self.taken.clone_from(&all);
        Some(all)
    }
}
