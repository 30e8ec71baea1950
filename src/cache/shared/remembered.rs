// SPDX-License-Identifier: Apache-2.0
//! What clients remember from before their streams: equal tables are kept once (C-12).
//!
//! Owns the search for an equal table. Keeps no table that no session has.

use std::sync::Arc;

use parking_lot::Mutex;

use super::weak_map::WeakMap;
use xds::{Hasher, Known, State, Version};

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
    for (name, known) in table.entries() {
        if let Known::Held(version) = known {
            hasher.field(name.as_str().as_bytes());
            hasher.field(&version.bits().to_le_bytes());
        }
    }
    hasher.finish()
}

fn same(one: &State, other: &State) -> bool {
    one.type_url() == other.type_url() && one.entries() == other.entries()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{Brief, Name, TypeUrl};

    fn table(version: u128, names: &[&str]) -> State {
        let mut table = State::new(TypeUrl::new("t"));
        let version = Brief::from(Version::from_bits(version));
        names.iter().for_each(|name| table.hold(Name::from(*name), version));
        table
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
