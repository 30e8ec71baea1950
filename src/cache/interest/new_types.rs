// SPDX-License-Identifier: Apache-2.0
//! Types that are in no table, from the first wish of a client until nobody wants anything of them.
//!
//! Owns how fast upstream is told of new ones, and in whose order: every type costs requests of its own, and clients can invent any
//! number. Does not know what is wanted of a type, or by whom: the caller says.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

use crate::claims::is_fair;
use xds::TypeUrl;

/// The types of one view that are in no table.
///
/// Connections with types that wait have their turns one after the other, so that nobody waits behind all types of another one.
#[derive(Debug, Default)]
pub(super) struct NewTypes {
    types: BTreeMap<TypeUrl, TypeState>,
    /// The types that wait, for each connection, in the order in which they came.
    waiting: BTreeMap<u64, BTreeSet<(u64, TypeUrl)>>,
    arrivals: u64,
    /// The connection whose turn was last.
    last: u64,
    /// How many types upstream was told of.
    told: usize,
    /// The time up to which these have used up the rate.
    paid: Option<Instant>,
    /// Whether no connection may have more types until one is forgotten.
    full: bool,
}

#[derive(Clone, Copy, Debug)]
enum TypeState {
    Told,
    Waits { connection: u64, arrival: u64 },
}

/// How many types there may be of which upstream was told.
const TYPES_MAX: usize = 1024;
/// How many types upstream is told of at once, and then one in each interval.
const BURST: u32 = 64;
const INTERVAL: Duration = Duration::from_millis(50);

impl NewTypes {
    /// Whether upstream may be asked for the type, which is in no table.
    pub(super) fn is_told(&self, type_url: &TypeUrl) -> bool {
        matches!(self.types.get(type_url), Some(TypeState::Told))
    }

    /// Whether there are so many types that nobody keeps one that is not wanted.
    pub(super) const fn is_crowded(&self) -> bool {
        self.told * 2 >= TYPES_MAX
    }

    /// The types that upstream was told of.
    pub(super) fn told(&self) -> impl Iterator<Item = &TypeUrl> {
        let told = |(type_url, state)| matches!(state, &TypeState::Told).then_some(type_url);
        self.types.iter().filter_map(told)
    }

    /// How many types wait.
    pub(super) fn waiting(&self) -> usize {
        self.types.len() - self.told
    }

    /// A connection wants something of a type. If the type waits, it waits with the connection that has fewer of them.
    pub(super) fn meet(&mut self, type_url: &TypeUrl, connection: u64) {
        match self.types.get(type_url) {
            Some(TypeState::Told) => return,
            Some(TypeState::Waits { connection: other, .. }) if self.before(*other) <= self.before(connection) => {
                return;
            }
            Some(TypeState::Waits { .. }) => self.forget(type_url),
            None => {}
        }
        self.full = false;
        self.arrivals += 1;
        let arrival = self.arrivals;
        let waits = TypeState::Waits { connection, arrival };
        self.types.insert(type_url.clone(), waits);
        let waiting = self.waiting.entry(connection).or_default();
        waiting.insert((arrival, type_url.clone()));
    }

    /// Nobody wants anything of the type any more.
    pub(super) fn forget(&mut self, type_url: &TypeUrl) {
        match self.types.remove(type_url) {
            Some(TypeState::Told) => self.told -= 1,
            Some(TypeState::Waits { connection, arrival }) => self.leave(connection, arrival, type_url),
            None => return,
        }
        self.full = false;
    }

    /// Returns the types that upstream may be asked for from now on. `own` is how many each connection has already, if the types
    /// are crowded.
    pub(super) fn tell(&mut self, now: Instant, mut own: BTreeMap<u64, usize>) -> Vec<TypeUrl> {
        let mut told = Vec::new();
        while self.next() <= Some(now)
            && let Some((connection, arrival, type_url)) = self.first(&own)
        {
            self.leave(connection, arrival, &type_url);
            self.types.insert(type_url.clone(), TypeState::Told);
            self.told += 1;
            self.last = connection;
            self.paid = Some(self.paid.map_or(now, |paid| paid.max(now)) + INTERVAL);
            *own.entry(connection).or_default() += 1;
            told.push(type_url);
        }
        told
    }

    /// Whether there may be types to tell.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.full && !self.waiting.is_empty() && self.next() <= Some(now)
    }

    /// When the next type can be told.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let waits = !self.full && !self.waiting.is_empty();
        waits.then(|| self.next()).flatten()
    }

    /// When the rate allows one more; none if it always does.
    fn next(&self) -> Option<Instant> {
        self.paid?.checked_sub(INTERVAL * (BURST - 1))
    }

    /// Returns the type whose turn is next.
    fn first(&mut self, own: &BTreeMap<u64, usize>) -> Option<(u64, u64, TypeUrl)> {
        let left = TYPES_MAX - self.told.min(TYPES_MAX);
        let after = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded));
        let mut turns = after.chain(self.waiting.range(..=self.last));
        let fair = |connection| is_fair(own.get(connection).copied().unwrap_or_default(), left);
        let turn = turns.find(|(connection, _)| fair(*connection));
        let first = turn.and_then(|(connection, waiting)| {
            let (arrival, type_url) = waiting.first()?;
            Some((*connection, *arrival, type_url.clone()))
        });
        self.full = first.is_none();
        first
    }

    fn before(&self, connection: u64) -> usize {
        self.waiting.get(&connection).map_or(0, BTreeSet::len)
    }

    fn leave(&mut self, connection: u64, arrival: u64, type_url: &TypeUrl) {
        if let Some(waiting) = self.waiting.get_mut(&connection) {
            waiting.remove(&(arrival, type_url.clone()));
            if waiting.is_empty() {
                self.waiting.remove(&connection);
            }
        }
    }
}
