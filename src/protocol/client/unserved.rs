//! Types that the server cannot be asked for: delta-only types, if it does not speak delta; types without a REST path, if it is
//! polled.
//!
//! Owns that the server is not asked for them, and that names that wait for it get an error. Does not know how the dialect is
//! chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Client;
use xds::{Changes, Dialect, Name, ResourceError, TypeUrl};

/// What the relay knows of the types that the server cannot be asked for.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    why: Option<Why>,
    /// Those of them that somebody wants.
    types: BTreeSet<TypeUrl>,
    /// Whether `types` has changed since it was last taken.
    changed: bool,
}

/// Why the server cannot be asked for some types.
#[derive(Debug, PartialEq, Eq)]
struct Why {
    lack: Lack,
    /// The error that clients get.
    error: Arc<ResourceError>,
}

/// The missing part of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Delta,
    /// A REST path for the type (H-03).
    Path,
}

impl Lack {
    fn concerns(self, type_url: &TypeUrl) -> bool {
        match self {
            Self::Delta => type_url.traits().delta_only,
            Self::Path => type_url.path().is_none(),
        }
    }
}

impl Unserved {
    /// The server answers in delta, or is asked in delta again.
    pub(super) fn clear(&mut self) {
        self.why = None;
        self.changed |= !std::mem::take(&mut self.types).is_empty();
    }

    fn why(&self, type_url: &TypeUrl) -> Option<&Why> {
        self.why.as_ref().filter(|why| why.lack.concerns(type_url))
    }
}

impl Client {
    /// The server does not speak delta; `why` says how the relay knows. Every name of a delta-only type that waits gets an error,
    /// also a later one, until the server answers in delta or is asked in delta again.
    pub fn handle_no_delta(&mut self, why: &str) -> Vec<Changes> {
        let why = Some(Why {
            lack: Lack::Delta,
            error: Arc::new(ResourceError::no_delta(why)),
        });
        self.unserved.changed |= self.unserved.why != why && !self.unserved.types.is_empty();
        self.unserved.why = why;
        let types: Vec<TypeUrl> = self.feeds.keys().cloned().collect();
        types
            .iter()
            .filter_map(|type_url| self.tell_unserved(type_url, None))
            .collect()
    }

    /// The server is polled. To be called before anything is wanted. Names of a type that cannot be polled get an error.
    pub fn handle_polled(&mut self) {
        debug_assert!(self.feeds.is_empty(), "names that wait already would need the error");
        self.unserved.why = Some(Why {
            lack: Lack::Path,
            error: Arc::new(ResourceError::no_path()),
        });
    }

    /// Takes the wanted types that the server cannot be asked for, each with the reason; `None` if they have not changed since
    /// the last time.
    pub fn take_unserved(&mut self) -> Option<BTreeMap<TypeUrl, Arc<str>>> {
        if !std::mem::take(&mut self.unserved.changed) {
            return None;
        }
        let why = self.unserved.why.as_ref().map(|why| why.error.message.clone());
        let types = self.unserved.types.iter().cloned();
        Some(types.zip(why.into_iter().cycle()).collect())
    }

    /// Returns whether anything is wanted that can be requested in this dialect.
    #[must_use]
    pub fn wanted_in(&self, dialect: Dialect) -> bool {
        let mut asked = self
            .feeds
            .iter()
            .filter(|(type_url, _)| self.asks_in(dialect, type_url));
        asked.any(|(_, feed)| feed.wanted())
    }

    /// Returns whether the type can be requested in the present dialect.
    pub(super) fn asks(&self, type_url: &TypeUrl) -> bool {
        self.asks_in(self.dialect, type_url)
    }

    /// Whether the server is polled.
    pub(super) fn is_polled(&self) -> bool {
        self.unserved.why.as_ref().is_some_and(|why| why.lack == Lack::Path)
    }

    fn asks_in(&self, dialect: Dialect, type_url: &TypeUrl) -> bool {
        let no_path = self.is_polled() && Lack::Path.concerns(type_url);
        !no_path && (dialect == Dialect::Delta || !type_url.traits().delta_only)
    }

    /// Gives the waiting names of the type an error, if the server is known not to serve the type; `only`: no other name than this
    /// one waits.
    pub(super) fn tell_unserved(&mut self, type_url: &TypeUrl, only: Option<&Name>) -> Option<Changes> {
        let error = self.unserved.why(type_url)?.error.clone();
        let Some(feed) = self.feeds.get_mut(type_url).filter(|feed| feed.wanted()) else {
            self.unserved.changed |= self.unserved.types.remove(type_url);
            return None;
        };
        self.unserved.changed |= self.unserved.types.insert(type_url.clone());
        feed.unserved(&error, only)
    }
}
