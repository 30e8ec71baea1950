//! What clients remember from before their streams: equal tables are kept once (C-12).
//!
//! Owns the search for an equal table. Keeps no table that no session has.

use std::sync::Arc;

use parking_lot::Mutex;

use super::weak_map::WeakMap;
use xds::{Hasher, State, Version};

/// The tables in use, by a hash over all that is in them.
#[derive(Default)]
pub(super) struct Tables(Mutex<WeakMap<Version, State>>);

impl Tables {
    /// Returns a known table that equals this one, or else this one.
    pub(super) fn one(&self, table: State) -> Arc<State> {
        let hash = hash(&table);
        let mut tables = self.0.lock();
        if let Some(known) = tables.get(&hash) {
            drop(tables);
            // Clients choose the content: a hash that collides must not give one client what another one holds.
            return if same(&known, &table) { known } else { Arc::new(table) };
        }
        let table = Arc::new(table);
        tables.insert(hash, &table);
        table
    }

    /// Removes the tables that nobody has.
    pub(super) fn purge(&self) {
        self.0.lock().purge();
    }

    /// How many tables there are.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

fn hash(table: &State) -> Version {
    let mut hasher = Hasher::new(0);
    hasher.field(table.type_url().full_name().as_bytes());
    for resource in table.resources() {
        hasher.field(resource.name().as_str().as_bytes());
        hasher.field(&resource.version().bits().to_le_bytes());
    }
    hasher.finish()
}

fn same(one: &State, other: &State) -> bool {
    one.type_url() == other.type_url() && one.entries() == other.entries()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{Name, Resource, TypeUrl, Update};

    fn table(seed: u128, names: &[&str]) -> State {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = std::time::Instant::now();
        let brought = |name: &&str| Resource::brought(Name::from(*name), Version::from_bits(seed), now);
        let updates: Vec<Update> = names
            .iter()
            .map(|name| Update::Put(Arc::new(brought(name)), None))
            .collect();
        State::new(TypeUrl::new("t")).with(&updates, None).0
    }

    /// C-12: clients that come back with the same versions share one table.
    #[test]
    fn equal_tables_are_one_while_somebody_has_it() {
        let tables = Tables::default();
        let names = ["a", "b", "c"];
        let first = tables.one(table(1, &names));
        assert!(Arc::ptr_eq(&first, &tables.one(table(1, &names))));
        let other = tables.one(table(2, &names));
        assert!(!Arc::ptr_eq(&first, &other));
        let empty = tables.one(table(1, &[]));
        assert_eq!(tables.len(), 3);
        drop((first, empty));
        tables.purge();
        assert_eq!(tables.len(), 1);
    }

    /// A version is no part of a name.
    #[test]
    fn what_differs_is_not_one() {
        for (one, other) in [
            (table(1, &["a"]), table(0, &["a"])),
            (table(1, &["a"]), table(1, &["b"])),
        ] {
            assert!(!same(&one, &other) && hash(&one) != hash(&other));
        }
    }
}
