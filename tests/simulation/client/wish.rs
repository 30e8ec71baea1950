// SPDX-License-Identifier: Apache-2.0
//! What a client wants: what it holds makes it want more.
//!
//! Owns the chain from listeners and clusters to routes and endpoints, and random wants. Knows nothing of requests.

use std::collections::BTreeSet;

use xds::Dialect;

use super::{Client, Do, Persona};
use crate::body::Type;
use crate::names::{anywhere, canonical, collection, is_collection, missing, name, respelled};
use crate::rng::Rng;

/// What is wanted of one type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) wildcard: bool,
    pub(super) names: BTreeSet<String>,
}

impl Client {
    pub(super) fn wish(&self, kind: Type) -> Wish {
        let mut names: BTreeSet<String> = self.whims.get(&kind).cloned().unwrap_or_default();
        let grpc = self.persona == Persona::Grpc;
        match kind {
            Type::Cds if grpc => names.extend(self.referred(Type::Rds)),
            Type::Eds => names.extend(self.endpoints().map(str::to_owned)),
            Type::Leds if self.dialect == Dialect::Delta => names.extend(self.referred(Type::Eds)),
            Type::Rds => names.extend(self.referred(Type::Lds)),
            Type::Lds if grpc && names.is_empty() => drop(names.insert("l0".to_owned())),
            Type::Cds | Type::Leds | Type::Lds | Type::Sds | Type::Odd => {}
        }
        let wildcard = match self.persona {
            Persona::Grpc => false,
            Persona::Envoy | Persona::Streams => kind.full_state() || self.stars.contains(&kind),
            Persona::OnDemand => kind.full_state() != self.stars.contains(&kind),
            Persona::Hostile => false,
        };
        Wish { wildcard, names }
    }

    /// The names of endpoints of the clusters that it holds.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &str> {
        let clusters = self.holds.get(&Type::Cds).into_iter().flatten();
        clusters.filter_map(|(_, holding)| holding.endpoints.as_deref())
    }

    fn referred(&self, kind: Type) -> impl Iterator<Item = String> {
        let holds = self.holds.get(&kind).into_iter().flatten();
        holds.flat_map(|(_, holding)| holding.refers.iter().cloned())
    }

    /// Does something of its own accord, or with `slips` now and then asks for a name that is none.
    pub(crate) fn indulge(&mut self, slips: bool, rng: &mut Rng) -> Vec<Do> {
        if self.persona == Persona::Hostile {
            return self.provoke(rng);
        }
        if slips && rng.chance(30) {
            self.slip(rng);
            return self.sync(rng);
        }
        if self.dialect == Dialect::Delta && rng.chance(30) {
            let request = self.repeat(rng).into_iter();
            return request.map(|(stream, request)| Do::Send(stream, request)).collect();
        }
        self.whim(rng);
        self.sync(rng)
    }

    /// Begins or ceases to ask for a name that is none (B-32).
    fn slip(&mut self, rng: &mut Rng) {
        // for a type whose resource has no name, the empty name is none of these.
        let kinds = [Type::Cds, Type::Eds, Type::Lds, Type::Rds, Type::Sds];
        let kind = *rng.pick(&kinds).unwrap_or(&Type::Rds);
        let name = *rng.pick(&["", "", "xdstp:", "xdstp:///x", " "]).unwrap_or(&"");
        let names = self.whims.entry(kind).or_default();
        if !names.remove(name) {
            names.insert(name.to_owned());
        }
    }

    /// Changes its mind about something.
    fn whim(&mut self, rng: &mut Rng) {
        let on_demand = self.persona == Persona::OnDemand;
        if on_demand && rng.chance(30) {
            let kind = *rng
                .pick(&[Type::Cds, Type::Lds, Type::Odd, Type::Sds])
                .unwrap_or(&Type::Cds);
            if !self.stars.remove(&kind) {
                self.stars.insert(kind);
            }
            return;
        }
        let kinds = match self.persona {
            Persona::OnDemand => &[Type::Cds, Type::Cds, Type::Sds, Type::Odd, Type::Lds][..],
            Persona::Grpc => &[Type::Lds],
            Persona::Envoy => &[Type::Sds, Type::Odd],
            Persona::Streams | Persona::Hostile => &[Type::Sds],
        };
        let kind = *rng.pick(kinds).unwrap_or(&Type::Sds);
        let at = rng.below(8);
        let mut name = match self.authorities {
            [] => name(kind, at),
            authorities => anywhere(authorities, kind, at, rng),
        };
        let delta = self.dialect == Dialect::Delta;
        if delta && name.starts_with("xdstp:") {
            name = match rng.below(10) {
                0 | 1 => collection(rng.pick(self.authorities).unwrap_or(&"a"), kind),
                2 => respelled(&name, rng),
                _ => name,
            };
        }
        let own = canonical(kind, &name) == name && !is_collection(&name);
        if own && on_demand && matches!(kind, Type::Sds | Type::Odd) && rng.chance(30) {
            name = missing(&name);
        }
        let names = self.whims.entry(kind).or_default();
        if !names.remove(&name) {
            names.insert(name);
        }
    }
}
