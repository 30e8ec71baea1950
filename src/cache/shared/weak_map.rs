// SPDX-License-Identifier: Apache-2.0
//! A table of values that somebody else keeps alive.
//!
//! Owns the look-up, and the removal of dead entries. Keeps nothing alive itself.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// Weak references by key; dead ones are removed whenever it grows.
pub(super) struct WeakMap<K, V> {
    values: HashMap<K, Weak<V>>,
    purge_at: usize,
}

const PURGE_AT_LEAST: usize = 64;

impl<K: Eq + Hash, V> WeakMap<K, V> {
    /// Returns the value, if somebody has it.
    pub(super) fn get(&self, key: &K) -> Option<Arc<V>> {
        self.values.get(key).and_then(Weak::upgrade)
    }

    /// Adds a value, which is found for as long as somebody has it.
    pub(super) fn insert(&mut self, key: K, value: &Arc<V>) {
        if self.values.len() >= self.purge_at.max(PURGE_AT_LEAST) {
            self.purge();
        }
        self.values.insert(key, Arc::downgrade(value));
    }

    /// Removes the dead entries.
    pub(super) fn purge(&mut self) {
        self.values.retain(|_, value| value.strong_count() > 0);
        self.purge_at = self.values.len() * 2;
        self.values.shrink_to(self.purge_at);
    }

    /// How many entries there are, perhaps with some dead ones.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

impl<K, V> Default for WeakMap<K, V> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            purge_at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_cannot_pile_up() {
        let mut weak_map = WeakMap::default();
        let kept = Arc::new(0);
        weak_map.insert(0, &kept);
        for key in 1..10_000 {
            weak_map.insert(key, &Arc::new(key));
            assert!(weak_map.len() <= PURGE_AT_LEAST);
        }
        assert_eq!(weak_map.get(&0), Some(kept.clone()));
        assert_eq!(weak_map.get(&9_999), None);
        drop(kept);
        weak_map.purge();
        assert_eq!((weak_map.len(), weak_map.get(&0)), (0, None));
    }
}
