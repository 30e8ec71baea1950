// SPDX-License-Identifier: Apache-2.0
//! Lists of servers in front of several classes of clients. Each class has its own content for names of old style; names
//! under an authority with servers of its own have the same content for all classes (F-13).
//!
//! Owns which zone is a server, as one class sees it. Knows nothing of the content.

use std::sync::Arc;

use cache::View;
use classes::Classes;
use proto::envoy::config::core::v3::Node;

use super::Lists;
use crate::besides::Besides;
use crate::classes::{ANYBODY, Profile, profiles, relay_node, rules};
use crate::course::Course;
use crate::names::SOURCES;
use crate::origins::Origins;
use crate::rng::Rng;
use crate::stream::Stream;
use crate::tally::{Broken, Rule, Tally};
use crate::zone::Zone;

/// Separates the random numbers of classes from all others.
const CLASSES: u64 = 0x5eed_0000_0002;

/// Separates the random numbers of lists of endpoints from all others.
const ENDPOINTS: u64 = 0x5eed_0000_0095;

/// The clients that see the same zone as a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eyes {
    /// One class, by what its clients have in common.
    Class(Profile),
    /// All classes that do read collections of endpoints, or do not (K-04).
    All(bool),
}

/// The classes that see the servers: for each of them one zone for each server.
pub(super) struct Sides {
    servers: usize,
    /// Without any there is one class, which sees everything.
    eyes: Vec<Eyes>,
    profiles: Vec<Profile>,
}

