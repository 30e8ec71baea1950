//! The sessions that sit at one view.
//!
//! Owns their numbers, their bells, and each one's table of what it leases. Refuses to know who else leases it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::bell::Bell;
use super::lock;

/// All sessions of one view, by small numbers that are used again.
#[derive(Default)]
pub(super) struct Seats(RwLock<Slab>);

#[derive(Default)]
struct Slab {
    seated: Vec<Option<Arc<Seated>>>,
    free: Vec<u32>,
}

/// One session.
#[derive(Default)]
pub(super) struct Seated {
    pub(super) bell: Bell,
    /// What it leases -> its position among those who wait for that. Locked after the shard of the lease, never two at once.
    leases: Mutex<HashMap<u32, u32, BuildHasherDefault<Spread>>>,
}

impl Seats {
    pub(super) fn enter(&self) -> (u32, Arc<Seated>) {
        let seated = Arc::new(Seated::default());
        let mut slab = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let number = slab.free.pop();
        let place = number.and_then(|number| slab.seated.get_mut(number as usize));
        if let (Some(number), Some(place)) = (number, place) {
            *place = Some(seated.clone());
            return (number, seated);
        }
        let number = u32::try_from(slab.seated.len()).unwrap_or(u32::MAX);
        slab.seated.push(Some(seated.clone()));
        (number, seated)
    }

    pub(super) fn leave(&self, number: u32) {
        let mut slab = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = slab.seated.get_mut(number as usize)
            && place.take().is_some()
        {
            slab.free.push(number);
        }
    }

    /// All that are there now. Whoever has this must not enter or leave, and must not wake.
    pub(super) fn read(&self) -> Reading<'_> {
        Reading(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The sessions that are there.
pub(super) struct Reading<'a>(RwLockReadGuard<'a, Slab>);

impl Reading<'_> {
    pub(super) fn len(&self) -> usize {
        self.0.seated.len() - self.0.free.len()
    }

    /// One past the highest number.
    pub(super) fn end(&self) -> usize {
        self.0.seated.len()
    }

    /// The session with this number, if it is still there.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<Seated>> {
        self.0.seated.get(number as usize)?.as_ref()
    }

    /// All sessions with their numbers, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Seated>)> {
        (0..)
            .zip(&self.0.seated)
            .filter_map(|(number, seated)| Some((number, seated.as_ref()?)))
    }
}

impl Seated {
    /// Notes a lease and its position; false if it was there already.
    pub(super) fn lease(&self, lease: u32, position: usize) -> bool {
        let mut leases = lock(&self.leases);
        if leases.contains_key(&lease) {
            return false;
        }
        leases.insert(lease, u32::try_from(position).unwrap_or(u32::MAX));
        true
    }

    /// Forgets a lease and gives its position.
    pub(super) fn release(&self, lease: u32) -> Option<usize> {
        let mut leases = lock(&self.leases);
        let position = leases.remove(&lease)?;
        if leases.len() * 4 < leases.capacity() {
            leases.shrink_to_fit();
        }
        Some(position as usize)
    }

    /// Notes that the lease's position is another one now.
    pub(super) fn moved(&self, lease: u32, position: usize) {
        if let Some(known) = lock(&self.leases).get_mut(&lease) {
            *known = u32::try_from(position).unwrap_or(u32::MAX);
        }
    }

    /// All that it leases.
    pub(super) fn all(&self) -> Vec<u32> {
        let mut all: Vec<_> = lock(&self.leases).keys().copied().collect();
        all.sort_unstable();
        all
    }
}

/// Hashes the number of a lease; we number them ourselves, so nobody can choose numbers that collide.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let seats = Seats::default();
        let numbers = [seats.enter().0, seats.enter().0, seats.enter().0];
        assert_eq!(numbers, [0, 1, 2]);
        seats.leave(1);
        seats.leave(1);
        assert_eq!(seats.read().len(), 2);
        assert_eq!(seats.enter().0, 1);
        assert_eq!(seats.enter().0, 3);
        seats.leave(0);
        let seen: Vec<_> = seats.read().iter().map(|(number, _)| number).collect();
        assert_eq!(seen, [1, 2, 3]);
        assert!(seats.read().get(0).is_none());
    }

    #[test]
    fn a_lease_is_noted_once() {
        let seated = Seated::default();
        assert!(seated.lease(7, 3));
        assert!(!seated.lease(7, 4));
        seated.moved(7, 1);
        seated.moved(8, 1);
        assert_eq!(seated.all(), [7]);
        assert_eq!((seated.release(7), seated.release(7)), (Some(1), None));
    }
}
