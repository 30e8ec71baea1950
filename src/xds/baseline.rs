//! What slow clients (laggards) hold, without the bytes.
//!
//! Owns the look-up of the one copy that all holders of the same content share. Keeps no copy that nobody holds. Does not know
//! who lags.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::{Batch, Resource, State, Version};

/// Copies, without bytes, of what clients were sent. A copy compares like its original, but its content cannot be sent again.
#[derive(Debug, Default)]
pub struct Baselines {
    resources: Copies<Version, Resource>,
    /// By the id of the original.
    states: Copies<u64, State>,
    batches: Copies<u64, Batch>,
}

/// Weak references by key. Dead ones are removed whenever the number of entries has doubled.
#[derive(Debug)]
struct Copies<K, V> {
    known: BTreeMap<K, Weak<V>>,
    purge_at: usize,
}

const PURGE_AT_LEAST: usize = 64;
/// About how many bytes a map needs for an entry.
const ENTRY: usize = 64;

impl Baselines {
    /// Returns the copy of a state that a client was brought to.
    #[must_use]
    pub fn state(&mut self, state: &Arc<State>) -> Arc<State> {
        if state.resources().all(|resource| resource.is_hollow()) {
            return state.clone();
        }
        let Self { resources, states, .. } = self;
        states.one(state.id(), || state.mapped(|resource| resources.hollow(resource)))
    }

    /// Returns the copy of a resource that a client holds.
    #[must_use]
    pub fn resource(&mut self, resource: &Arc<Resource>) -> Arc<Resource> {
        self.resources.hollow(resource)
    }

    /// Returns the copy of what responses contained, or were about to contain.
    #[must_use]
    pub fn batch(&mut self, batch: &Arc<Batch>) -> Arc<Batch> {
        if batch.items().iter().all(|item| item.resource.is_hollow()) {
            return batch.clone();
        }
        let Self { resources, batches, .. } = self;
        batches.one(batch.id(), || batch.mapped(|resource| resources.hollow(resource)))
    }

    /// Returns about how many bytes all copies take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let resources = self.resources.alive().count() * size_of::<Resource>();
        let states = self.states.alive().map(|state| state.entries().len() * ENTRY);
        let said = |batch: &Batch| size_of_val(batch.items()) + size_of_val(batch.removed());
        let batches = self.batches.alive().map(|batch| said(&batch));
        resources + states.chain(batches).sum::<usize>()
    }
}

impl<K: Ord, V> Copies<K, V> {
    fn one(&mut self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(known) = self.known.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if self.known.len() >= self.purge_at.max(PURGE_AT_LEAST) {
            self.known.retain(|_, known| known.strong_count() > 0);
            self.purge_at = self.known.len() * 2;
        }
        let made = Arc::new(make());
        self.known.insert(key, Arc::downgrade(&made));
        made
    }

    fn alive(&self) -> impl Iterator<Item = Arc<V>> {
        self.known.values().filter_map(Weak::upgrade)
    }
}

impl Copies<Version, Resource> {
    fn hollow(&mut self, resource: &Arc<Resource>) -> Arc<Resource> {
        if resource.is_hollow() {
            return resource.clone();
        }
        self.one(resource.version(), || resource.hollow())
    }
}

impl<K, V> Default for Copies<K, V> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            purge_at: 0,
        }
    }
}
