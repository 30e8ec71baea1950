//! Tables of what clients remember from before their streams: equal tables are kept once (C-12).
//!
//! Owns the search for an equal table. Keeps no table that no session has.

use std::sync::Arc;

use parking_lot::Mutex;

use super::weak_map::WeakMap;
use xds::{Extra, Hasher, Held, Version};

/// The tables in use, by a hash over all that is in them.
#[derive(Default)]
pub(super) struct Tables(Mutex<WeakMap<Version, Extra>>);

impl Tables {
    /// Returns a known table that equals this one, or else this one.
    pub(super) fn one(&self, extra: Extra) -> Arc<Extra> {
        let hash = hash(&extra);
        let mut tables = self.0.lock();
        if let Some(known) = tables.get(&hash) {
            drop(tables);
            // Clients choose the content: a hash that collides must not give one client what another one holds.
            return if same(&known, &extra) { known } else { Arc::new(extra) };
        }
        let extra = Arc::new(extra);
        tables.insert(hash, &extra);
        extra
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

/// What is held, as a kind and a hash.
fn held(held: &Held) -> (u8, Version) {
    match held {
        Held::Nothing => (0, Version::EMPTY),
        Held::Unknown => (1, Version::EMPTY),
        Held::Version(version) => (2, *version),
        Held::Content(resource) => (3, resource.version()),
    }
}

fn hash(extra: &Extra) -> Version {
    let mut hasher = Hasher::new(0);
    for (name, value) in extra.names() {
        let (kind, version) = held(value);
        hasher.field(name.as_str().as_bytes());
        hasher.field(&[kind]);
        hasher.field(&version.bits().to_le_bytes());
    }
    hasher.finish()
}

fn same(one: &Extra, other: &Extra) -> bool {
    let mut both = one.names().iter().zip(other.names());
    one.names().len() == other.names().len() && both.all(|((a, x), (b, y))| a == b && held(x) == held(y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::Name;

    fn table(seed: u128) -> Extra {
        let names = ["a", "b", "c"].map(|name| (Name::from(name), Held::Version(Version::from_bits(seed))));
        Extra::new(names.into_iter().collect())
    }

    /// C-12: clients that come back with the same versions share one table.
    #[test]
    fn equal_tables_are_one_while_somebody_has_it() {
        let tables = Tables::default();
        let first = tables.one(table(1));
        assert!(Arc::ptr_eq(&first, &tables.one(table(1))));
        let other = tables.one(table(2));
        assert!(!Arc::ptr_eq(&first, &other));
        let empty = tables.one(Extra::new(std::collections::BTreeMap::new()));
        assert_eq!(tables.len(), 3);
        drop((first, empty));
        tables.purge();
        assert_eq!(tables.len(), 1);
    }

    #[test]
    fn what_is_not_known_differs_from_what_is_not_there() {
        let one = |held| Extra::new([(Name::from("a"), held)].into());
        let tables = [
            one(Held::Nothing),
            one(Held::Unknown),
            one(Held::Version(Version::EMPTY)),
        ];
        for (at, a) in tables.iter().enumerate() {
            for (other, b) in tables.iter().enumerate() {
                assert_eq!(same(a, b), at == other);
                assert_eq!(hash(a) == hash(b), at == other);
            }
        }
    }
}