impl Sides {
    /// All clients are of one class.
    pub(super) const fn one(servers: usize) -> Self {
        Self {
            servers,
            eyes: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Creates the sides for two classes. The first servers are as they would be for one class. Both classes see them, or, if
    /// only one of the two reads collections, the class that does not.
    pub(super) fn several(servers: usize, seed: u64) -> (Self, Rng) {
        let mut rng = Rng::new(seed ^ CLASSES);
        let mut profiles = profiles(&mut rng);
        profiles.truncate(2);
        let reads: Vec<bool> = profiles.iter().map(Profile::reads_collections).collect();
        let shared = [false, true].into_iter().filter(|reading| reads.contains(reading));
        let own = profiles.iter().copied().map(Eyes::Class);
        let sides = Self {
            servers,
            eyes: shared.map(Eyes::All).chain(own).collect(),
            profiles,
        };
        (sides, rng)
    }

    /// How many zones are servers.
    pub(super) fn count(&self) -> usize {
        self.servers * self.eyes.len().max(1)
    }

    /// Where a server is that a class reads for an authority.
    pub(super) fn zone(&self, class: usize, authority: Option<&str>, server: usize) -> usize {
        let profile = self.profile(class);
        let eyes = match authority {
            None => Eyes::Class(profile),
            Some(owner) if SOURCES.contains(&owner) => Eyes::Class(profile),
            Some(_) => Eyes::All(profile.reads_collections()),
        };
        self.at(eyes, server)
    }

    fn at(&self, eyes: Eyes, server: usize) -> usize {
        let side = self.eyes.iter().position(|other| *other == eyes).unwrap_or(0);
        side * self.servers + server
    }

    /// Another server of the same side as this zone.
    pub(super) fn beside(&self, zone: usize, other: usize) -> usize {
        zone - zone % self.servers + other % self.servers
    }

    /// Whether the clients that see this zone read collections of endpoints.
    fn reads_collections(&self, zone: usize) -> bool {
        match self.eyes.get(zone / self.servers.max(1)) {
            None => self.eyes.is_empty(),
            Some(Eyes::All(reads)) => *reads,
            Some(Eyes::Class(profile)) => profile.reads_collections(),
        }
    }

    /// The classes of the clients, in turn.
    pub(super) fn profile(&self, at: usize) -> Profile {
        let profile = self.profiles.get(at % self.profiles.len().max(1));
        profile.copied().unwrap_or(ANYBODY)
    }
}

impl Lists {
    /// Where a server is that a class reads for an authority.
    pub(super) fn zone(&self, class: usize, authority: Option<&str>, server: usize) -> usize {
        self.sides.zone(class, authority, server)
    }

    /// The servers of an authority, by priority, for a stream, as its class sees them.
    pub(crate) fn servers_of(&self, stream: &Stream, authority: Option<&str>) -> Vec<usize> {
        let route = stream
            .plan
            .as_ref()
            .and_then(|plan| plan.route(authority, stream.client));
        let servers = route.map_or(&[][..], |route| &route.servers).iter();
        servers
            .map(|server| self.sides.zone(stream.class, authority, *server))
            .collect()
    }

    /// All zones that are first in a list.
    pub(super) fn firsts(&self) -> Vec<usize> {
        let classes = || 0..self.sides.profiles.len().max(1);
        let all = self
            .plan
            .owners()
            .flat_map(|name| classes().map(move |class| (class, name)));
        let firsts = |(class, name): (usize, Option<&'static str>)| {
            self.plan.firsts(name).map(move |server| self.zone(class, name, server))
        };
        all.flat_map(firsts).collect()
    }

    /// The class of a client.
    pub(crate) fn class(&self, profile: &Profile) -> usize {
        let mut profiles = self.sides.profiles.iter();
        profiles.position(|other| other == profile).unwrap_or(0)
    }
}

impl Origins {
    /// Decides which clients see which zones as servers, and by which rules. Adds the zones for clients that do not see the first ones.
    pub(super) fn with_sides(&mut self, seed: u64, besides: Besides) -> (Sides, Classes) {
        let servers = self.zones.len();
        if !besides.classes {
            return (Sides::one(servers), Classes::default());
        }
        let (sides, mut rng) = Sides::several(servers, seed);
        for from in (0..sides.count()).step_by(servers).skip(1) {
            self.zones.extend(super::side(besides, from, servers, &mut rng));
        }
        for zone in &mut self.zones {
            zone.eyes = sides.eyes.get(zone.id / servers).copied();
        }
        (sides, rules(&mut rng))
    }

    /// Which clients are sent lists of endpoints: those that can read them; if there is one class, all.
    pub(super) fn with_endpoints(&mut self, sides: &Sides, seed: u64) {
        let mut rng = Rng::new(seed ^ ENDPOINTS);
        for (at, zone) in self.zones.iter_mut().enumerate() {
            if sides.reads_collections(at) {
                zone.truth = zone.truth.clone().listing(&mut rng);
            }
        }
    }

    /// How many zones there are for each server: so many times more must happen.
    pub(crate) fn width(&self) -> usize {
        let sides = self.lists.as_ref().map(|lists| &lists.sides);
        sides.map_or(1, |sides| sides.count() / sides.servers.max(1))
    }

    /// K-02, F-13: the zone whose view this is.
    pub(super) fn zone_of(&self, view: &View, tally: &mut Tally) -> Result<usize, Broken> {
        let sides = self.lists.as_ref().map(|lists| &lists.sides);
        let Some(sides) = sides.filter(|sides| !sides.eyes.is_empty()) else {
            return Ok(view.server());
        };
        let class = view.class();
        let eyes = match class.rule {
            None => Eyes::All(class.endpoint_collections),
            Some(_) => Eyes::Class(Profile::recognise(&class.presented().over(&relay_node()), tally)?),
        };
        tally.hit(Rule::K02);
        Ok(sides.at(eyes, view.server()))
    }

    /// A view of a server begins.
    pub(super) fn begin_view(&mut self, view: Arc<View>, course: &mut Course) -> Result<(), Broken> {
        let node = view.class().presented().over(&relay_node());
        let zone = self.zone_of(&view, &mut course.tally)?;
        course.log(|| format!("upstream {zone}: a view begins"));
        if !self.zones[zone].attach(view, node) {
            return broken!(K02, "zone {zone} has two views");
        }
        Ok(())
    }

    /// The zone from which a server takes over content of another one: the one that the same clients see.
    pub(super) fn beside(&self, to: usize, from: usize) -> usize {
        let Some(lists) = self.lists.as_ref().filter(|lists| !lists.sides.eyes.is_empty()) else {
            return from;
        };
        let server = |zone: usize| self.zones[zone].below.unwrap_or(zone);
        lists.sides.beside(server(to), server(from))
    }
}

impl Zone {
    /// K-04: a server is told about the relay's clients what identifies their class, and no other.
    pub(crate) fn check_side(&self, node: Option<&Node>, tally: &mut Tally) -> Result<(), Broken> {
        let (Some(eyes), Some(node)) = (self.eyes, node) else {
            return Ok(());
        };
        let expected = match eyes {
            Eyes::Class(profile) => Some(profile),
            Eyes::All(_) => None,
        };
        let found = Profile::of(node);
        if found != expected {
            return broken!(
                K04,
                "server {} is for {expected:?}, and {node:?} is of {found:?}",
                self.id
            );
        }
        tally.hit(Rule::K04);
        Ok(())
    }
}
