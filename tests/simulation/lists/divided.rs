//! Lists of servers in front of several classes of clients. Each class has its own content for names of old style; names
//! under an authority with servers of its own have the same content for all classes (F-13).
//!
//! Owns which zone is a server, as one class sees it. Knows nothing of the content.

use std::sync::Arc;

use cache::View;
use classes::Classes;
use proto::envoy::config::core::v3::Node;
use protocol::StreamSettings;

use super::Lists;
use crate::classes::{ANYBODY, Profile, profiles, relay_node, rules};
use crate::rng::Rng;
use crate::tally::{Broken, Rule};
use crate::world::World;

/// Separates the random numbers of classes from all others.
const CLASSES: u64 = 0x5eed_0000_0002;

/// Separates the random numbers of lists of endpoints from all others.
const ENDPOINTS: u64 = 0x5eed_0000_0095;

/// The clients that see the same zone as a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eyes {
    /// One class, by its place among the profiles of the world.
    Class(usize),
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
        let own = (0..profiles.len()).map(Eyes::Class);
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
        let reads = self.profiles.get(class).is_some_and(Profile::reads_collections);
        let eyes = match authority {
            None => Eyes::Class(class),
            Some(_) => Eyes::All(reads),
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
            Some(Eyes::Class(class)) => self.profiles.get(*class).is_some_and(Profile::reads_collections),
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

    /// The servers of an authority, by priority, as this class sees them.
    pub(crate) fn servers_of(&self, class: usize, authority: Option<&str>) -> Vec<usize> {
        let servers = self.servers(authority).iter();
        servers
            .map(|server| self.sides.zone(class, authority, *server))
            .collect()
    }

    /// All zones that are first in a list.
    pub(super) fn firsts(&self) -> Vec<usize> {
        let authorities = crate::names::SERVED.iter().map(|name| Some(*name)).chain([None]);
        let classes = || 0..self.sides.profiles.len().max(1);
        let all = authorities.flat_map(|name| classes().map(move |class| (class, name)));
        all.filter_map(|(class, name)| self.servers_of(class, name).first().copied())
            .collect()
    }

    /// The class of a client.
    pub(crate) fn class(&self, profile: &Profile) -> usize {
        let mut profiles = self.sides.profiles.iter();
        profiles.position(|other| other == profile).unwrap_or(0)
    }
}

impl World {
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

    /// Decides which clients see which zones as servers. Adds the zones for clients that do not see the first ones.
    pub(super) fn with_sides(&mut self, seed: u64) -> Sides {
        let servers = self.zones.len();
        if !self.course.besides.classes {
            self.divide(Classes::default());
            return Sides::one(servers);
        }
        let (sides, mut rng) = Sides::several(servers, seed);
        for from in (0..sides.count()).step_by(servers).skip(1) {
            let more = super::side(self.course.besides, from, servers, &mut rng);
            self.zones.extend(more);
        }
        self.divide(rules(&mut rng));
        sides
    }

    /// Divides the clients of the relay by these rules.
    fn divide(&mut self, classes: Classes) {
        self.settings = Arc::new(StreamSettings {
            classes,
            ..(*self.settings).clone()
        });
    }

    /// K-02, F-13: the zone whose view this is.
    pub(super) fn zone_of(&mut self, view: &View) -> Result<usize, Broken> {
        let node = view.class().presented().over(&relay_node());
        let several = self.lists.as_ref().is_some_and(|lists| !lists.sides.eyes.is_empty());
        if !several {
            return Ok(view.server());
        }
        let shared = view.class().rule.is_none();
        let profile = match shared {
            true => None,
            false => Some(self.recognise(&node)?),
        };
        let Some(lists) = &self.lists else {
            return Ok(view.server());
        };
        let eyes = match profile {
            None => Eyes::All(view.class().endpoint_collections),
            Some(at) => Eyes::Class(lists.class(&self.profiles[at])),
        };
        self.course.tally.hit(Rule::K02);
        Ok(lists.sides.at(eyes, view.server()))
    }

    /// A view of a server begins.
    pub(super) fn begin_view(&mut self, view: Arc<View>) -> Result<(), Broken> {
        let node = view.class().presented().over(&relay_node());
        let zone = self.zone_of(&view)?;
        self.course.log(|| format!("upstream {zone}: a view begins"));
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

    /// K-04: a server is told about the relay's clients what identifies their class, and no other.
    pub(crate) fn check_side(&mut self, zone: usize, node: Option<&Node>) -> Result<(), Broken> {
        let sides = self.lists.as_ref().map(|lists| &lists.sides);
        let Some(sides) = sides.filter(|sides| !sides.eyes.is_empty() && zone < sides.count()) else {
            return Ok(());
        };
        let Some(node) = node else { return Ok(()) };
        let eyes = sides.eyes[zone / sides.servers];
        let expected = match eyes {
            Eyes::Class(class) => sides.profiles.get(class),
            Eyes::All(_) => None,
        };
        let found = self.taken_for(node);
        if found != expected {
            return broken!(K04, "server {zone} is for {expected:?}, and {node:?} is of {found:?}");
        }
        self.course.tally.hit(Rule::K04);
        Ok(())
    }
}
