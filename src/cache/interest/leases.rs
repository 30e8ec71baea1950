// SPDX-License-Identifier: Apache-2.0
//! Who wants what of one view.
//!
//! Owns the split into shards and the bound on how much can be wanted. Does not know what is known of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

use super::lease_changes::LeaseChanges;
use super::new_types::NewTypes;
use super::set::Set;
use super::sets::Sets;
use super::shard::{SHARDS, Shard};
use super::waiters::Waiters;
use crate::Full;
use crate::claims::{Claims, is_fair};
use crate::vacancy::{NAME_BYTES, Vacancy};
use xds::{Cut, Name, Slot, Target, TypeUrl};

/// All leases of one view, in shards by target, because many sessions come and go at the same time.
pub(crate) struct Leases {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    /// How long a lease is kept that nobody wants, in nanoseconds.
    linger: AtomicU64,
    /// The most targets that may be wanted at the same time; 0: no bound.
    limit: AtomicUsize,
    new_types: Mutex<NewTypes>,
    /// How many targets somebody wants.
    wanted: AtomicUsize,
    /// How many leases there are, lingering ones included.
    kept: AtomicUsize,
    vacancy: Arc<Vacancy>,
}

/// Up to so many collections are compared with each name. For more, it is quicker to look up the collection of the name.
const FEW: usize = 16;

/// Whether anything is known of the target of a type.
pub(super) fn is_known(target: &Target, slot: Option<&Slot>) -> bool {
    slot.is_some_and(|slot| match target {
        Target::Wildcard => slot.wildcard.as_ref().is_some_and(|state| state.complete()),
        Target::Name(name) => slot.known(name).is_some(),
    })
}

impl Leases {
    pub(crate) fn new(linger: Duration, limit: usize, vacancy: Arc<Vacancy>) -> Self {
        let leases = Self {
            shards: (0..SHARDS).map(|number| Mutex::new(Shard::new(number))).collect(),
            hasher: RandomState::new(),
            linger: AtomicU64::new(0),
            limit: AtomicUsize::new(0),
            new_types: Mutex::default(),
            wanted: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            vacancy,
        };
        leases.set(linger, limit);
        leases
    }

