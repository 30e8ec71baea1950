// SPDX-License-Identifier: Apache-2.0
//! The shared copy of every name.
//!
//! Owns the table of names in use. Keeps no name that nobody else has: it forgets those whenever it grows.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use xds::Name;

/// All names that clients use, in shards, because every request looks its names up.
pub(super) struct Interner {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

#[derive(Default)]
struct Shard {
    names: HashSet<Name>,
    /// When there are as many as this, names that nobody else has are removed.
    purge_at: usize,
}

const SHARDS: usize = 16;
const PURGE_AT_LEAST: usize = 64;

impl Interner {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the shared copy of this name.
    pub(super) fn name(&self, text: &str) -> Name {
        #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of shards")]
        let shard = &self.shards[self.hasher.hash_one(text) as usize % SHARDS];
        let mut shard = shard.lock();
        if let Some(name) = shard.names.get(text) {
            return name.clone();
        }
        if shard.names.len() >= shard.purge_at.max(PURGE_AT_LEAST) {
            shard.purge();
        }
        let name = Name::from(text);
        shard.names.insert(name.clone());
        name
    }

    /// Removes the names that nobody else has.
    pub(super) fn purge(&self) {
        for shard in &self.shards {
            shard.lock().purge();
        }
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().names.len()).sum()
    }
}

impl Shard {
    fn purge(&mut self) {
        self.names.retain(|name| name.copies() > 1);
        self.names.shrink_to(self.names.len() * 2);
        self.purge_at = self.names.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_only_while_somebody_has_it() {
        let names = Interner::new();
        let first = names.name("one");
        assert_eq!(names.name("one").copies(), 3);
        assert_eq!(first.copies(), 2);
        names.purge();
        assert_eq!(names.len(), 1);
        drop(first);
        names.purge();
        assert_eq!(names.len(), 0);
    }

    #[test]
    fn names_that_nobody_has_cannot_pile_up() {
        let names = Interner::new();
        let held: Vec<_> = (0..1000).map(|n| names.name(&format!("held-{n}"))).collect();
        for n in 0..100_000 {
            let _ = names.name(&format!("invented-{n}"));
        }
        assert!(
            names.len() <= 3 * held.len() + SHARDS * PURGE_AT_LEAST,
            "{}",
            names.len()
        );
        assert!(held.iter().all(|name| name.copies() == 2));
    }
}
