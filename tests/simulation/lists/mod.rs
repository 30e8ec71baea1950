// SPDX-License-Identifier: Apache-2.0
//! Worlds in which each authority has a list of servers: which server is asked, and how the servers fail and return.
//!
//! Owns the lists, the states of the servers, and the writers of views as they come and go. Does not know how a session uses
//! them.

mod divided;
mod moves;
mod plan;
mod upper;
mod verdict;

pub(crate) use divided::Eyes;
pub(crate) use plan::Plan;
pub(crate) use upper::{Ahead, Upper};

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use cache::{Route, Scopes};
use proto::envoy::config::core::v3::Node;
use xds::ServerState;

use super::besides::Besides;
use super::classes as rules;
use super::client::Client;
use super::course::Course;
use super::event::Event;
use super::names::AUTHORITIES;
use super::origin::{Habits, Reply};
use super::origins::Origins;
use super::rng::Rng;
use super::tally::{Broken, Rule, Tally};
use super::truth::Truth;
use super::upstream::{At, Hop, Wire};
use super::world::World;
use super::zone::Zone;
use divided::Sides;

/// The lists of a world. Servers are its zones.
pub(crate) struct Lists {
    pub(crate) plan: Arc<Plan>,
    /// The random numbers of reloads.
    reloads: Rng,
    sides: Sides,
    /// Since when each server that answers has answered without a failure.
    up_since: BTreeMap<usize, Duration>,
}

/// How a server behaves towards new streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// It does not exist.
    Refuses,
    /// It accepts connections, and sends nothing.
    Hangs,
    /// It ends every stream before it has answered (G-02).
    Closes,
    /// It answers once on every stream, and ends it.
    AnswersOnce,
}

/// How long the relay waits for a connection.
const CONNECT: Duration = Duration::from_secs(20);

/// Separates the random numbers of sources from all others.
const SOURCES: u64 = 0x5eed_0000_0018;

/// How many revisions each server has for itself.
const REVISIONS: u64 = 1_000_000;

impl Lists {
    /// Tells a client of the authorities of such a world.
    pub(crate) fn instruct(&self, client: &mut Client) {
        client.authorities = AUTHORITIES;
    }
}

fn route(servers: usize, reachability_only: bool, shared: bool, rng: &mut Rng) -> Route {
    let mut left: Vec<usize> = (0..servers).collect();
    let count = rng.range(if rng.clone().chance(80) { 2 } else { 1 }, servers);
    let servers = (0..count).map(|_| left.remove(rng.below(left.len()))).collect();
    Route {
        servers,
        reachability_only,
        shared,
    }
}

/// Creates the zones of all servers as some clients see them; `from` is the first zone.
fn side(besides: Besides, from: usize, servers: usize, rng: &mut Rng) -> Vec<Zone> {
    let first = |zone: usize| REVISIONS * (zone as u64 + 1);
    let mortal = |truth: Truth, rng: &mut Rng| if besides.ttls { truth.mortal(rng) } else { truth };
    let original = mortal(Truth::under(AUTHORITIES, first(from), rng), rng);
    let server = |at: usize| {
        let mut zone = Zone::new(at, rules::ANYBODY, rng);
        zone.truth = match at {
            _ if at == from => original.clone(),
            _ if rng.chance(75) => original.replica(first(at)),
            _ => mortal(Truth::under(AUTHORITIES, first(at), rng), rng),
        };
        let habits = Habits::of_server(at, rng);
        let habits = if besides.amnesia { habits.silent(rng) } else { habits };
        zone.wire = Wire::new(habits, Node::default());
        zone
    };
    (from..from + servers).map(server).collect()
}

impl World {
    /// The same world with servers in lists instead of a control plane for each class of clients.
    pub(crate) fn with_lists(mut self, seed: u64) -> Self {
        let rng = &mut self.course.rng;
        let servers = rng.range(2, 4);
        self.origins.zones = side(self.course.besides, 0, servers, rng);
        let mut plan = Plan::new(servers, rng);
        // Numbers of its own, so that worlds without a source are as they were.
        let mut own = Rng::new(seed ^ SOURCES);
        if own.chance(40) {
            plan = plan.with_source(&mut own);
        }
        let (sides, classes) = self.origins.with_sides(seed, self.course.besides);
        if self.course.besides.endpoints {
            self.origins.with_endpoints(&sides, seed);
        }
        self.origins.with_uppers(&self.relay.settings, &mut self.course.rng);
        self.origins
            .iter_mut()
            .for_each(|zone| zone.profile = sides.profile(zone.id));
        self.relay.divide(classes, plan.routes.clone());
        self.origins.lists = Some(Box::new(Lists {
            plan: Arc::new(plan),
            reloads: own,
            sides,
            up_since: BTreeMap::new(),
        }));
        self
    }

    /// All participants behave, but unreachable servers stay so.
    pub(crate) fn lull(&mut self) -> Result<(), Broken> {
        if self.origins.lists.is_none() {
            return Ok(());
        }
        for zone in self.origins.iter_mut().filter(|zone| zone.mood == Mood::AnswersOnce) {
            zone.turn_to(Mood::Fine, &mut self.course)?;
        }
        self.course.log(|| "lull".to_owned());
        self.course.calm = true;
        self.network.heal_all(&mut self.course);
        self.clients.iter_mut().for_each(|client| client.behave(true));
        self.pass(LULL)?;
        let settled = self.course.last_stream();
        self.pass(LULL)?;
        self.judge_rest(settled, false)
    }
}

