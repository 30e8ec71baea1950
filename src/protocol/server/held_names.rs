//! The names that a client asked for, and what it holds under each.
//!
//! Owns the table and the running version of its contents. Refuses to know what is current.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::xds::{Baselines, Held, Name, Version};

/// Explicit subscriptions of one type on one stream. `sum` is always the sum over the contents that the client surely holds.
#[derive(Debug, Default)]
pub(super) struct HeldNames {
    names: BTreeMap<Name, Held>,
    sum: Version,
}

impl HeldNames {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.names.contains_key(name)
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Held> {
        self.names.get(name)
    }

    /// The name that is in the table by this text.
    pub(super) fn by_text(&self, text: &str) -> Option<&Name> {
        self.names.get_key_value(text).map(|(name, _)| name)
    }

    /// The names that a collection covers (F-10).
    pub(super) fn within<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let from = (Bound::Included(collection.prefix()), Bound::Unbounded);
        let names = self.names.range::<str, _>(from).map(|(name, _)| name);
        let names = names.take_while(|name| name.as_str().starts_with(collection.prefix()));
        names.filter(|name| collection.covers(name))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Held)> {
        self.names.iter()
    }

    /// Adds a name, or notes what the client holds under it now.
    pub(super) fn set(&mut self, name: Name, held: Held) {
        if let Some(content) = held.content() {
            self.sum = self.sum.plus(content.version());
        }
        if let Some(Held::Content(old)) = self.names.insert(name, held) {
            self.sum = self.sum.minus(old.version());
        }
    }

    /// Notes what the client holds under a name, if it asked for that name.
    pub(super) fn note(&mut self, name: &Name, held: Held) {
        if let Some((name, _)) = self.names.get_key_value(name) {
            self.set(name.clone(), held);
        }
    }

    /// Keeps no bodies of what the client holds.
    pub(super) fn lighten(&mut self, baselines: &Baselines) {
        self.names.values_mut().for_each(|held| *held = baselines.held(held));
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Held> {
        let old = self.names.remove(name)?;
        if let Some(content) = old.content() {
            self.sum = self.sum.minus(content.version());
        }
        Some(old)
    }

    /// The version of what the client holds by name.
    pub(super) const fn sum(&self) -> Version {
        self.sum
    }
}
