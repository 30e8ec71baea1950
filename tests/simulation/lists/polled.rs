// SPDX-License-Identifier: Apache-2.0
//! A server of a list that is polled over REST (H-07).
//!
//! Owns the polls on their way, and a server that compares versions only. Knows nothing of HTTP and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use distributary::upstream::{PollQuestion, Poller};
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use protocol::{Client, Leg};
use xds::{Changes, Dialect, ServerState, Target, Want};

use super::Mood;
use crate::body::Type;
use crate::classes::client_settings;
use crate::course::Course;
use crate::event::Event;
use crate::names::{canonical, covers};
use crate::rng::Rng;
use crate::served::{entry, spoil};
use crate::tally::{Broken, Rule, Tally};
use crate::truth::Truth;
use crate::upstream::{RECONNECT_MAX, WILDCARD_QUIET};
use crate::zone::Zone;

/// The two ways to a server that is polled.
pub(crate) struct Polled {
    ways: [Way; 2],
    /// How many answers in a hundred have something wrong in them.
    noise: usize,
    /// Whether its resources may have a time to live (E-11): they end unless they are sent once more.
    mortal: bool,
    superseded: bool,
}

struct Way {
    poller: Poller,
    /// The polls whose answers are waited for.
    asked: BTreeMap<Type, u64>,
    /// L-20: types that must be asked for without a version.
    clean: BTreeSet<Type>,
}

/// One poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    server: usize,
    way: usize,
    kind: Type,
    id: u64,
}

/// Something that happens on the way.
#[derive(Debug)]
pub(crate) enum Pass {
    /// It may be time for the next polls.
    Due(usize),
    Asked(Poll, Box<DiscoveryRequest>),
    Answered(Poll, Box<Outcome>),
}

#[derive(Debug)]
pub(crate) enum Outcome {
    News(DiscoveryResponse),
    Same,
    /// The poll failed: `true` if only this one did, `false` if the server cannot be reached.
    Failed(bool),
}

const INTERVAL: Duration = Duration::from_secs(20);
/// How long the relay waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Polled {
    pub(super) fn new(mortal: bool, rng: &mut Rng) -> Self {
        Self {
            mortal,
            noise: if rng.chance(30) { 10 } else { 0 },
            ..Self::with(Node::default())
        }
    }

    fn with(node: Node) -> Self {
        let settings = client_settings("relay", WILDCARD_QUIET);
        let way = || Way {
            poller: Poller::new(
                Client::new(settings.clone(), Dialect::Sotw, node.clone()),
                INTERVAL,
                RECONNECT_MAX,
            ),
            asked: BTreeMap::new(),
            clean: BTreeSet::new(),
        };
        Self {
            ways: [way(), way()],
            noise: 0,
            mortal: false,
            superseded: false,
        }
    }

    /// A view begins: it wants nothing yet.
    pub(crate) fn attach(&mut self, node: Node) {
        *self = Self {
            noise: self.noise,
            mortal: self.mortal,
            ..Self::with(node)
        };
    }

    /// Another server stands in: old versions are not declared when this one is asked again (L-20).
    pub(super) fn stand_in(&mut self) {
        self.superseded = true;
    }

    fn tell(&mut self, told: Vec<(Leg, Want)>, now: Instant) -> Vec<Changes> {
        let mut changes = Vec::new();
        for (which, want) in told {
            let way = &mut self.ways[usize::from(which == Leg::Aside)];
            changes.extend(way.poller.handle_want(&want, now));
            let poller = &way.poller;
            way.asked.retain(|kind, _| poller.awaits(kind.type_url()));
            way.clean.retain(|kind| poller.asks(kind.type_url()));
        }
        changes
    }

    /// The state of the server, by the ways on which something is wanted.
    fn server_state(&self, otherwise: ServerState) -> ServerState {
        let states = self.ways.iter().filter_map(|way| way.poller.server_state());
        states.reduce(ServerState::beside).unwrap_or(otherwise)
    }
}

