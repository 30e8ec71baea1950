// SPDX-License-Identifier: Apache-2.0
//! What the older contents refer to that clients go on using because they reject the current ones (K-37), here and in what clients read of
//! other servers.
//!
//! Owns which these are. Does not know who uses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::waiting::Half;
use super::Source;
use xds::{Cut, Name, Older, Resource, ViewPlace};

/// The older contents that were read last.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    lists: BTreeMap<Option<ViewPlace>, Arc<Vec<Older>>>,
    by_source: BTreeMap<Source, Vec<Arc<Resource>>>,
}

impl StandIns {
    /// Reads those of a place where clients read some of what is there; without a cut, they do not any more. Returns what has changed: each
    /// source with the contents that stood in for it before.
    pub(super) fn read(
        &mut self,
        place: Option<&ViewPlace>,
        cut: Option<&Cut>,
        is_read: impl Fn(&Half, &Name) -> bool,
    ) -> Vec<(Source, Vec<Arc<Resource>>)> {
        let key = place.cloned();
        if self.lists.get(&key).map(Arc::as_ptr) == cut.map(|cut| Arc::as_ptr(cut.older())) {
            return Vec::new();
        }
        match cut {
            Some(cut) => self.lists.insert(key, cut.older().clone()),
            None => self.lists.remove(&key),
        };
        let at_place = |source: &Source| source.1.as_ref() == place;
        let known = std::mem::take(&mut self.by_source).into_iter();
        let (mut before, others): (BTreeMap<_, _>, _) = known.partition(|(source, _)| at_place(source));
        self.by_source = others;
        for one in cut.into_iter().flat_map(|cut| cut.older().iter()) {
            for half in [true, false].map(|wildcard| (one.type_url.clone(), wildcard)) {
                let state = cut.and_then(|cut| cut.half(&half.0, half.1));
                if state.is_some_and(|state| state.resource(one.name()).is_some()) && is_read(&half, one.name()) {
                    let source = ((half, one.name().clone()), place.cloned());
                    self.by_source.entry(source).or_default().push(one.content.clone());
                }
            }
        }
        let new = self.by_source.keys();
        let new = new.filter(|source| at_place(source) && !before.contains_key(*source));
        let new: Vec<_> = new.map(|source| (source.clone(), Vec::new())).collect();
        let same = |one: &[Arc<Resource>], other: &[Arc<Resource>]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        before.retain(|source, old| !same(old, self.of(source)));
        before.into_iter().chain(new).collect()
    }

    /// What stands in for this does not count any more: it goes itself.
    pub(super) fn remove(&mut self, source: &Source) -> Vec<Arc<Resource>> {
        self.by_source.remove(source).unwrap_or_default()
    }

    /// Returns what stands in for this.
    pub(super) fn of(&self, source: &Source) -> &[Arc<Resource>] {
        self.by_source.get(source).map_or(&[], |found| found)
    }
}