    /// Replaces both bounds.
    pub(crate) fn set(&self, linger: Duration, limit: usize) {
        let linger = u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        self.linger.store(linger, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the number of a lease.
    pub(crate) fn find(&self, type_url: &TypeUrl, target: &Target) -> Option<u32> {
        let shard = self.shard(target).lock();
        shard.find(type_url, target).map(|number| shard.everywhere(number))
    }

    /// A set, which only one session has, begins to want the target. Returns whether the writer must be told.
    pub(crate) fn begin(&self, type_url: &TypeUrl, target: &Target, set: &Set, claims: &Claims) -> Result<bool, Full> {
        let mut shard = self.shard(target).lock();
        let found = shard.find(type_url, target);
        if !found.is_some_and(|number| shard.is_wanted(number)) {
            self.admit(found.is_none(), claims)?;
        }
        let number = match found {
            Some(number) => number,
            None => shard.open(type_url, target, &self.hasher),
        };
        Ok(shard.wait(number, set, Some(claims)))
    }

    /// Upstream is told of the target although nobody wants it yet: somebody is about to. It lingers from then on.
    pub(crate) fn foresee(&self, type_url: &TypeUrl, target: &Target) -> bool {
        let mut shard = self.shard(target).lock();
        let new = shard.find(type_url, target).is_none();
        if new {
            self.kept.fetch_add(1, Ordering::Relaxed);
            let number = shard.open(type_url, target, &self.hasher);
            shard.foresee(number);
        }
        new
    }

    /// Makes a set a copy of another one.
    pub(crate) fn copy(&self, from: &Set, to: &Set) {
        for lease in from.all() {
            if let Some(shard) = self.shards.get((lease % SHARDS) as usize) {
                shard.lock().wait(lease / SHARDS, to, None);
            }
        }
    }

    /// A set does not want the target any more. Returns whether the writer must be told.
    pub(crate) fn end(&self, type_url: &TypeUrl, target: &Target, sets: &Sets, set: &Set) -> bool {
        let sets = sets.read();
        let mut shard = self.shard(target).lock();
        let last = shard
            .find(type_url, target)
            .is_some_and(|number| shard.release(number, &sets, set));
        if last {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
        }
        last
    }

    /// A set wants nothing any more: ends at most this many of its leases. Returns whether the writer must be told.
    pub(crate) fn end_some(&self, sets: &Sets, set: &Set, most: usize) -> bool {
        let mut any = false;
        for lease in set.some(most) {
            let Some(shard) = self.shards.get((lease % SHARDS) as usize) else {
                continue;
            };
            let sets = sets.read();
            let last = shard.lock().release(lease / SHARDS, &sets, set);
            if last {
                self.wanted.fetch_sub(1, Ordering::Relaxed);
            }
            any |= last;
        }
        any
    }

    /// Returns what has begun and what has ended since the last call, in the order of types and names.
    /// A `fleeting` lease ends as soon as nobody wants it.
    pub(crate) fn turn(
        &self,
        now: Instant,
        sets: &Sets,
        fleeting: &impl Fn(&TypeUrl, &Target) -> bool,
    ) -> LeaseChanges {
        // Lingering leases must not keep out what somebody wants.
        let limit = self.limit.load(Ordering::Relaxed);
        let pressed = limit > 0 && self.kept.load(Ordering::Relaxed) > limit;
        let linger = Duration::from_nanos(self.linger.load(Ordering::Relaxed));
        let linger = if pressed { Duration::ZERO } else { linger };
        let crowded = self.new_types.lock().is_crowded();
        let fleeting =
            |type_url: &TypeUrl, target: &Target| crowded && !type_url.is_of_table() || fleeting(type_url, target);
        let told = |type_url: &TypeUrl| type_url.is_of_table() || self.new_types.lock().is_told(type_url);
        let mut turn = LeaseChanges::default();
        for shard in &self.shards {
            shard.lock().turn(now, linger, &fleeting, &told, &mut turn);
        }
        loop {
            let types = self.tell_types(now, sets, std::mem::take(&mut turn.new));
            if types.is_empty() {
                break;
            }
            for shard in &self.shards {
                let mut shard = shard.lock();
                types.iter().for_each(|type_url| shard.tell(type_url));
                shard.turn(now, linger, &fleeting, &told, &mut turn);
            }
        }
        self.forget_types(&turn.ended);
        self.kept.fetch_sub(turn.ended.len(), Ordering::Relaxed);
        turn.wants
            .sort_unstable_by(|a, b| (&a.type_url, &a.target).cmp(&(&b.type_url, &b.target)));
        turn.ended.sort_unstable();
        turn
    }

    /// When the next lease ends, upstream can be told of the next new type, or the last turn has left something.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let new_types = self.new_types.lock().poll_timeout();
        let ends = self.shards.iter().filter_map(|shard| shard.lock().poll_timeout());
        ends.chain(new_types).min()
    }

    /// How many new types wait until upstream may be told of them.
    pub(crate) fn waiting_types(&self) -> usize {
        self.new_types.lock().waiting()
    }

    /// Returns the wanted targets of which nothing is known, in the order of types and names.
    pub(crate) fn unanswered(&self, cut: &Cut) -> Vec<(TypeUrl, Target)> {
        let mut unanswered = Vec::new();
        self.for_unanswered(cut, |type_url, target| unanswered.push((type_url.clone(), target)));
        unanswered.sort_unstable();
        unanswered
    }

    /// Returns the wanted targets of a type of which nothing is known, in the order of names.
    pub(crate) fn unanswered_in(&self, of: &TypeUrl, cut: &Cut) -> Vec<Target> {
        let mut unanswered = Vec::new();
        self.for_unanswered(cut, |type_url, target| {
            unanswered.extend((type_url == of).then_some(target))
        });
        unanswered.sort_unstable();
        unanswered
    }

    /// Calls `found` with the wanted targets of which nothing is known. There may be very many, and whoever serves clients needs the parts
    /// meanwhile: each is held for a few microseconds at a time, and whoever waits for it comes first.
    fn for_unanswered(&self, cut: &Cut, mut found: impl FnMut(&TypeUrl, Target)) {
        let mut wanted = Vec::new();
        for shard in &self.shards {
            let mut next = Some(0);
            while let Some(from) = next {
                let held = shard.lock();
                next = held.wanted_from(from, &mut wanted);
                MutexGuard::unlock_fair(held);
                for (type_url, target) in wanted.drain(..) {
                    if !is_known(&target, cut.slot(&type_url)) {
                        found(&type_url, target);
                    }
                }
            }
        }
    }

    /// Returns the types of which the target is wanted, and nothing is known of it.
    pub(crate) fn unanswered_of(&self, target: &Target, cut: &Cut) -> Vec<TypeUrl> {
        let mut unanswered = Vec::new();
        self.shard(target).lock().unanswered_of(target, cut, &mut unanswered);
        unanswered
    }

    /// Whether any set waits for the target.
    pub(crate) fn is_wanted(&self, type_url: &TypeUrl, target: &Target) -> bool {
        let shard = self.shard(target).lock();
        let found = shard.find(type_url, target);
        found.is_some_and(|number| shard.is_wanted(number))
    }

    /// Calls `found` with each set that waits for the target.
    pub(crate) fn waiters(&self, type_url: &TypeUrl, target: &Target, found: impl FnMut(u32)) {
        let shard = self.shard(target).lock();
        if let Some(number) = shard.find(type_url, target) {
            let waiters = shard.waiters(number).into_iter();
            waiters.flat_map(Waiters::iter).for_each(found);
        }
    }

    /// Calls `found` with each set that waits for anything of the type, perhaps several times.
    pub(crate) fn everyone(&self, type_url: &TypeUrl, mut found: impl FnMut(u32)) {
        for shard in &self.shards {
            shard.lock().everyone(type_url, &mut found);
        }
    }

    /// Whether the name is leased, lingering included.
    pub(crate) fn has(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let target = Target::Name(name.clone());
        self.shard(&target).lock().find(type_url, &target).is_some()
    }

    /// Returns the names in these collections that are leased by themselves, lingering included, in order.
    pub(crate) fn within(&self, type_url: &TypeUrl, collections: &BTreeSet<Name>) -> Vec<Name> {
        let mut names = Vec::new();
        if collections.is_empty() {
            return names;
        }
        let few: Option<Vec<_>> = (collections.len() <= FEW).then(|| collections.iter().map(Name::coverage).collect());
        let is_within = |name: &&Name| match &few {
            Some(few) => few.iter().any(|covers| covers(name)),
            None => name.collection().is_some_and(|of| collections.contains(&of)),
        };
        for shard in &self.shards {
            names.extend(shard.lock().names(type_url).filter(is_within).cloned());
        }
        names.sort_unstable();
        names
    }

    /// Whether any name of the type is leased, lingering included.
    pub(crate) fn has_names(&self, type_url: &TypeUrl) -> bool {
        self.shards.iter().any(|shard| shard.lock().has_names(type_url))
    }

    /// Whether anything of the type is leased, lingering included.
    pub(crate) fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.shards.iter().any(|shard| shard.lock().has_type(type_url))
    }

