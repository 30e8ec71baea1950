// SPDX-License-Identifier: Apache-2.0
//! The errors that a server has reported of names, or shown in faulty entries (E-09, G-15).
//!
//! Owns how many are remembered. Does not know what is held and wanted.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use xds::{Errors, Name, ResourceError, Trouble, Update};

/// The errors of the names of one type.
#[derive(Debug, Default)]
pub(super) struct NameErrors {
    by_name: Errors,
}

/// At most this many faulty names are remembered among those that nobody requested by name.
const REJECTED_MAX: usize = 1024;

impl NameErrors {
    /// G-15: whether a faulty name that nobody requested by name may be remembered.
    pub(super) fn have_room(&self) -> bool {
        self.by_name.len() < REJECTED_MAX
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.by_name.get(name)
    }

    /// Returns all of them, as updates.
    pub(super) fn updates(&self) -> impl Iterator<Item = Update> {
        let all = self.by_name.iter();
        all.map(|(name, error)| Update::Error(name.clone(), Some(error.clone())))
    }

    /// Returns those names with an error that are in a collection (F-10).
    pub(super) fn within<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let from = (Bound::Included(collection.prefix()), Bound::Unbounded);
        let names = self.by_name.range::<str, _>(from).map(|(name, _)| name);
        let names = names.take_while(|name| name.as_str().starts_with(collection.prefix()));
        let covers = collection.coverage();
        names.filter(move |name| covers(name))
    }

    pub(super) fn note(&mut self, name: Name, error: Arc<ResourceError>, updates: &mut Vec<Update>) {
        self.by_name.insert(name.clone(), error.clone());
        updates.push(Update::Error(name, Some(error)));
    }

    /// The server has sent something else for a name, so its error is forgotten.
    pub(super) fn absolve(&mut self, text: &str, updates: &mut Vec<Update>) {
        if let Some((name, _)) = self.by_name.remove_entry(text) {
            updates.push(Update::Error(name, None));
        }
    }

    /// G-15: a complete response mentions only these names. The faults of others that nobody requested by name are forgotten.
    pub(super) fn absolve_others(
        &mut self,
        mentioned: &BTreeSet<Name>,
        is_asked: impl Fn(&str) -> bool,
        updates: &mut Vec<Update>,
    ) {
        let rejected = self.by_name.iter().filter(|(name, error)| {
            error.trouble == Trouble::Rejected && !is_asked(name.as_str()) && !mentioned.contains(*name)
        });
        for name in rejected.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.absolve(name.as_str(), updates);
        }
    }

    /// A name is not wanted any more, or gone. Returns its error.
    pub(super) fn forget(&mut self, name: &Name) -> Option<Arc<ResourceError>> {
        self.by_name.remove(name)
    }

    /// Takes an error that was noted elsewhere.
    pub(super) fn put(&mut self, name: &Name, error: Option<Arc<ResourceError>>) {
        self.by_name.extend(error.map(|error| (name.clone(), error)));
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
    }
}
