// SPDX-License-Identifier: Apache-2.0
//! Clients whose last stream ended because nobody had answered.
//!
//! Owns since when each of them waits while it has no stream, and how long that is remembered. When it comes back, its stream has waited
//! since then. Knows nothing of streams.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use crate::xds::TypeUrl;

/// The clients that wait and have no stream.
#[derive(Debug, Default)]
pub struct Unserved(Mutex<KnownWaiters>);

/// Which client it is, as far as that can be told: those with one node id, at one address, that use one service, are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller(u64);

#[derive(Debug, Default)]
struct KnownWaiters {
    /// The number tells callers that are alike from each other.
    waiters: BTreeMap<(Caller, u32), Waiter>,
    last: u32,
}

#[derive(Debug)]
struct Waiter {
    /// One of the types for which it waits.
    type_url: TypeUrl,
    since: Instant,
    until: Instant,
}

/// A client that has not come back in this time is forgotten. The longest pause of a gRPC client is 144 s.
const AWAY_MAX: Duration = Duration::from_secs(150);
/// How many are remembered. Others wait from anew with each stream.
const REMEMBERED_MAX: usize = 65_536;

impl Caller {
    /// The client with this node id at this address; `service` is that of its stream.
    #[must_use]
    pub fn new(node_id: &str, address: Option<IpAddr>, service: Option<&TypeUrl>) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&(node_id.len() as u64).to_le_bytes());
        hash.update(node_id.as_bytes());
        hash.update(service.map_or("", TypeUrl::url).as_bytes());
        match address {
            Some(IpAddr::V4(address)) => hash.update(&address.octets()),
            Some(IpAddr::V6(address)) => hash.update(&address.octets()),
            None => {}
        }
        Self(hash.digest())
    }

    const fn all(self) -> std::ops::RangeInclusive<(Self, u32)> {
        (self, 0)..=(self, u32::MAX)
    }
}

impl Unserved {
    /// A stream of the client has ended unanswered, after it had waited since then.
    pub fn leave(&self, caller: Caller, type_url: &TypeUrl, since: Instant, now: Instant) {
        let known = &mut *self.0.lock();
        if known.waiters.len() >= REMEMBERED_MAX {
            known.forget(now);
        }
        if known.waiters.len() < REMEMBERED_MAX {
            known.last = known.last.wrapping_add(1);
            let waiter = Waiter {
                type_url: type_url.clone(),
                since,
                until: now + AWAY_MAX,
            };
            known.waiters.insert((caller, known.last), waiter);
        }
    }

    /// The client begins a stream. Returns since when it has waited for an answer, if its last one ended unanswered.
    pub fn come_back(&self, caller: Caller, now: Instant) -> Option<Instant> {
        let waiters = &mut self.0.lock().waiters;
        loop {
            let (key, _) = waiters.range(caller.all()).next()?;
            let key = *key;
            let waiter = waiters.remove(&key)?;
            if now < waiter.until {
                return Some(waiter.since);
            }
        }
    }

    /// Returns for which type each of them waits that has waited for so long.
    pub fn after(&self, patience: Duration, now: Instant) -> Vec<TypeUrl> {
        let known = &mut *self.0.lock();
        known.forget(now);
        let waiters = known.waiters.values();
        let long = waiters.filter(|waiter| now.saturating_duration_since(waiter.since) >= patience);
        long.map(|waiter| waiter.type_url.clone()).collect()
    }
}

impl KnownWaiters {
    /// Forgets those that have not come back.
    fn forget(&mut self, now: Instant) {
        self.waiters.retain(|_, waiter| now < waiter.until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn cds() -> TypeUrl {
        TypeUrl::called("cds").unwrap()
    }

    fn at(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    /// Each of those that are alike is remembered, each comes back once, and nobody comes back as somebody else.
    #[test]
    fn clients_that_are_alike() {
        let (unserved, start) = (Unserved::default(), clock::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let one = Caller::new("a", at(1), None);
        unserved.leave(one, &cds(), after(0), after(8));
        unserved.leave(one, &cds(), after(2), after(10));
        for other in [
            Caller::new("a", at(2), None),
            Caller::new("b", at(1), None),
            Caller::new("a", at(1), Some(&cds())),
            Caller::new("a", None, None),
        ] {
            assert_eq!(unserved.come_back(other, after(11)), None);
        }
        let long = |seconds| unserved.after(Duration::from_secs(10), after(seconds)).len();
        assert_eq!([9, 10, 12].map(long), [0, 1, 2]);
        assert_eq!(unserved.come_back(one, after(12)), Some(after(0)));
        assert_eq!(unserved.come_back(one, after(12)), Some(after(2)));
        assert_eq!((unserved.come_back(one, after(12)), long(20)), (None, 0));
    }

    #[test]
    fn who_does_not_come_back_is_forgotten() {
        let (unserved, start) = (Unserved::default(), clock::now());
        let one = Caller::new("a", at(1), None);
        for number in 0..REMEMBERED_MAX + 10 {
            let caller = Caller::new(&number.to_string(), at(1), None);
            unserved.leave(caller, &cds(), start, start);
        }
        let known = |now| {
            (
                unserved.after(Duration::ZERO, now).len(),
                unserved.0.lock().waiters.len(),
            )
        };
        assert_eq!(known(start), (REMEMBERED_MAX, REMEMBERED_MAX));
        let over = start + AWAY_MAX;
        // Those that are over make room.
        unserved.leave(one, &cds(), start, over);
        assert_eq!(known(over), (1, 1));
        assert_eq!(unserved.come_back(one, over + AWAY_MAX), None);
        assert_eq!(known(over), (0, 0));
    }
}