    /// How many targets somebody wants, and how many are leased, lingering included.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.wanted.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed))
    }

    /// Returns the types of which upstream may be told now; `new` are further ones.
    fn tell_types(&self, now: Instant, sets: &Sets, new: Vec<(Arc<TypeUrl>, u32)>) -> Vec<TypeUrl> {
        let connection = |set| sets.read().claims(set).map(Claims::number);
        let mut new_types = self.new_types.lock();
        for (type_url, set) in new {
            new_types.meet(&type_url, connection(set).unwrap_or_default());
        }
        if !new_types.is_due(now) {
            return Vec::new();
        }
        let mut own = BTreeMap::new();
        if new_types.is_crowded() {
            let mut count = |type_url| {
                let waiter = self.shards.iter().find_map(|shard| shard.lock().waiter(type_url));
                let connection = waiter.and_then(connection);
                connection.into_iter().for_each(|of| *own.entry(of).or_default() += 1);
            };
            new_types.told().for_each(&mut count);
        }
        new_types.tell(now, own)
    }

    /// Forgets the types of which nothing is leased any more.
    fn forget_types(&self, ended: &[(TypeUrl, Target)]) {
        for (type_url, _) in ended {
            if !type_url.is_of_table() && !self.has_type(type_url) {
                self.new_types.lock().forget(type_url);
            }
        }
    }

    /// Counts one more wanted target, and one more lease if it is `new`. With lingering leases there may be twice as many as the
    /// bound, until the writer's next turn.
    fn admit(&self, new: bool, claims: &Claims) -> Result<(), Full> {
        let wanted = self.wanted.fetch_add(1, Ordering::Relaxed);
        let kept = self.kept.fetch_add(usize::from(new), Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let left = limit.saturating_sub(wanted);
        let fair = is_fair(claims.names(), left);
        if new && let Err(full) = self.vacancy.take(NAME_BYTES, claims.names()) {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
            self.kept.fetch_sub(1, Ordering::Relaxed);
            return Err(full);
        }
        if limit > 0 && (!fair || new && kept >= limit.saturating_mul(2)) {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
            self.kept.fetch_sub(usize::from(new), Ordering::Relaxed);
            return Err(Full {
                limit: "names_per_view",
                value: limit,
                own: claims.names(),
                left: if fair { 0 } else { left },
            });
        }
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of shards")]
    fn shard(&self, target: &Target) -> &Mutex<Shard> {
        let text = match target {
            Target::Wildcard => Name::WILDCARD,
            Target::Name(name) => name.as_str(),
        };
        &self.shards[(xxh3_64(text.as_bytes()) % u64::from(SHARDS)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::shard::LOOKED_AT_ONCE;
    use super::*;

    /// However many leases there are, the part is free again after some of them.
    #[test]
    fn leases_are_looked_at_some_at_a_time() {
        let (mut shard, hasher) = (Shard::new(0), RandomState::new());
        let type_url = TypeUrl::new("a");
        let set = Set::new(0);
        for name in 0..3 * LOOKED_AT_ONCE + 1 {
            let number = shard.open(&type_url, &Target::Name(Name::from(&*name.to_string())), &hasher);
            if name % 2 == 0 {
                shard.wait(number, &set, None);
            }
        }
        let (mut wanted, mut next, mut looks) = (Vec::new(), Some(0), 0);
        while let Some(from) = next {
            let before = wanted.len();
            next = shard.wanted_from(from, &mut wanted);
            looks += 1;
            assert!(wanted.len() - before <= LOOKED_AT_ONCE / 2);
        }
        wanted.sort_unstable();
        wanted.dedup();
        assert_eq!((looks, wanted.len()), (4, 3 * LOOKED_AT_ONCE / 2 + 1));
    }
}
