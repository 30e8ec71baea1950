//! The leases of one set, and its position among those who wait for each.
//!
//! Owns a table that is small at rest: eight bytes for each lease. Does not know what a lease is.

/// Lease -> position among those who wait for it. Both costs of a change, time and memory, are bounded on average.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The first `sorted` entries are ordered by lease; newer ones follow in any order.
    entries: Vec<Entry>,
    sorted: u32,
    /// How many of the sorted entries were removed.
    gone: u32,
    hash: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    lease: u32,
    position: u32,
}

/// The position in an entry that was removed.
const GONE: u32 = u32::MAX;
/// How many unsorted entries may be searched one by one; in large tables, the square root of their size.
const UNSORTED_AT_LEAST: usize = 32;

impl Positions {
    pub(super) const fn len(&self) -> usize {
        self.entries.len() - self.gone as usize
    }

    pub(super) fn get(&self, lease: u32) -> Option<u32> {
        let at = self.find(lease)?;
        self.entries.get(at).map(|entry| entry.position)
    }

    /// Adds a lease and the position there. Returns false if it was there already.
    pub(super) fn insert(&mut self, lease: u32, position: usize) -> bool {
        if self.find(lease).is_some() {
            return false;
        }
        let unsorted = self.entries.len() - self.sorted as usize;
        if unsorted >= UNSORTED_AT_LEAST.max(self.sorted.isqrt() as usize) {
            self.sort();
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact((self.entries.len() / 8).max(1));
        }
        let position = narrow(position);
        self.entries.push(Entry { lease, position });
        self.hash = self.hash.wrapping_add(mixed(lease));
        true
    }

    pub(super) fn remove(&mut self, lease: u32) -> Option<usize> {
        let at = self.find(lease)?;
        let position = self.entries.get(at)?.position;
        self.hash = self.hash.wrapping_sub(mixed(lease));
        if at >= self.sorted as usize {
            self.entries.swap_remove(at);
        } else if let Some(entry) = self.entries.get_mut(at) {
            entry.position = GONE;
            self.gone += 1;
            if self.gone as usize * 2 > self.entries.len() {
                self.sort();
                self.entries.shrink_to_fit();
            }
        }
        Some(position as usize)
    }

    /// Changes the position at a lease.
    pub(super) fn moved(&mut self, lease: u32, position: usize) {
        if let Some(entry) = self.find(lease).and_then(|at| self.entries.get_mut(at)) {
            entry.position = narrow(position);
        }
    }

    /// All leases.
    pub(super) fn leases(&self) -> impl Iterator<Item = u32> {
        self.entries
            .iter()
            .filter(|entry| entry.position != GONE)
            .map(|entry| entry.lease)
    }

    /// Sorts it and makes it as small as it can be. Two tables at rest are equal if their leases come in the same order.
    pub(super) fn rest(&mut self) {
        self.sort();
        self.entries.shrink_to_fit();
    }

    /// A hash of the leases: equal sets of leases have the same, others almost never.
    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    fn find(&self, lease: u32) -> Option<usize> {
        let (sorted, newer) = self.entries.split_at_checked(self.sorted as usize)?;
        let known = sorted.binary_search_by_key(&lease, |entry| entry.lease).ok();
        let known = known.filter(|at| sorted.get(*at).is_some_and(|entry| entry.position != GONE));
        known.or_else(|| {
            let at = newer.iter().position(|entry| entry.lease == lease)?;
            Some(sorted.len() + at)
        })
    }

    fn sort(&mut self) {
        if self.gone > 0 {
            self.entries.retain(|entry| entry.position != GONE);
            self.gone = 0;
        }
        // The stable sort is fast if almost everything is in order.
        self.entries.sort_by_key(|entry| entry.lease);
        self.sorted = narrow(self.entries.len());
    }
}

fn narrow(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(GONE - 1)
}

/// Mixes the bits of a lease's number, so that sums of these distinguish sets.
const fn mixed(lease: u32) -> u64 {
    let mut bits = (lease as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A naive map does the same, through growth, removals and rests.
    #[test]
    fn it_is_a_map() {
        let (mut positions, mut naive) = (Positions::default(), BTreeMap::new());
        let mut bits = 1_u64;
        for step in 0..20_000_usize {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let lease = u32::try_from((bits >> 33) % 500).unwrap();
            match (bits >> 60) % 5 {
                0 | 1 => assert_eq!(positions.insert(lease, step), !naive.contains_key(&lease)),
                2 => assert_eq!(positions.remove(lease), naive.remove(&lease)),
                3 => {
                    positions.moved(lease, step);
                    naive.entry(lease).and_modify(|position| *position = step);
                }
                _ if step % 50 == 0 => positions.rest(),
                _ => {}
            }
            if (bits >> 60) % 5 < 2 {
                naive.entry(lease).or_insert(step);
            }
            assert_eq!(positions.len(), naive.len());
            let found = positions.get(lease).map(|position| position as usize);
            assert_eq!(found, naive.get(&lease).copied());
        }
        positions.rest();
        assert!(positions.leases().eq(naive.keys().copied()));
        assert!(positions.entries.capacity() <= naive.len() * 5 / 4);
    }

    #[test]
    fn the_hash_is_of_what_is_in_it() {
        let (mut one, mut other) = (Positions::default(), Positions::default());
        for lease in 0..100 {
            one.insert(lease, 7);
            other.insert(99 - lease, 8);
        }
        assert_eq!(one.hash(), other.hash());
        one.remove(50);
        assert_ne!(one.hash(), other.hash());
        one.insert(50, 1);
        assert_eq!(one.hash(), other.hash());
    }
}
