// SPDX-License-Identifier: Apache-2.0
//! The configuration of a world with lists: which types have a source, which servers are in each list, and which clients are a canary.
//!
//! Owns how it changes: by reload, at any step. Does not know what a session makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cache::{Canary, Route, Routes};
use xds::Owners;

use super::route;
use crate::body::Type;
use crate::course::Course;
use crate::event::Event;
use crate::names::{SERVED, SOURCED, SOURCES};
use crate::rng::Rng;
use crate::world::World;

/// What the operator has written.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) routes: Routes,
    servers: usize,
    top: cache::Lists,
    owned: BTreeMap<Arc<str>, Route>,
    /// The source of each type that has one (F-18).
    pub(crate) sourced: BTreeMap<Type, &'static str>,
}

/// The types that move: nothing leads to these or waits for them. What waits for what other sources have is played in `tests/client/held`.
const MOVABLE: &[Type] = &[Type::Eds, Type::Sds, Type::Odd];
/// How many of 10,000 buckets a canary has.
const SHARES: [u16; 3] = [500, 5_000, 10_000];
/// More clients than any world has.
const CLIENTS: usize = 32;

impl Plan {
    /// Lists for the servers at the top and those of each authority.
    pub(super) fn new(servers: usize, rng: &mut Rng) -> Self {
        let usual = route(servers, false, false, rng);
        let owned = SERVED
            .iter()
            .map(|authority| (Arc::from(*authority), route(servers, rng.chance(50), true, rng)))
            .collect();
        let plan = Self {
            routes: Routes::default(),
            servers,
            top: cache::Lists { usual, canary: None },
            owned,
            sourced: BTreeMap::new(),
        };
        plan.written()
    }

    /// The same with a source for some types.
    pub(super) fn with_source(mut self, rng: &mut Rng) -> Self {
        self.add_source(SOURCES[0], rng);
        self.sourced = SOURCED.iter().map(|kind| (*kind, SOURCES[0])).collect();
        self.written()
    }

    fn add_source(&mut self, source: &str, rng: &mut Rng) {
        let route = route(self.servers, rng.chance(50), false, rng);
        self.owned.insert(source.into(), route);
    }

    fn written(mut self) -> Self {
        let full = |(kind, source): (&Type, &&str)| (kind.type_url().full_name().into(), Arc::from(*source));
        let authorities = SERVED.iter().map(|name| Arc::<str>::from(*name));
        let owners = Owners::new(authorities, self.sourced.iter().map(full).collect());
        self.routes = Routes::of(self.top.clone(), BTreeMap::new(), self.owned.clone(), owners);
        self
    }

    /// All owners of names; `None` stands for the servers of all others.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Option<&'static str>> {
        let sources = SOURCES.iter().filter(|source| self.routes.has(Some(**source)));
        std::iter::once(None).chain(SERVED.iter().chain(sources).map(|name| Some(*name)))
    }

    /// The servers of an owner for a client.
    pub(crate) fn route(&self, owner: Option<&str>, client: usize) -> Option<&Route> {
        let node = classes::Node {
            id: format!("client-{client}").into(),
            ..classes::Node::default()
        };
        self.routes.route(owner, &node)
    }

    /// The first servers of an owner, of all clients.
    pub(super) fn firsts(&self, owner: Option<&str>) -> impl Iterator<Item = usize> {
        let routes = (0..CLIENTS).filter_map(move |client| self.route(owner, client));
        routes.filter_map(|route| route.servers.first().copied())
    }

    /// The operator changes one thing, or some.
    fn change(&mut self, rng: &mut Rng) {
        for _ in 0..rng.range(1, 2) {
            match rng.below(4) {
                0 | 1 => self.move_type(rng),
                2 => self.move_share(rng),
                _ => self.change_list(rng),
            }
        }
        *self = self.clone().written();
    }

    fn move_type(&mut self, rng: &mut Rng) {
        let kind = MOVABLE[rng.below(MOVABLE.len())];
        match SOURCES.get(rng.below(SOURCES.len() + 1)) {
            Some(source) => {
                if !self.owned.contains_key(*source) {
                    self.add_source(source, rng);
                }
                self.sourced.insert(kind, *source);
            }
            None => drop(self.sourced.remove(&kind)),
        }
        // A source without types is one that the configuration does not have.
        let used = |owner: &str| !SOURCES.contains(&owner) || self.sourced.values().any(|source| *source == owner);
        self.owned.retain(|owner, _| used(owner));
    }

    /// G-23: the servers of all others are the last of a canary's.
    fn move_share(&mut self, rng: &mut Rng) {
        self.top.canary = SHARES.get(rng.below(SHARES.len() + 1)).map(|share| {
            let first = rng.below(self.servers);
            let behind = self.top.usual.servers.iter().filter(|server| **server != first);
            let servers = std::iter::once(first).chain(behind.copied()).collect();
            let route = Route {
                servers,
                ..self.top.usual.clone()
            };
            Canary { share: *share, route }
        });
    }

    fn change_list(&mut self, rng: &mut Rng) {
        let owners: Vec<Arc<str>> = self.owned.keys().cloned().collect();
        match owners.get(rng.below(owners.len() + 1)) {
            Some(owner) => {
                let shared = self.routes.is_shared(Some(&**owner));
                let route = route(self.servers, rng.chance(50), shared, rng);
                self.owned.insert(owner.clone(), route);
            }
            None => {
                self.top.usual = route(self.servers, false, false, rng);
                self.top.canary = None;
            }
        }
    }
}

impl World {
    /// The operator reloads another configuration: all sessions take it up, each in its next turn.
    pub(crate) fn reload(&mut self) {
        let Some(lists) = self.origins.lists.as_mut().filter(|_| !self.course.calm) else {
            return;
        };
        self.course.soon(200, 20_000, Event::Reload);
        let mut plan = Plan::clone(&lists.plan);
        plan.change(&mut lists.reloads);
        self.course.log(|| format!("reload: {:?}", plan.routes));
        self.relay.scopes.reroute(plan.routes.clone());
        lists.plan = Arc::new(plan);
    }

    /// Begins to reload, where that happens.
    pub(crate) fn stir_reloads(course: &mut Course) {
        if course.besides.reloads {
            course.soon(200, 10_000, Event::Reload);
        }
    }
}
