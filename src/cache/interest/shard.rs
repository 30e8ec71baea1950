// SPDX-License-Identifier: Apache-2.0
//! One part of a view's leases: which sets wait for what, and since when none does.
//!
//! Owns the life of a lease: wanted, told upstream, lingering, gone. Does not know what is known of a name.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::lease_changes::LeaseChanges;
use super::leases::is_known;
use super::set::Set;
use super::sets::ReadTables;
use super::waiters::Waiters;
use crate::claims::Claims;
use xds::{Cut, Name, Target, TypeUrl, Want};

/// The leases whose targets fall into this part.
pub(super) struct Shard {
    number: u32,
    types: BTreeMap<TypeUrl, Typed>,
    leases: Vec<Option<Lease>>,
    free: Vec<u32>,
    /// Leases that upstream must be told of, or that must begin to linger, at the writer's next turn.
    pending: VecDeque<u32>,
    /// When the last turn was, if some of these were left.
    behind: Option<Instant>,
    lingering: BTreeSet<(Instant, u32)>,
}

struct Typed {
    type_url: Arc<TypeUrl>,
    targets: HashMap<Target, u32>,
}

/// One target that somebody wants, or wanted until a moment ago.
struct Lease {
    type_url: Arc<TypeUrl>,
    target: Target,
    waiters: Waiters,
    /// Whether upstream knows.
    told: bool,
    /// Whether upstream is told of it even if nobody waits for it yet.
    foreseen: bool,
    /// Whether it is in the list of pending leases.
    pending: bool,
    /// When it ends, if nobody wants it and the writer has seen that. Few leases linger.
    until: Option<Box<Instant>>,
}

/// How many leases of one part are looked at in one turn because they have begun, or because nobody waits for them any more.
const NEWS_IN_A_TURN: usize = 64;

/// How many leases are looked at before others may have the part.
pub(super) const LOOKED_AT_ONCE: usize = 256;

/// How many shards there are.
pub(super) const SHARDS: u32 = 16;

impl Shard {
    pub(super) const fn new(number: u32) -> Self {
        Self {
            number,
            types: BTreeMap::new(),
            leases: Vec::new(),
            free: Vec::new(),
            pending: VecDeque::new(),
            behind: None,
            lingering: BTreeSet::new(),
        }
    }

    pub(super) fn find(&self, type_url: &TypeUrl, target: &Target) -> Option<u32> {
        self.types.get(type_url)?.targets.get(target).copied()
    }

    /// Returns the number by which a set knows the lease.
    pub(super) const fn everywhere(&self, number: u32) -> u32 {
        number * SHARDS + self.number
    }

