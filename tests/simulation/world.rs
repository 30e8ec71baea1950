// SPDX-License-Identifier: Apache-2.0
//! A world: its course, the network, control planes, one relay, and clients.
//!
//! Owns the loop of events, and what needs several of these parts.

use std::time::{Duration, Instant};

use super::classes;
use super::client::Client;
use super::course::Course;
use super::event::Event;
use super::judge::Judge;
use super::network::Network;
use super::origins::Origins;
use super::relay::Relay;
use super::tally::Broken;

/// A world and all that is in it.
pub(crate) struct World {
    pub(crate) course: Course,
    pub(crate) network: Network,
    pub(crate) origins: Origins,
    pub(crate) relay: Relay,
    pub(crate) clients: Vec<Client>,
    pub(crate) judge: Judge,
}

/// A world that does not come to rest within so many steps never will.
const RESTLESS: u64 = 60_000;

impl World {
    pub(crate) fn new(seed: u64, base: Instant, kept: usize) -> Self {
        let mut course = Course::new(seed, base, kept);
        let rng = &mut course.rng;
        let chunk = *rng.pick(&[120, 300, 1 << 21]).expect("there are some");
        // Worlds had another setting once. Without these draws, each seed would play another world than the one that is on record.
        if rng.chance(20) {
            rng.millis(10, 800);
        }
        course.set_slowness();
        let profiles = classes::profiles(&mut course.rng);
        let origins = Origins::new(&profiles, &mut course);
        let rules = classes::rules(&mut course.rng);
        let views = if course.rng.chance(30) {
            course.rng.range(1, profiles.len() - 1)
        } else {
            0
        };
        Self {
            course,
            network: Network::default(),
            origins,
            relay: Relay::new(&rules, chunk, views),
            clients: Vec::new(),
            judge: Judge::default(),
        }
    }

    /// Runs this many steps with faults.
    pub(crate) fn run(&mut self, steps: u64) -> Result<(), Broken> {
        let end = self.course.tally.steps + steps;
        while self.course.tally.steps < end && self.step()? {}
        Ok(())
    }

    /// Runs until nothing happens any more.
    pub(crate) fn rest(&mut self) -> Result<(), Broken> {
        let end = self.course.tally.steps + RESTLESS;
        while self.step()? {
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
        self.origins.see_views(&self.relay.scopes, &mut self.course)?;
        let now = self.course.clock.instant();
        self.judge.look(&self.origins, now, &mut self.course.tally)?;
        for stream in self.network.take_woken() {
            self.course.soon(0, 3, Event::Turn(stream));
        }
        Ok(true)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Plan(zone) => self.origins[zone].plan(&mut self.course),
            Event::Step(zone, step) => self.origins[zone].change(&step, &mut self.course),
            Event::Upstream(zone) => self.origins[zone].write(Vec::new(), &mut self.course),
            Event::Hop(hop) => return self.hop(hop),
            Event::Utter(zone, beat) => self.origins[zone].utter(beat, &mut self.course),
            Event::ToRelay(stream) => return self.arrive_at_relay(stream),
            Event::ToClient(stream) => return self.arrive_at_client(stream),
            Event::Turn(stream) => return self.turn(stream),
            Event::Timer(stream) => return self.timer(stream),
            Event::EndAtRelay(stream) => self.end_at_relay(stream),
            Event::EndAtClient(stream) => self.end_at_client(stream),
            Event::Credit(stream) => return self.credit(stream),
            Event::Heal(stream) => self.network.heal(stream, &mut self.course),
            Event::Act(client, act) => self.act(client, act),
            Event::Fault => return self.fault(),
            Event::Sweep => self.sweep(),
            Event::Reach(zone) => self.origins[zone].reach(&mut self.course),
            Event::Sway(server) => return self.origins[server].sway(&mut self.course),
            Event::Adopt => self.origins.adopt(&mut self.course),
            Event::Decree => return self.decree(),
            Event::Forget(zone) => return self.origins[zone].forget(&mut self.course),
            Event::Recall(zone, before) => return self.origins[zone].recall(&before, &mut self.course),
            Event::Guard => self.reset_guard(),
            Event::Reload => self.reload(),
        }
        Ok(())
    }
}
