//! A world: its course, the network, control planes, one relay, and clients.
//!
//! Owns the loop of events, and what needs several of these parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Library, Routes, Scopes};
use protocol::{StreamSettings, StreamTimers};

use super::access::Permits;
use super::classes::{self, Profile};
use super::client::Client;
use super::course::Course;
use super::event::Event;
use super::feed::Zone;
use super::judge::Judge;
use super::lists::Lists;
use super::network::Woken;
use super::relay::Stream;
use super::tally::Broken;

/// A world and all that is in it.
pub(crate) struct World {
    pub(crate) course: Course,
    pub(crate) judge: Judge,
    pub(crate) settings: Arc<StreamSettings>,
    /// The shared answers.
    pub(crate) answers: Library,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) zones: Vec<Zone>,
    /// In worlds where each authority has servers of its own: the lists. The servers are the zones.
    pub(crate) lists: Option<Box<Lists>>,
    /// What clients may have, in worlds with rules about that.
    pub(crate) permits: Option<Permits>,
    pub(crate) scopes: Scopes,
    /// The most views that there may be; 0: no bound.
    pub(crate) views: usize,
    pub(crate) streams: BTreeMap<u64, Box<Stream>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) woken: Arc<Woken>,
}

/// A world that does not come to rest within so many steps never will.
const RESTLESS: u64 = 60_000;

impl World {
    pub(crate) fn new(seed: u64, base: Instant, kept: usize) -> Self {
        let mut course = Course::new(seed, base, kept);
        let rng = &mut course.rng;
        let chunk = *rng.pick(&[120, 300, 1 << 21]).expect("there are some");
        let pace = if rng.chance(20) {
            rng.millis(10, 800)
        } else {
            Duration::ZERO
        };
        course.set_slowness();
        let rng = &mut course.rng;
        let profiles = classes::profiles(rng);
        let mut zones: Vec<Zone> = (0..profiles.len()).map(|zone| Zone::new(zone, rng)).collect();
        let routing = zones
            .iter_mut()
            .filter(|zone| course.besides.hasty && zone.wire.is_some());
        routing.for_each(|zone| zone.truth = zone.truth.clone().hasty());
        for wire in zones.iter_mut().filter_map(|zone| zone.wire.as_mut()) {
            wire.trouble(course.besides, &mut course.refusals);
        }
        let rules = classes::rules(rng);
        let settings = StreamSettings {
            timers: StreamTimers {
                pace,
                ..StreamTimers::default()
            },
            ..classes::stream_settings(&rules)
        };
        let views = if rng.chance(30) {
            rng.range(1, profiles.len() - 1)
        } else {
            0
        };
        Self {
            course,
            judge: Judge::default(),
            settings: Arc::new(settings),
            answers: Library::new(1 << 16, chunk),
            profiles,
            zones,
            lists: None,
            scopes: classes::scopes(&rules, Routes::default(), views),
            permits: None,
            views,
            streams: BTreeMap::new(),
            clients: Vec::new(),
            woken: Arc::default(),
        }
    }

    /// Runs this many steps with faults.
    pub(crate) fn run(&mut self, steps: u64) -> Result<(), Broken> {
        let end = self.course.tally.steps + steps;
        while self.course.tally.steps < end && self.step()? {}
        Ok(())
    }

    /// Runs until only routine events are left, and nothing else has happened for long.
    pub(crate) fn rest(&mut self) -> Result<(), Broken> {
        let end = self.course.tally.steps + RESTLESS;
        while !self.course.is_at_rest() && self.step()? {
            if self.course.tally.steps > end {
                return broken!(Held, "the world does not come to rest");
            }
        }
        Ok(())
    }

    /// Runs for this time.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), Broken> {
        let end = self.course.clock.now() + time;
        while self.course.next().is_some_and(|next| next <= end) {
            self.step()?;
        }
        self.course.clock.advance(end);
        Ok(())
    }

    fn step(&mut self) -> Result<bool, Broken> {
        let Some(event) = self.course.step() else {
            return Ok(false);
        };
        if let Some(event) = self.course.defer(event) {
            self.happen(event)?;
        }
        self.course.clock.verdict()?;
        self.see_views()?;
        self.see_holds()?;
        for stream in self.woken.take() {
            self.course.soon(0, 3, Event::Turn(stream));
        }
        Ok(true)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Plan(zone) => self.plan(zone),
            Event::Step(zone, step) => self.change(zone, &step),
            Event::Upstream(zone) => return self.upstream(zone),
            Event::Hop(hop) => return self.hop(hop),
            Event::Utter(zone, beat) => self.utter(zone, beat),
            Event::ToRelay(stream) => return self.arrive_at_relay(stream),
            Event::ToClient(stream) => return self.arrive_at_client(stream),
            Event::Turn(stream) => return self.turn(stream),
            Event::Timer(stream) => return self.timer(stream),
            Event::EndAtRelay(stream) => self.end_at_relay(stream),
            Event::EndAtClient(stream) => self.end_at_client(stream),
            Event::Credit(stream) => return self.credit(stream),
            Event::Heal(stream) => self.heal(stream),
            Event::Act(client, act) => return self.act(client, act),
            Event::Fault => return self.fault(),
            Event::Sweep => self.sweep(),
            Event::Reach(zone) => self.reach(zone),
            Event::Silence(zone, kind, name) => self.silence(zone, kind, name),
            Event::Sway(server) => return self.sway(server),
            Event::Adopt => self.adopt(),
            Event::Look(server) => return self.look(server),
            Event::Poll(pass) => return self.pass_on(pass),
            Event::Decree => return self.decree(),
            Event::Forget(zone) => return self.forget(zone),
            Event::Recall(zone, before) => return self.recall(zone, &before),
            Event::Guard => self.reset_guard(),
        }
        Ok(())
    }
}
