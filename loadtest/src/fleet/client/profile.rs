// SPDX-License-Identifier: Apache-2.0
//! The profile of a client: what it asks for, in which form of the protocol, and how it behaves. All clients of a group share
//! one. It is data; nothing here acts.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fleet::identity::ClientIdentity;
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};

/// What all clients of a group share.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) dialect: Dialect,
    /// One stream for all types, or one for each.
    pub(crate) aggregated: bool,
    /// Whether it asks the relay above the one under test.
    pub(crate) above: bool,
    pub(crate) interests: Vec<(Kind, Interest)>,
    /// If set, it polls instead of using streams, and waits so long after each answer.
    pub(crate) polls: Option<Duration>,
    pub(crate) behaviour: Behaviour,
    pub(crate) identity: Arc<ClientIdentity>,
}

/// What a client asks for of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Everything.
    All,
    /// So many names of its own choice.
    Names(Names),
    /// The references of the resources of other types that it holds.
    Follow,
    /// So many names, one after the other, this long apart.
    Demand(Names, Duration),
}

impl Interest {
    /// All clusters and listeners, and the endpoints and routes that those name.
    pub(crate) const ROUTING: [(Kind, Self); 4] = [
        (Kind::Cds, Self::All),
        (Kind::Eds, Self::Follow),
        (Kind::Lds, Self::All),
        (Kind::Rds, Self::Follow),
    ];
}

/// Which names a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Names {
    pub(crate) count: u32,
    /// Whether the names are random; else they are neighbours in the ring of all names.
    #[serde(default)]
    pub(crate) random: bool,
    /// How many different sets of names the clients have.
    pub(crate) sets: Option<u32>,
    /// Resource number i of the first few is wanted by exactly the first `hot[i]` clients, in addition to their other names.
    #[serde(default)]
    pub(crate) hot: [u32; HOT],
}

/// How many resources may be wanted by a known number of clients.
pub(crate) const HOT: usize = 3;

/// How a client behaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Behaviour {
    pub(crate) acks: Acks,
    /// It stops reading once it has everything.
    pub(crate) stalls: bool,
    /// It leaves and comes back, after times with this mean.
    pub(crate) flaps: Option<Duration>,
    /// It comes back when its stream ends; if false, the end is a violation.
    pub(crate) returns: bool,
    /// It comes back with the versions of what it holds.
    pub(crate) remembers: bool,
}

/// How a client answers responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Acks {
    Yes,
    /// After a while.
    Late(Delay),
    Never,
    /// It rejects one response in so many, once it has everything.
    Rejects(u32),
}

/// A time with a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delay {
    Uniform(Duration, Duration),
    /// With this mean.
    Exponential(Duration),
}

impl Default for Names {
    fn default() -> Self {
        Self {
            count: 100,
            random: false,
            sets: None,
            hot: [0; HOT],
        }
    }
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            acks: Acks::Yes,
            stalls: false,
            flaps: None,
            returns: false,
            remembers: true,
        }
    }
}

impl Behaviour {
    /// Whether the client gets everything in time, so that scenarios may wait for it.
    pub(crate) const fn is_steady(&self) -> bool {
        matches!(self.acks, Acks::Yes | Acks::Late(_)) && !self.stalls && self.flaps.is_none()
    }
}

impl Delay {
    /// Returns the time for draw number `draw` of client `number`.
    pub(crate) fn draw(self, number: u32, draw: u64) -> Duration {
        let random = xxh3_64_with_seed(&draw.to_le_bytes(), u64::from(number));
        #[expect(clippy::cast_precision_loss, reason = "a number between 0 and 1")]
        let share = ((random >> 11) as f64 / (1_u64 << 53) as f64).max(f64::MIN_POSITIVE);
        match self {
            Self::Uniform(from, to) => from + to.saturating_sub(from).mul_f64(share),
            // Times beyond ten times the mean add nothing.
            Self::Exponential(mean) => mean.mul_f64((-share.ln()).min(10.0)),
        }
    }
}

impl Names {
    /// Returns what client `number` asks for of `resources`.
    pub(crate) fn of(self, number: u32, resources: u32) -> Vec<u32> {
        let hot = (0_u32..).zip(self.hot).filter(|(_, clients)| *clients > 0);
        let first = u32::try_from(hot.clone().count()).unwrap_or(0);
        let own = hot.filter(|(_, clients)| number < *clients).map(|(index, _)| index);
        let others = self.some_of(number, resources.saturating_sub(first));
        own.chain(others.into_iter().map(|index| index + first)).collect()
    }

    fn some_of(self, number: u32, resources: u32) -> Vec<u32> {
        let set = self.sets.map_or(number, |sets| number % sets.max(1));
        let count = self.count.min(resources);
        let ring = u64::from(resources.max(1));
        if !self.random {
            let first = u64::from(set) * 7919 % ring;
            let names = (0..u64::from(count)).map(|at| u32::try_from((first + at) % ring));
            return names.flatten().collect();
        }
        let (mut names, mut draw) = (std::collections::BTreeSet::new(), 0_u64);
        while names.len() < usize::try_from(count).unwrap_or_default() {
            let random = xxh3_64_with_seed(&draw.to_le_bytes(), u64::from(set));
            names.extend(u32::try_from(random % ring));
            draw += 1;
        }
        names.into_iter().collect()
    }
}

impl Profile {
    /// Returns what client `number` will ask for of a type, however it learns the names.
    pub(crate) fn wants(&self, number: u32, kind: Kind, world: &Arc<World>) -> Option<Wanted> {
        let (_, interest) = self.interests.iter().find(|(it, _)| *it == kind)?;
        let resources = world.ledger(kind)?.len();
        Some(match interest {
            Interest::All => Wanted::All,
            Interest::Names(names) | Interest::Demand(names, _) => Wanted::Some(names.of(number, resources)),
            Interest::Follow => {
                let mut found = Vec::new();
                for (parent, _) in &self.interests {
                    let Some(ledger) = world.ledger(*parent) else { continue };
                    let leads_here = |index| ledger.refers(index).filter(|(to, _)| *to == kind);
                    if leads_here(0).is_none() {
                        continue;
                    }
                    match self.wants(number, *parent, world)? {
                        Wanted::All => return Some(Wanted::All),
                        Wanted::Some(parents) => {
                            found.extend(parents.into_iter().filter_map(leads_here).flat_map(|(_, range)| range));
                        }
                    }
                }
                found.sort_unstable();
                found.dedup();
                Wanted::Some(found)
            }
        })
    }
}

/// What a client will ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    Some(Vec<u32>),
}

/// Returns how many of these clients will want each resource of a type; only awaited clients count.
pub(crate) fn demand<'a>(
    clients: impl Iterator<Item = (u32, &'a Arc<Profile>)>,
    kind: Kind,
    world: &Arc<World>,
) -> Vec<u32> {
    let resources = world.ledger(kind).map_or(0, |ledger| ledger.all());
    let mut counts = vec![0_u32; usize::try_from(resources).unwrap_or_default()];
    let mut all = 0;
    for (number, profile) in clients.filter(|(_, profile)| profile.behaviour.is_steady()) {
        match profile.wants(number, kind, world) {
            Some(Wanted::All) => all += 1,
            Some(Wanted::Some(names)) => {
                for name in names {
                    if let Some(count) = usize::try_from(name).ok().and_then(|name| counts.get_mut(name)) {
                        *count += 1;
                    }
                }
            }
            None => {}
        }
    }
    counts.iter_mut().for_each(|count| *count += all);
    counts
}
