// SPDX-License-Identifier: Apache-2.0
//! The sets that wait for one lease.
//!
//! Owns which of them is the first: the lease is a claim of that one. Does not know who has a set.

use roaring::RoaringBitmap;

/// Numbers of sets. Adding and removing one costs nearly the same however many wait.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    first: Option<u32>,
    /// Most leases of which there are many have one waiter alone: nothing is allocated for these.
    others: Option<Box<MoreWaiters>>,
}

#[derive(Debug)]
enum MoreWaiters {
    /// In order. Most leases have few.
    Few(Vec<u32>),
    Many(RoaringBitmap),
}

/// From so many on, moving the numbers behind a new one costs more than a bitmap.
const MANY: usize = 1024;

impl Waiters {
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the first one. It stays the first until it is removed.
    pub(super) const fn first(&self) -> Option<u32> {
        self.first
    }

    /// Returns all of them, each once.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let others = self.others.iter();
        self.first.into_iter().chain(others.flat_map(|others| others.iter()))
    }

    /// Adds one that is not there.
    pub(super) fn insert(&mut self, set: u32) {
        if self.first.is_none() {
            self.first = Some(set);
        } else {
            self.others.get_or_insert_default().insert(set);
        }
    }

    /// Removes one. If it was the first, the last of the others takes its place: that moves no other number.
    pub(super) fn remove(&mut self, set: u32) {
        let last = self.others.as_ref().and_then(|others| others.last());
        let other = if self.first == Some(set) {
            self.first = last;
            last
        } else {
            Some(set)
        };
        if let (Some(others), Some(other)) = (&mut self.others, other) {
            others.remove(other);
        }
        self.others.take_if(|others| others.last().is_none());
    }
}

impl MoreWaiters {
    fn iter(&self) -> impl Iterator<Item = u32> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few.iter().copied()), None),
            Self::Many(many) => (None, Some(many.iter())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    fn last(&self) -> Option<u32> {
        match self {
            Self::Few(few) => few.last().copied(),
            Self::Many(many) => many.max(),
        }
    }

    fn insert(&mut self, set: u32) {
        match self {
            Self::Few(few) if few.len() < MANY => {
                if few.len() == few.capacity() {
                    // Doubling would leave a third of the memory unused.
                    few.reserve_exact((few.len() / 4).max(1));
                }
                few.insert(few.partition_point(|other| *other < set), set);
            }
            Self::Few(few) => {
                let mut many: RoaringBitmap = few.iter().copied().collect();
                many.insert(set);
                *self = Self::Many(many);
            }
            Self::Many(many) => {
                many.insert(set);
            }
        }
    }

    fn remove(&mut self, set: u32) {
        match self {
            Self::Few(few) => {
                if let Ok(at) = few.binary_search(&set) {
                    few.remove(at);
                }
                if few.len() * 4 < few.capacity() {
                    few.shrink_to_fit();
                }
            }
            Self::Many(many) => {
                many.remove(set);
                if many.len() as usize <= MANY / 2 {
                    *self = Self::Few(many.iter().collect());
                }
            }
        }
    }
}

impl Default for MoreWaiters {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A naive set does the same while many come and go, and the first one stays the first.
    #[test]
    fn it_is_a_set_with_a_first() {
        let (mut waiters, mut naive) = (Waiters::default(), BTreeSet::new());
        let mut bits = 1_u64;
        for range in [3, 100, 4000, 100, 1] {
            for _ in 0..20_000 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let set = u32::try_from((bits >> 33) % 4000).unwrap();
                let first = waiters.first();
                if u64::from(set) < range && naive.insert(set) {
                    waiters.insert(set);
                } else if naive.remove(&set) {
                    waiters.remove(set);
                }
                assert_eq!(waiters.is_empty(), naive.is_empty());
                let stays = first.filter(|first| naive.contains(first));
                assert!(stays.is_none_or(|first| waiters.first() == Some(first)));
                assert!(waiters.first().is_none_or(|first| naive.contains(&first)));
            }
            let all: BTreeSet<u32> = waiters.iter().collect();
            assert_eq!((&all, waiters.iter().count()), (&naive, naive.len()));
        }
    }
}
