//! Types that delta alone has, where the server does not speak delta.
//!
//! Owns that such a server is not asked for them, and that whoever wants a name of them is told so. Refuses to know how the dialect is
//! chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Client;
use crate::xds::{Changes, Dialect, ResourceError, TypeUrl};

/// What is known of a server that does not speak delta.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    /// What clients are told, if the server is known not to speak delta.
    error: Option<Arc<ResourceError>>,
    /// The types that somebody wants all the same.
    types: BTreeSet<TypeUrl>,
    /// Whether that is news.
    changed: bool,
}

impl Unserved {
    /// The server answers in delta, or is asked in delta again.
    pub(super) fn clear(&mut self) {
        self.error = None;
        self.changed |= !std::mem::take(&mut self.types).is_empty();
    }
}

impl Client {
    /// The server does not speak delta; `why` is how that is known. Whoever waits for a name of a type that only delta has is told so,
    /// also those who come later, until the server answers in delta or is asked in delta again.
    pub fn handle_no_delta(&mut self, why: &str) -> Vec<Changes> {
        let error = Some(Arc::new(ResourceError::no_delta(why)));
        self.unserved.changed |= self.unserved.error != error && !self.unserved.types.is_empty();
        self.unserved.error = error;
        let types = self.feeds.keys().filter(|type_url| type_url.traits().delta_only);
        let types: Vec<TypeUrl> = types.cloned().collect();
        types
            .iter()
            .filter_map(|type_url| self.tell_unserved(type_url))
            .collect()
    }

    /// The types that somebody wants and that the server is not asked for, and why, if they are others than the last time.
    pub fn take_unserved(&mut self) -> Option<BTreeMap<TypeUrl, Arc<str>>> {
        if !std::mem::take(&mut self.unserved.changed) {
            return None;
        }
        let why = self.unserved.error.as_ref().map(|error| error.message.clone());
        let types = self.unserved.types.iter().cloned();
        Some(types.zip(why.into_iter().cycle()).collect())
    }

    /// Whether anything is wanted that can be asked for in this dialect.
    #[must_use]
    pub fn wanted_in(&self, dialect: Dialect) -> bool {
        let mut asked = self.feeds.iter().filter(|(type_url, _)| is_asked(type_url, dialect));
        asked.any(|(_, feed)| feed.wanted())
    }

    /// Whether the type can be asked for in the present dialect.
    pub(super) fn asks(&self, type_url: &TypeUrl) -> bool {
        is_asked(type_url, self.dialect)
    }

    /// Tells whoever waits for a name of the type, if the server is known not to have it.
    pub(super) fn tell_unserved(&mut self, type_url: &TypeUrl) -> Option<Changes> {
        let error = self.unserved.error.as_ref().filter(|_| type_url.traits().delta_only)?;
        let feed = self.feeds.get_mut(type_url).filter(|feed| feed.wanted())?;
        self.unserved.changed |= self.unserved.types.insert(type_url.clone());
        feed.unserved(error)
    }
}

fn is_asked(type_url: &TypeUrl, dialect: Dialect) -> bool {
    dialect == Dialect::Delta || !type_url.traits().delta_only
}