    /// Whether anything of the type is leased.
    pub(super) fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }

    /// Whether any name of the type is leased.
    pub(super) fn has_names(&self, type_url: &TypeUrl) -> bool {
        let mut typed = self
            .types
            .get(type_url)
            .into_iter()
            .flat_map(|typed| typed.targets.keys());
        typed.any(|target| matches!(target, Target::Name(_)))
    }

    /// The names that are leased.
    pub(super) fn names(&self, type_url: &TypeUrl) -> impl Iterator<Item = &Name> {
        let typed = self.types.get(type_url).into_iter();
        typed
            .flat_map(|typed| typed.targets.keys())
            .filter_map(|target| match target {
                Target::Name(name) => Some(name),
                Target::Wildcard => None,
            })
    }

    /// Creates a lease for which nobody waits yet.
    pub(super) fn open(&mut self, type_url: &TypeUrl, target: &Target, hasher: &RandomState) -> u32 {
        let typed = self.types.entry(type_url.clone()).or_insert_with(|| Typed {
            type_url: Arc::new(type_url.clone()),
            targets: HashMap::with_hasher(hasher.clone()),
        });
        let lease = Some(Lease {
            type_url: typed.type_url.clone(),
            target: target.clone(),
            waiters: Waiters::default(),
            told: false,
            foreseen: false,
            pending: false,
            until: None,
        });
        let number = self.free.pop();
        let number = match number.and_then(|number| Some((number, self.leases.get_mut(number as usize)?))) {
            Some((number, place)) => {
                *place = lease;
                number
            }
            None => {
                if self.leases.len() == self.leases.capacity() {
                    // Doubling would leave a third of the memory unused.
                    self.leases.reserve_exact((self.leases.len() / 8).max(4));
                }
                self.leases.push(lease);
                u32::try_from(self.leases.len() - 1).unwrap_or(u32::MAX)
            }
        };
        typed.targets.insert(target.clone(), number);
        number
    }

    /// A set that waits for anything of the type.
    pub(super) fn waiter(&self, type_url: &TypeUrl) -> Option<u32> {
        let mut numbers = self.types.get(type_url)?.targets.values();
        numbers.find_map(|number| self.waiters(*number)?.first())
    }

    /// Returns the sets that wait for a lease.
    pub(super) fn waiters(&self, number: u32) -> Option<&Waiters> {
        let lease = self.leases.get(number as usize)?.as_ref();
        lease.map(|lease| &lease.waiters)
    }

    /// Whether any set waits for a lease.
    pub(super) fn is_wanted(&self, number: u32) -> bool {
        self.waiters(number).is_some_and(|waiters| !waiters.is_empty())
    }

    /// Adds a set whose sessions wait, with the claims of its only session, if it has one yet. Returns whether the writer must be
    /// told.
    pub(super) fn wait(&mut self, number: u32, set: &Set, claims: Option<&Claims>) -> bool {
        let everywhere = self.everywhere(number);
        let Some(Some(lease)) = self.leases.get_mut(number as usize) else {
            return false;
        };
        if !set.insert(everywhere) {
            return false;
        }
        if lease.waiters.is_empty() {
            set.claim(claims);
        }
        lease.waiters.insert(set.number);
        if let Some(until) = lease.until.take() {
            self.lingering.remove(&(*until, number));
        }
        !lease.told && note(&mut self.pending, lease, number)
    }

    /// Somebody is about to wait for it.
    pub(super) fn foresee(&mut self, number: u32) {
        if let Some(Some(lease)) = self.leases.get_mut(number as usize) {
            lease.foreseen = true;
            note(&mut self.pending, lease, number);
        }
    }

    /// Removes a set whose sessions wait. Returns whether that was the last one.
    pub(super) fn release(&mut self, number: u32, sets: &ReadTables<'_>, set: &Set) -> bool {
        let everywhere = self.everywhere(number);
        let Some(Some(lease)) = self.leases.get_mut(number as usize) else {
            return false;
        };
        if !set.remove(everywhere) {
            return false;
        }
        let was_first = lease.waiters.first() == Some(set.number);
        lease.waiters.remove(set.number);
        if was_first {
            sets.unclaim(set);
            let next = lease.waiters.first().and_then(|next| sets.set(next));
            next.into_iter().for_each(|next| sets.claim(next));
        }
        if lease.waiters.is_empty() {
            note(&mut self.pending, lease, number);
        }
        lease.waiters.is_empty()
    }

    /// Upstream may be told of the type from now on.
    pub(super) fn tell(&mut self, type_url: &TypeUrl) {
        let typed = self.types.get(type_url);
        let numbers = typed.into_iter().flat_map(|typed| typed.targets.values());
        for number in numbers {
            if let Some(Some(lease)) = self.leases.get_mut(*number as usize) {
                note(&mut self.pending, lease, *number);
            }
        }
    }

    /// Adds what has begun and what has ended since the last call to `turn`. If `linger` is zero, leases end at once. `told` says
    /// whether upstream may be told of a type.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        linger: Duration,
        fleeting: &impl Fn(&TypeUrl, &Target) -> bool,
        told: &impl Fn(&TypeUrl) -> bool,
        turn: &mut LeaseChanges,
    ) {
        for _ in 0..NEWS_IN_A_TURN {
            let Some(number) = self.pending.pop_front() else {
                self.pending = VecDeque::new();
                break;
            };
            let Some(Some(lease)) = self.leases.get_mut(number as usize) else {
                continue;
            };
            lease.pending = false;
            if let Some(waiter) = lease.waiters.first() {
                if !lease.told && told(&lease.type_url) {
                    lease.told = true;
                    turn.wants.push(lease.want(true));
                } else if !lease.told {
                    turn.new.push((lease.type_url.clone(), waiter));
                }
            } else if !lease.told && (!lease.foreseen || linger.is_zero()) {
                // K-23: upstream never heard of it, so there is nothing to linger for.
                self.close(number, turn);
            } else if lease.until.is_none() {
                if !std::mem::replace(&mut lease.told, true) {
                    turn.wants.push(lease.want(true));
                }
                let linger = if fleeting(&lease.type_url, &lease.target) {
                    Duration::ZERO
                } else {
                    linger
                };
                let until = now.checked_add(jittered(linger, &lease.target)).unwrap_or(now);
                lease.until = Some(Box::new(until));
                self.lingering.insert((until, number));
            }
        }
        self.behind = (!self.pending.is_empty()).then_some(now);
        turn.more |= self.behind.is_some();
        while let Some((until, number)) = self.lingering.first().copied()
            && (until <= now || linger.is_zero())
            && !turn.is_full()
        {
            self.lingering.pop_first();
            self.close(number, turn);
        }
        self.shrink();
    }

    /// When the next turn is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.behind.or_else(|| Some(self.lingering.first()?.0))
    }

    /// Calls `found` with each set that waits for anything of the type.
    pub(super) fn everyone(&self, type_url: &TypeUrl, mut found: impl FnMut(u32)) {
        for number in self
            .types
            .get(type_url)
            .into_iter()
            .flat_map(|typed| typed.targets.values())
        {
            let waiters = self.waiters(*number).into_iter();
            waiters.flat_map(Waiters::iter).for_each(&mut found);
        }
    }

    /// Adds what somebody waits for, of some leases from this one on. Returns from which one to go on, if there are more.
    pub(super) fn wanted_from(&self, from: usize, wanted: &mut Vec<(Arc<TypeUrl>, Target)>) -> Option<usize> {
        let to = from.saturating_add(LOOKED_AT_ONCE);
        let some = self.leases.get(from..to.min(self.leases.len())).into_iter().flatten();
        let some = some.flatten().filter(|lease| !lease.waiters.is_empty());
        wanted.extend(some.map(|lease| (lease.type_url.clone(), lease.target.clone())));
        (to < self.leases.len()).then_some(to)
    }

    /// Adds the types of which somebody waits for the target, and nothing is known of it.
    pub(super) fn unanswered_of(&self, target: &Target, cut: &Cut, unanswered: &mut Vec<TypeUrl>) {
        for (type_url, typed) in &self.types {
            let wanted = typed.targets.get(target).is_some_and(|number| self.is_wanted(*number));
            if wanted && !is_known(target, cut.slot(type_url)) {
                unanswered.push(type_url.clone());
            }
        }
    }

    fn close(&mut self, number: u32, turn: &mut LeaseChanges) {
        let Some(lease) = self.leases.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(number);
        if let Some(typed) = self.types.get_mut(&*lease.type_url) {
            typed.targets.remove(&lease.target);
            if typed.targets.is_empty() {
                self.types.remove(&*lease.type_url);
            } else if typed.targets.len() * 4 < typed.targets.capacity() {
                typed.targets.shrink_to_fit();
            }
        }
        if lease.told {
            turn.wants.push(lease.want(false));
        }
        turn.ended.push(((*lease.type_url).clone(), lease.target));
    }

    /// Frees memory that was needed for more leases.
    fn shrink(&mut self) {
        let before = self.leases.len();
        while matches!(self.leases.last(), Some(None)) {
            self.leases.pop();
        }
        let end = self.leases.len();
        if end < before {
            self.free.retain(|number| (*number as usize) < end);
        }
        if end * 4 < self.leases.capacity() {
            self.leases.shrink_to_fit();
            self.free.shrink_to_fit();
        }
    }
}

impl Lease {
    fn want(&self, wanted: bool) -> Want {
        Want {
            type_url: (*self.type_url).clone(),
            target: self.target.clone(),
            wanted,
            written: None,
        }
    }
}

fn note(pending: &mut VecDeque<u32>, lease: &mut Lease, number: u32) -> bool {
    if !lease.pending {
        lease.pending = true;
        pending.push_back(number);
    }
    true
}

/// K-01: leases that were wanted together must not end together. The jitter comes from the name, so no random source is needed.
fn jittered(linger: Duration, target: &Target) -> Duration {
    let text = match target {
        Target::Wildcard => Name::WILDCARD,
        Target::Name(name) => name.as_str(),
    };
    let permille = 800 + u32::try_from(xxh3_64(text.as_bytes()) % 401).unwrap_or_default();
    (linger / 1000).saturating_mul(permille)
}
