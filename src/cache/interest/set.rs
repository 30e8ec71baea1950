//! What one or several sessions lease of one type.
//!
//! Owns the leases of the set, and how many of them are its claims. Does not know who has it.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::positions::Positions;
use crate::cache::claims::Claims;

/// What one or several sessions lease.
///
/// Each lease is a claim of the first set that waits for it, and so of the connection of that set's first member.
#[derive(Debug)]
pub(in crate::cache) struct Set {
    pub(in crate::cache) number: u32,
    pub(super) positions: Mutex<Positions>,
    /// For how many leases it is the first set. Changes only with a lock on the shard of the lease, and either a lock on all sets or
    /// that on the session whose set it is.
    claimed: AtomicUsize,
}

impl Set {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            positions: Mutex::new(Positions::default()),
            claimed: AtomicUsize::new(0),
        }
    }

    pub(in crate::cache) fn has(&self, lease: u32) -> bool {
        self.positions.lock().get(lease).is_some()
    }

    pub(in crate::cache) fn len(&self) -> usize {
        self.positions.lock().len()
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
        self.positions.lock().leases().take(most).collect()
    }

    pub(super) fn rest(&self) -> u64 {
        let mut positions = self.positions.lock();
        positions.rest();
        positions.hash()
    }

    /// Whether two sets at rest have the same leases.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if self.number == other.number {
            return false;
        }
        let (one, other) = (self.positions.lock(), other.positions.lock());
        one.leases().eq(other.leases())
    }
}