/// Many servers compare only the version, whatever is asked for.
fn version(kind: Type, truth: &Truth, server: usize) -> String {
    let all = truth.of(kind).map(|content| (content.name.clone(), content.revision));
    let sum = all.fold(17_u64, |sum, (name, revision)| {
        let name = name
            .bytes()
            .fold(revision, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        sum.wrapping_mul(1_000_003).wrapping_add(name)
    });
    format!("{sum:x}.s{server}")
}

fn answer(kind: Type, request: &DiscoveryRequest, truth: &Truth, server: usize, mortal: bool) -> Outcome {
    let version_info = version(kind, truth, server);
    if request.version_info == version_info {
        return Outcome::Same;
    }
    // F-04: however a name is written.
    let names: Vec<String> = request
        .resource_names
        .iter()
        .map(|name| canonical(kind, name))
        .collect();
    // H-06: an empty list is everything.
    let asked = truth.of(kind).filter(|content| match names.is_empty() {
        true => content.covered,
        false => names
            .iter()
            .any(|name| *name == content.name || covers(name, &content.name)),
    });
    Outcome::News(DiscoveryResponse {
        version_info,
        resources: asked
            .map(|content| match mortal {
                true => entry(kind, content, &format!(".s{server}")),
                false => entry(kind, &content.immortal(), &format!(".s{server}")),
            })
            .collect(),
        ..DiscoveryResponse::default()
    })
}

impl Pass {
    /// Whose poll it is.
    pub(crate) const fn server(&self) -> usize {
        match self {
            Self::Due(server) => *server,
            Self::Asked(poll, _) | Self::Answered(poll, _) => poll.server,
        }
    }
}

impl Zone {
    pub(crate) fn pass_on(&mut self, pass: Pass, course: &mut Course) -> Result<(), Broken> {
        match pass {
            Pass::Due(_) => self.write_polls(Vec::new(), course),
            Pass::Asked(poll, request) => {
                self.answer_poll(poll, &request, course);
                Ok(())
            }
            Pass::Answered(poll, outcome) => self.take_answer(poll, *outcome, course),
        }
    }

    fn polled(&mut self) -> Option<&mut Polled> {
        self.source.as_mut().and_then(super::Source::polled)
    }

    /// The writer's turn, as its shell would take it.
    pub(super) fn write_polls(&mut self, mut changes: Vec<Changes>, course: &mut Course) -> Result<(), Broken> {
        let server = self.id;
        let now = course.clock.instant();
        if !self.writer.attached {
            return Ok(());
        }
        self.writer.hold(&mut changes, now);
        let superseded = self.writer.view.mailbox().take_superseded();
        let wants = self.writer.view.take_wants(now);
        let Some(polled) = self.polled() else {
            return Ok(());
        };
        if superseded {
            polled.ways.iter_mut().for_each(|way| way.poller.handle_superseded());
        }
        if std::mem::take(&mut polled.superseded) {
            for way in &mut polled.ways {
                let asks = |kind: &&Type| way.poller.asks(kind.type_url());
                way.clean = Type::EVERY.iter().filter(asks).copied().collect();
            }
        }
        for want in wants {
            course.log(|| format!("upstream {server}: {want:?}"));
            let told = self.writer.demand(&want);
            changes.extend(self.tell_polls(told, now));
        }
        loop {
            let mut said = Vec::new();
            (0..2).try_for_each(|way| self.turn_way(way, &mut said, course))?;
            self.writer.hold(&mut said, now);
            changes.append(&mut said);
            self.writer.cross(&mut changes, now);
            if changes.is_empty() {
                changes = self.writer.release(now);
            }
            if changes.is_empty() {
                let before = self.writer.view.cut().server_state();
                let server_state = self.polled().map_or(before, |polled| polled.server_state(before));
                self.writer.rest(server_state, now, &mut course.tally);
                if before != server_state {
                    course.log(|| format!("upstream {server}: {before:?} -> {server_state:?}"));
                }
                break;
            }
            let heard = std::mem::take(&mut changes);
            course.log(|| format!("upstream {server}: heard {heard:?}"));
            self.writer.publish(&heard);
            let told = self.writer.demand.handle_cut(&self.writer.view.cut());
            changes = self.tell_polls(told, now);
        }
        self.set_lease(course);
        let holds = self.writer.held_until();
        let ways = self.polled().into_iter().flat_map(|polled| &polled.ways);
        let ways = ways.filter_map(|way| way.poller.poll_timeout());
        let due = ways.chain(holds).min();
        self.writer.alarm.set(due, Event::Poll(Pass::Due(server)), course);
        Ok(())
    }

    fn tell_polls(&mut self, told: Vec<(Leg, Want)>, now: Instant) -> Vec<Changes> {
        self.polled().map(|polled| polled.tell(told, now)).unwrap_or_default()
    }

    fn turn_way(&mut self, way: usize, changes: &mut Vec<Changes>, course: &mut Course) -> Result<(), Broken> {
        let (server, now) = (self.id, course.clock.instant());
        let Some(here) = self.polled().map(|polled| &mut polled.ways[way]) else {
            return Ok(());
        };
        changes.extend(here.poller.handle_timeout(now));
        while here.poller.poll_refusal(now).is_some() {}
        let mut questions = Vec::new();
        while let Some(PollQuestion { type_url, request, .. }) = here.poller.poll_question(now) {
            let Some(kind) = Type::of(type_url.url()) else { continue };
            let id = course.next_stream();
            here.asked.insert(kind, id);
            questions.push((Poll { server, way, kind, id }, request, here.clean.remove(&kind)));
        }
        for (poll, request, clean) in questions {
            self.check_question(poll.kind, &request, clean, &mut course.tally)?;
            course.log(|| {
                let (names, version) = (&request.resource_names, &request.version_info);
                format!("upstream {server}/{way}: polls {:?} {names:?} v={version}", poll.kind)
            });
            course.deliver(Event::Poll(Pass::Asked(poll, Box::new(request))));
        }
        Ok(())
    }

    /// K-23, G-12, L-20: what is polled is what is wanted, with versions that count.
    fn check_question(
        &self,
        kind: Type,
        request: &DiscoveryRequest,
        clean: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        self.check_versions(&[&request.version_info], clean, tally)?;
        self.check_side(request.node.as_ref(), tally)?;
        let wanted = &self.writer.wanted;
        let target = |name: &String| (kind, Target::Name(canonical(kind, name).as_str().into()));
        let odd = request
            .resource_names
            .iter()
            .find(|name| !wanted.contains(&target(name)));
        let everything = request.resource_names.is_empty() && !wanted.contains(&(kind, Target::Wildcard));
        if odd.is_some() || everything {
            let (id, names) = (self.id, &request.resource_names);
            return broken!(K23, "server {id} is asked for {kind:?} {names:?}, which nobody wants");
        }
        Ok(())
    }

    /// What the server makes of a poll in its present mood.
    fn answer_poll(&mut self, poll: Poll, request: &DiscoveryRequest, course: &mut Course) {
        let mood = self.mood;
        let restless = !course.calm;
        let mut outcome = match mood {
            Mood::Refuses | Mood::Closes | Mood::Hangs => Outcome::Failed(false),
            Mood::AnswersOnce if course.rng.chance(50) => Outcome::Failed(false),
            Mood::Fine | Mood::AnswersOnce if restless && course.rng.chance(3) => Outcome::Failed(true),
            Mood::Fine | Mood::AnswersOnce => {
                let mortal = self.polled().is_some_and(|polled| polled.mortal);
                answer(poll.kind, request, &self.truth, poll.server, mortal)
            }
        };
        let noise = self.polled().map_or(0, |polled| polled.noise);
        if let Outcome::News(response) = &mut outcome
            && restless
            && course.rng.chance(noise)
        {
            spoil(&mut response.resources, poll.kind, &mut course.rng);
        }
        let delay = if mood == Mood::Hangs { PATIENCE } else { course.delay() };
        course.after(delay, Event::Poll(Pass::Answered(poll, Box::new(outcome))));
    }

    fn take_answer(&mut self, poll: Poll, outcome: Outcome, course: &mut Course) -> Result<(), Broken> {
        let (now, dice) = (course.clock.instant(), course.rng.range(0, 100) as f64 / 100.0);
        let Some(way) = self.polled().map(|polled| &mut polled.ways[poll.way]) else {
            return Ok(());
        };
        if way.asked.get(&poll.kind) != Some(&poll.id) {
            return Ok(());
        }
        way.asked.remove(&poll.kind);
        let line = match &outcome {
            Outcome::News(response) => format!("{} resources, {}", response.resources.len(), response.version_info),
            Outcome::Same => "nothing new".to_owned(),
            Outcome::Failed(alone) => format!("failed, alone: {alone}"),
        };
        let (type_url, failed) = (poll.kind.type_url(), matches!(outcome, Outcome::Failed(_)));
        let changes = match outcome {
            Outcome::News(response) => {
                // The server has answered, so its versions may be declared from now on.
                way.clean.remove(&poll.kind);
                way.poller.handle_answer(type_url, Some(response), dice, now)
            }
            Outcome::Same => way.poller.handle_answer(type_url, None, dice, now),
            Outcome::Failed(alone) => {
                way.poller
                    .handle_failure(type_url, "nobody".to_owned(), alone, dice, now)
                    .1
            }
        };
        course.log(|| format!("origin {}/{}: {:?}: {line}", poll.server, poll.way, poll.kind));
        if failed {
            // H-07: good content stays.
            course.tally.hit(Rule::H07);
            let quiet = |changes: &Changes| changes.updates.is_empty() && changes.complete.is_none();
            if !changes.iter().all(quiet) {
                return broken!(H07, "a failed poll changed {changes:?}");
            }
        }
        self.write_polls(changes, course)
    }
}