impl Origins {
    /// Adds to the trace which servers there are.
    pub(crate) fn log_lists(&mut self, course: &mut Course) {
        let Some(lists) = &self.lists else { return };
        let (routes, servers) = (lists.plan.routes.clone(), lists.sides.count());
        course.log(|| format!("{routes:?}"));
        for server in 0..servers {
            if self.zones[server].upper.is_some() {
                course.log(|| format!("server {server}: a relay"));
            }
        }
    }

    /// Servers begin to change how they behave.
    pub(crate) fn stir_lists(&mut self, course: &mut Course) {
        let Some(lists) = &self.lists else { return };
        for server in 0..lists.sides.count() {
            course.soon(500, 30_000, Event::Sway(server));
        }
        course.after(Duration::from_secs(5), Event::Adopt);
    }

    /// A server takes over what another one has: it comes to have equal, older or newer content.
    pub(crate) fn adopt(&mut self, course: &mut Course) {
        if course.calm {
            return;
        }
        course.soon(500, 20_000, Event::Adopt);
        self.copy(course);
    }

    fn copy(&mut self, course: &mut Course) {
        let (to, from) = (course.rng.below(self.zones.len()), course.rng.below(self.zones.len()));
        let from = self.beside(to, from);
        course.log(|| format!("origin {to}: takes over what {from} has"));
        let other = self.zones[self.origin(from)].truth.clone();
        let to = self.origin(to);
        self.zones[to].truth.adopt(&other);
        course.deliver(Event::Utter(to, false));
    }

    /// Gives new views their writers, takes them from ended views, and schedules writers whose views have changed.
    pub(crate) fn see_views(&mut self, scopes: &Scopes, course: &mut Course) -> Result<(), Broken> {
        if self.lists.is_none() {
            return Ok(());
        }
        self.see_ends(course);
        for view in scopes.take_created() {
            self.begin_view(view, course)?;
        }
        for server in 0..self.zones.len() {
            let view = self.zones[server].writer.view.clone();
            if let Some(lists) = &mut self.lists {
                match view.cut().server_state() {
                    ServerState::Up => drop(lists.up_since.entry(server).or_insert(course.clock.now())),
                    ServerState::Trying | ServerState::Open | ServerState::Failing => {
                        lists.up_since.remove(&server);
                    }
                }
            }
            let called = pin!(view.mailbox().changed())
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready();
            if called && self.zones[server].writer.attached {
                course.soon(0, 3, Event::Upstream(server));
            }
        }
        Ok(())
    }

    /// All servers can be reached again, with whatever has become of them.
    pub(crate) fn restore(&mut self, course: &mut Course) -> Result<(), Broken> {
        if self.lists.is_none() {
            return Ok(());
        }
        self.mend_loops();
        for _ in 0..course.rng.below(4) {
            self.copy(course);
        }
        for zone in &mut self.zones {
            for _ in 0..course.rng.below(3) {
                for (_, step) in zone.truth.plan(&mut course.rng) {
                    zone.truth.apply(&step, &mut course.rng);
                }
            }
            course.deliver(Event::Utter(zone.id, false));
            if zone.below.is_none() {
                zone.turn_to(Mood::Fine, course)?;
            }
        }
        Ok(())
    }
}

impl Zone {
    /// A server changes its behaviour.
    pub(crate) fn sway(&mut self, course: &mut Course) -> Result<(), Broken> {
        if course.calm {
            return Ok(());
        }
        course.soon(200, 40_000, Event::Sway(self.id));
        let mood = match course.rng.below(10) {
            0..=3 => Mood::Fine,
            4..=6 => Mood::Refuses,
            7 => Mood::Hangs,
            8 => Mood::Closes,
            _ => Mood::AnswersOnce,
        };
        self.turn_to(mood, course)
    }

    fn turn_to(&mut self, mood: Mood, course: &mut Course) -> Result<(), Broken> {
        let server = self.id;
        if std::mem::replace(&mut self.mood, mood) == mood {
            return Ok(());
        }
        course.log(|| format!("origin {server}: {mood:?}"));
        self.connected = mood != Mood::Refuses;
        if mood == Mood::Fine {
            return Ok(());
        }
        course.tally.hit(Rule::G19);
        self.sever(course)
    }

    /// Whether a connection comes to nothing, slowly.
    pub(crate) fn hangs(&mut self, at: At, course: &mut Course) -> bool {
        let hangs = self.mood == Mood::Hangs;
        if hangs {
            course.after(CONNECT, Event::Hop(Hop::TimedOut(at)));
        }
        hangs
    }

    /// What a server says in its present mood.
    pub(crate) fn cut_short(&self, replies: Vec<Reply>) -> Vec<Reply> {
        match self.mood {
            Mood::Closes => vec![Reply::Close],
            Mood::AnswersOnce if !replies.is_empty() => replies.into_iter().take(1).chain([Reply::Close]).collect(),
            Mood::Fine | Mood::Refuses | Mood::Hangs | Mood::AnswersOnce => replies,
        }
    }

    /// G-12, L-20: the versions that are declared to a server.
    pub(crate) fn check_versions(&self, declared: &[&String], clean: bool, tally: &mut Tally) -> Result<(), Broken> {
        let mut declared = declared.iter().filter(|version| !version.is_empty());
        tally.hit(Rule::G12);
        let (id, mark, relay) = (self.id, format!(".s{}", self.id), self.upper.is_some());
        let foreign = |version: &str| match relay {
            true => version.contains('.'),
            false => !version.ends_with(&mark),
        };
        if let Some(version) = declared.clone().find(|version| foreign(version)) {
            return broken!(G12, "server {id} is told of the version {version}");
        }
        if clean {
            tally.hit(Rule::L20);
            if let Some(version) = declared.next() {
                return broken!(L20, "server {id} is told of {version} after another one stood in");
            }
        }
        Ok(())
    }
}

/// Longer than any back-off.
const LULL: Duration = Duration::from_secs(160);
