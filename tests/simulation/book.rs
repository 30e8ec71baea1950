// SPDX-License-Identifier: Apache-2.0
//! All that a view was ever given, by name, in order.
//!
//! Owns the order in which contents came. Knows nothing of clients.

use std::collections::{BTreeMap, BTreeSet};

use xds::Resource;

use super::body::{Type, facts};

/// The contents of one view during its life.
#[derive(Default)]
pub(crate) struct Book {
    /// Revisions in the order in which the view had them; 0 is a removal.
    order: BTreeMap<(Type, String), Vec<u64>>,
    /// Names that the wildcard had and has lost.
    left: BTreeSet<(Type, String)>,
    /// How often anything of a type was given.
    news: BTreeMap<Type, u64>,
}

/// The revision of a resource, from its body.
pub(crate) fn revision(resource: &Resource) -> u64 {
    facts(&resource.body()).map_or(0, |facts| facts.revision)
}

impl Book {
    pub(crate) fn note(&mut self, kind: Type, resource: &Resource, wildcard: bool) {
        let key = (kind, resource.name().as_str().to_owned());
        if wildcard {
            self.left.remove(&key);
        }
        *self.news.entry(kind).or_default() += 1;
        let (order, revision) = (self.order.entry(key).or_default(), revision(resource));
        if order.last() != Some(&revision) {
            order.push(revision);
        }
    }

    /// Notes that the view no longer has anything of a name, or its wildcard has not.
    pub(crate) fn gone(&mut self, kind: Type, name: &str, wildcard: bool) {
        let key = (kind, name.to_owned());
        *self.news.entry(kind).or_default() += 1;
        if let Some(order) = self.order.get_mut(&key) {
            order.push(0);
        }
        if wildcard {
            self.left.insert(key);
        }
    }

    /// Whether the view ever had this content.
    pub(crate) fn has(&self, kind: Type, name: &str, revision: u64) -> bool {
        self.of(kind, name).contains(&revision)
    }

    /// Whether this is the last content that the view had; one of its halves may have lost it since.
    pub(crate) fn is_last(&self, kind: Type, name: &str, revision: u64) -> bool {
        let mut contents = self.of(kind, name).iter().filter(|revision| **revision > 0);
        contents.next_back() == Some(&revision)
    }

    /// Whether the view had one content for the last time before it had the other one at all.
    pub(crate) fn is_before(&self, kind: Type, name: &str, one: u64, other: u64) -> bool {
        let order = self.of(kind, name);
        let last = order.iter().rposition(|revision| *revision == one);
        let first = order.iter().position(|revision| *revision == other);
        last.zip(first).is_some_and(|(last, first)| last < first)
    }

    /// Whether the wildcard had a name and has lost it.
    pub(crate) fn has_left(&self, kind: Type, name: &str) -> bool {
        self.left.contains(&(kind, name.to_owned()))
    }

    pub(crate) fn news(&self, kind: Type) -> u64 {
        self.news.get(&kind).copied().unwrap_or_default()
    }

    fn of(&self, kind: Type, name: &str) -> &[u64] {
        self.order.get(&(kind, name.to_owned())).map_or(&[], Vec::as_slice)
    }
}
