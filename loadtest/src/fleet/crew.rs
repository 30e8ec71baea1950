// SPDX-License-Identifier: Apache-2.0
//! The crew of a fleet: groups of clients with their weights, and which group a connection belongs to. It is data; nothing here
//! acts.

use std::sync::Arc;

use crate::fleet::client::profile::{HOT, Interest, Profile};
use crate::origin::world::World;
use crate::wire::kind::Kind;

/// Groups of clients with their weights, which are shares: of any number of connections from the first, each group has its part.
#[derive(Clone, Debug)]
pub(crate) struct Crew(Vec<(u32, Arc<Profile>)>);

impl Crew {
    /// Creates a crew of clients that are all alike.
    pub(crate) fn of(profile: Profile) -> Self {
        Self(vec![(1, Arc::new(profile))])
    }

    pub(crate) fn new(groups: Vec<(u32, Profile)>) -> Self {
        let divisor = groups.iter().fold(0, |all, (weight, _)| divisor(all, *weight)).max(1);
        let groups = groups.into_iter().filter(|(weight, _)| *weight > 0);
        let groups = groups.map(|(weight, profile)| (weight / divisor, Arc::new(profile)));
        Self(groups.collect())
    }

    /// Whether all clients ask for the same in the same form.
    pub(crate) fn is_uniform(&self) -> bool {
        let same = |one: &Profile, other: &Profile| {
            let forms = |it: &Profile| (it.dialect, it.aggregated, it.polls);
            forms(one) == forms(other) && one.interests == other.interests
        };
        let alike = self.0.windows(2).all(|two| match two {
            [(_, one), (_, other)] => same(one, other),
            _ => true,
        });
        let shared = |interest: &Interest| match interest {
            Interest::All | Interest::Follow => true,
            Interest::Names(names) => names.sets == Some(1) && names.hot == [0; HOT],
            Interest::Demand(..) => false,
        };
        alike
            && self
                .0
                .iter()
                .flat_map(|(_, it)| &it.interests)
                .all(|(_, it)| shared(it))
    }

    /// Takes the clients' tokens away.
    pub(crate) fn without_tokens(mut self) -> Self {
        for (_, profile) in &mut self.0 {
            let profile = Arc::make_mut(profile);
            profile.identity = Arc::new(profile.identity.without_token());
        }
        self
    }

    /// Returns after which request of a client of the first group a bare server sends which type: first the types that the client
    /// asks for at once, then those that it asks for because of references.
    pub(crate) fn first_requests(&self, world: &World) -> Vec<(u32, Kind)> {
        let Some((_, profile)) = self.0.first() else {
            return Vec::new();
        };
        let there = |kind: &Kind| world.ledger(*kind).is_some();
        let interests = profile.interests.iter().filter(|(kind, _)| there(kind));
        let of = |follows: bool| {
            let of = interests
                .clone()
                .filter(move |(_, interest)| (*interest == Interest::Follow) == follows);
            of.map(|(kind, _)| *kind).collect::<Vec<_>>()
        };
        let (mut script, mut said) = (Vec::new(), 0);
        let first = of(false);
        for kind in &first {
            said += 1;
            script.push((said, *kind));
        }
        for kind in first {
            // The acknowledgement, and the request that follows it.
            said += 1;
            let next = world
                .ledger(kind)
                .and_then(|ledger| ledger.refers(0))
                .map(|(next, _)| next);
            if let Some(next) = next.filter(|next| of(true).contains(next)) {
                said += 1;
                script.push((said, next));
            }
        }
        script
    }

    /// Returns the profiles of all groups.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.0.iter().map(|(_, profile)| profile)
    }

    /// Returns the profile of the clients on connection `number`. The groups take turns, so that each part of the fleet is a
    /// mixture.
    pub(crate) fn profile(&self, number: u32) -> Option<&Arc<Profile>> {
        let sum = self.0.iter().map(|(weight, _)| u64::from(*weight)).sum::<u64>().max(1);
        let mut place = u64::from(number) % sum * stride(sum) % sum;
        self.0.iter().find_map(|(weight, profile)| {
            let (found, weight) = (place < u64::from(*weight), u64::from(*weight));
            place = place.saturating_sub(weight);
            found.then_some(profile)
        })
    }
}

/// How far apart the places of two connections are that follow each other: by the golden ratio, places are spread evenly however many
/// there are so far. Without a common divisor with the sum, each place comes once in a turn.
fn stride(sum: u64) -> u64 {
    let golden = sum * 618 / 1000;
    (1..=golden)
        .rev()
        .find(|stride| divisor(*stride, sum) == 1)
        .unwrap_or(1)
}

/// Returns the greatest common divisor.
fn divisor<T: Copy + PartialEq + Default + std::ops::Rem<Output = T>>(one: T, other: T) -> T {
    match other == T::default() {
        true => one,
        false => divisor(other, one % other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::kind::Dialect;

    /// Weights are shares of as many connections as there are, and each part of the fleet is a mixture.
    #[test]
    fn weights_are_shares() {
        for (weights, clients, expected) in [
            (&[60, 40][..], 60, &[36, 24][..]),
            (&[60, 40], 10, &[6, 4]),
            (&[1, 1], 7, &[4, 3]),
            (&[3], 5, &[5]),
            (&[1, 999], 500, &[1, 499]),
            (&[500, 300, 200], 100, &[50, 30, 20]),
        ] {
            let group = |(at, weight): (usize, &u32)| {
                let mut profile = Profile::plain(Dialect::Delta, Kind::ALL[at], 0);
                profile.aggregated = true;
                (*weight, profile)
            };
            let crew = Crew::new(weights.iter().enumerate().map(group).collect());
            let of = |at: usize| {
                let kinds = (0..clients).filter_map(|number| Some(crew.profile(number)?.interests.first()?.0));
                kinds.filter(|kind| *kind == Kind::ALL[at]).count()
            };
            let counts: Vec<usize> = (0..weights.len()).map(of).collect();
            let off = counts
                .iter()
                .zip(expected)
                .map(|(one, other): (&usize, &usize)| one.abs_diff(*other));
            assert!(off.max() <= Some(1), "{weights:?} of {clients}: {counts:?}");
        }
    }
}
