// SPDX-License-Identifier: Apache-2.0
//! What one or several sessions lease of one type.
//!
//! Owns the leases of the set, and how many of them are its claims. Does not know who has it.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use roaring::RoaringBitmap;

use crate::claims::Claims;

/// What one or several sessions lease.
///
/// Each lease is a claim of the first set that waits for it, and so of the connection of that set's first member.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) number: u32,
    leases: Mutex<RoaringBitmap>,
    /// For how many leases it is the first set. Changes only with a lock on the shard of the lease, and either a lock on all sets or
    /// that on the session whose set it is.
    claimed: AtomicUsize,
}

impl Set {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            leases: Mutex::new(RoaringBitmap::new()),
            claimed: AtomicUsize::new(0),
        }
    }

    pub(crate) fn has(&self, lease: u32) -> bool {
        self.leases.lock().contains(lease)
    }

    pub(crate) fn len(&self) -> usize {
        self.leases.lock().len() as usize
    }

    /// It is the first set now that waits for a lease; its session is one with these claims, if it has one yet.
    pub(super) fn claim(&self, claims: Option<&Claims>) {
        self.claimed.fetch_add(1, Ordering::Relaxed);
        claims.into_iter().for_each(|claims| claims.add(1));
    }

    /// It is not the first set any more that waits for a lease.
    pub(super) fn unclaim(&self, claims: Option<&Claims>) {
        self.claimed.fetch_sub(1, Ordering::Relaxed);
        claims.into_iter().for_each(|claims| claims.subtract(1));
    }

    /// For how many leases it is the first set that waits.
    pub(super) fn claimed(&self) -> usize {
        self.claimed.load(Ordering::Relaxed)
    }

    /// All that it leases.
    pub(super) fn all(&self) -> Vec<u32> {
        self.some(usize::MAX)
    }

    /// At most this many of its leases.
    pub(super) fn some(&self, most: usize) -> Vec<u32> {
        self.leases.lock().iter().take(most).collect()
    }

    /// Adds a lease. Returns false if it was there already.
    pub(super) fn insert(&self, lease: u32) -> bool {
        self.leases.lock().insert(lease)
    }

    /// Removes a lease. Returns false if it was not there.
    pub(super) fn remove(&self, lease: u32) -> bool {
        self.leases.lock().remove(lease)
    }

    /// Makes it as small as it can be. Returns a hash of the leases: equal sets have the same, others almost never.
    pub(super) fn rest(&self) -> u64 {
        let mut leases = self.leases.lock();
        // A copy has no spare capacity.
        *leases = leases.clone();
        leases
            .iter()
            .fold(leases.len(), |hash, lease| mixed(hash ^ u64::from(lease)))
    }

    /// Whether another set has the same leases.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if self.number == other.number {
            return false;
        }
        let (one, other) = (self.leases.lock(), other.leases.lock());
        *one == *other
    }
}

/// Mixes bits, so that equal results mean equal leases.
const fn mixed(bits: u64) -> u64 {
    let mut bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_one_hash() {
        let (one, other) = (Set::new(1), Set::new(2));
        for lease in 0..100 {
            assert!(one.insert(lease) && other.insert(99 - lease) && !one.insert(lease));
        }
        assert_eq!((one.rest(), one.equals(&other)), (other.rest(), true));
        assert!(one.remove(50) && !one.remove(50) && !one.has(50) && one.len() == 99);
        assert_ne!(one.rest(), other.rest());
        assert!(!one.equals(&other) && !one.equals(&one) && one.some(2) == [0, 1]);
    }
}
