//! What the older contents refer to that stand in for condemned ones (E-26).
//!
//! Owns which these are, each under the name of what it stands in for. Does not know for whom they stand in.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::reading::references;
use super::super::removal::Item;
use xds::{Condemned, Cut, Kind, Name, References, Resource};

/// The older contents that were read last.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    read: Arc<Vec<Arc<Condemned>>>,
    by_item: BTreeMap<Item, Vec<Arc<Resource>>>,
}

impl StandIns {
    /// Whether what is condemned in the cut is what was read last.
    pub(super) fn are_of(&self, cut: &Cut) -> bool {
        Arc::ptr_eq(&self.read, cut.condemned())
    }

    /// Reads what is condemned in the cut. Returns what has changed: each item with the contents that stood in for it before.
    pub(super) fn read(&mut self, cut: &Cut) -> Vec<(Item, Vec<Arc<Resource>>)> {
        self.read = cut.condemned().clone();
        let mut before = std::mem::take(&mut self.by_item);
        for one in &*self.read {
            for wildcard in [true, false] {
                let half = cut.half(&one.type_url, wildcard);
                if half.is_some_and(|state| state.resource(one.name()).is_some()) {
                    let item = ((one.type_url.clone(), wildcard), one.name().clone());
                    self.by_item.entry(item).or_default().push(one.stands_in.clone());
                }
            }
        }
        let new = self.by_item.keys().filter(|item| !before.contains_key(*item));
        let new: Vec<_> = new.map(|item| (item.clone(), Vec::new())).collect();
        let same = |one: &[Arc<Resource>], other: &[Arc<Resource>]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        before.retain(|item, old| !same(old, self.of(item)));
        before.into_iter().chain(new).collect()
    }

    /// What stands in for this does not count any more: it goes itself.
    pub(super) fn remove(&mut self, item: &Item) -> Vec<Arc<Resource>> {
        self.by_item.remove(item).unwrap_or_default()
    }

    /// Returns what stands in for this.
    pub(super) fn of(&self, item: &Item) -> &[Arc<Resource>] {
        self.by_item.get(item).map_or(&[], |found| found)
    }

    /// Returns what that refers to.
    pub(super) fn named(&self, item: &Item) -> impl Iterator<Item = &References> {
        let kind = item.0.0.kind();
        self.of(item).iter().filter_map(move |one| references(kind, one))
    }

    /// Whether any of that names this route configuration or cluster.
    pub(super) fn name(&self, of: Kind, item: &Item, name: &Name) -> bool {
        let names = |named: &References| {
            if of == Kind::Rds {
                named.routes.contains(name)
            } else {
                named.clusters.contains(name)
            }
        };
        self.named(item).any(names)
    }

    /// Returns a cluster in whose place another one stands that has these endpoints.
    pub(super) fn with_endpoints(&self, name: &Name) -> Option<&Item> {
        let mut all = self.by_item.iter();
        let has = |one: &Arc<Resource>| one.endpoints() == Some(name);
        all.find_map(|(item, found)| found.iter().any(has).then_some(item))
    }
}
