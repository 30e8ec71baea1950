// SPDX-License-Identifier: Apache-2.0
//! What a fleet is made of, and what its clients can be told to do. Plain arithmetic: who is here, and who wants what. Starts nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;

use crate::fleet::client::profile::{self, Profile};
use crate::fleet::crew::Crew;
use crate::origin::world::World;
use crate::wire::kind::Kind;
use crate::wire::place::Target;

/// What a fleet is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) clients: u32,
    /// How many clients share a connection.
    pub(crate) per_connection: u32,
    pub(crate) world: Arc<World>,
    pub(crate) crew: Crew,
    /// Where clients of the relay above connect.
    pub(crate) above: Option<Target>,
}

/// What clients are told to do during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Wish(Wish),
    /// The clients whose number is a multiple of `every` leave, and come back after the pause.
    Leave {
        every: u32,
        pause: Duration,
    },
}

/// One more resource that some clients are told to ask for: those whose number is a multiple of `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) every: u32,
    pub(crate) kind: Kind,
    pub(crate) index: u32,
}

impl Plan {
    /// Returns the profile of client `number`. All clients of a connection are of one group, because each of them affects the
    /// connection for all.
    pub(crate) fn profile(&self, number: u32) -> Option<&Arc<Profile>> {
        self.crew.profile(number / self.per_connection.max(1))
    }

    /// Returns how many want this resource of one client in so many; of all of them if none.
    pub(crate) fn wanting_among(&self, kind: Kind, index: u32, every: Option<u32>) -> u32 {
        let every = usize::try_from(every.unwrap_or(1).max(1)).unwrap_or(1);
        let demand = self.demand(kind, every);
        let wanting = usize::try_from(index).ok().and_then(|index| demand.get(index));
        wanting.copied().unwrap_or_default()
    }

    /// Returns how many awaited clients want each resource of a type, of those whose number is a multiple of `every`.
    pub(crate) fn demand(&self, kind: Kind, every: usize) -> Vec<u32> {
        let members = self.members(self.clients, every);
        let members = members.filter_map(|number| Some((number, self.profile(number)?)));
        profile::demand(members, kind, &self.world)
    }

    /// Returns how many of the first `clients` clients will have everything. Those that flap do not count, because they may be
    /// away.
    pub(crate) fn complete_of(&self, clients: u32) -> u32 {
        let numbers = self.members(clients, 1).filter_map(|number| self.profile(number));
        u32::try_from(numbers.filter(|it| it.behaviour.flaps.is_none()).count()).unwrap_or(u32::MAX)
    }

    /// The same of those at the relay above, or at the one under test.
    pub(crate) fn complete_at(&self, clients: u32, above: bool) -> u32 {
        let numbers = self.members(clients, 1).filter_map(|number| self.profile(number));
        let there = numbers.filter(|it| it.behaviour.flaps.is_none() && it.above == above);
        u32::try_from(there.count()).unwrap_or(u32::MAX)
    }

    /// Returns how many clients are not steady.
    pub(crate) fn unsteady(&self) -> u32 {
        let profiles = self.members(self.clients, 1).filter_map(|number| self.profile(number));
        u32::try_from(profiles.filter(|it| !it.behaviour.is_steady()).count()).unwrap_or(u32::MAX)
    }

    /// Returns the numbers of the first `clients` clients, of which only the multiples of `every`.
    pub(crate) fn members(&self, clients: u32, every: usize) -> impl Iterator<Item = u32> {
        (0..clients.min(self.clients)).step_by(every)
    }

    /// Returns how many of the first `clients` clients leave if the multiples of `every` do: all of a connection leave together.
    pub(crate) fn leaving(&self, clients: u32, every: u32) -> u64 {
        let (every, shared) = (every.max(1), self.per_connection.max(1));
        let goes = |number: &u32| {
            let first = number / shared * shared;
            let end = first.saturating_add(shared).min(self.clients);
            first.checked_next_multiple_of(every).is_some_and(|next| next < end)
        };
        self.members(clients, 1).filter(goes).map(|_| 1).sum()
    }

    /// Fails if a client lacks a file of its own. The files are read when their clients connect.
    pub(crate) fn check_files(&self) -> anyhow::Result<()> {
        let files = self.connections().flat_map(|connection| {
            let number = connection.saturating_mul(self.per_connection.max(1));
            let secure = self.target.tls.as_ref();
            let shown = secure.map(|secure| secure.files(number)).unwrap_or_default();
            let token = self
                .profile(number)
                .and_then(|profile| profile.identity.token_file(number));
            shown.into_iter().chain(token).map(move |file| (number, file))
        });
        let mut missing = files.filter(|(_, file)| !file.is_file());
        if let Some((number, file)) = missing.next() {
            let more = missing.count();
            bail!(
                "{}: client {number} needs this file, which is not there; {more} more are missing",
                file.display()
            );
        }
        Ok(())
    }

    pub(super) fn connections(&self) -> impl Iterator<Item = u32> {
        0..self.clients.div_ceil(self.per_connection.max(1))
    }
}
