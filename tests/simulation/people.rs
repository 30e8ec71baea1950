// SPDX-License-Identifier: Apache-2.0
//! The life of the clients, and the faults that hit them.
//!
//! Owns when clients connect, how they behave, and their faults. Knows nothing of what clients send.

use xds::Dialect;

use super::body::Type;
use super::client::{Act, Client, Do, Persona};
use super::event::Event;
use super::scene::Scene;
use super::tally::{Broken, Rule};
use super::wire::Answer;
use super::world::World;

impl World {
    /// Clients connect, operators begin their changes, and faults begin.
    pub(crate) fn begin(&mut self) {
        let count = self.course.rng.range(6, 9);
        for id in 0..count {
            let (persona, dialect) = match id {
                1.. if self.course.besides.unruly && self.course.rng.chance(70) => (Persona::Hostile, Dialect::Delta),
                1.. if self.course.besides.unruly => (Persona::Hostile, Dialect::Sotw),
                0 => (Persona::Envoy, Dialect::Sotw),
                1 => (Persona::Envoy, Dialect::Delta),
                2 => (Persona::Grpc, Dialect::Sotw),
                3 => (Persona::OnDemand, Dialect::Delta),
                _ => {
                    let persona = match self.course.rng.below(10) {
                        0..=2 => Persona::Envoy,
                        3 | 4 => Persona::Streams,
                        5 => Persona::Grpc,
                        6 | 7 => Persona::OnDemand,
                        _ => Persona::Hostile,
                    };
                    let delta = match persona {
                        Persona::OnDemand => true,
                        Persona::Grpc => false,
                        Persona::Envoy | Persona::Streams | Persona::Hostile => self.course.rng.chance(50),
                    };
                    (persona, if delta { Dialect::Delta } else { Dialect::Sotw })
                }
            };
            let zone = self.course.rng.below(self.origins.len());
            let mut client = Client::new(
                id,
                zone,
                self.origins[zone].profile,
                persona,
                dialect,
                &mut self.course.rng,
            );
            if let Some(lists) = &self.origins.lists {
                lists.instruct(&mut client);
            }
            self.course
                .log(|| format!("client {id} in zone {zone}: {persona:?} {dialect:?}"));
            self.clients.push(client);
            self.course.soon(0, 2000, Event::Act(id, Act::Connect));
        }
        self.origins.log_lists(&mut self.course);
        self.stir();
    }

    /// Everybody begins to do as they like, and faults begin.
    pub(crate) fn stir(&mut self) {
        for id in 0..self.clients.len() {
            self.course.soon(100, 5000, Event::Act(id, Act::Whim));
        }
        for zone in 0..self.origins.len() {
            self.course.soon(0, 3000, Event::Plan(zone));
            self.course.soon(2000, 8000, Event::Utter(zone, true));
        }
        let pause = self.course.rng.millis(500, 10_000);
        self.course.after(pause, Event::Fault);
        self.course.after(pause, Event::Sweep);
        self.origins.stir_lists(&mut self.course);
        Self::stir_reloads(&mut self.course);
        self.origins.stir_amnesia(&mut self.course);
    }

    pub(crate) fn act(&mut self, id: usize, act: Act) {
        let todo = match act {
            Act::Connect => self.connect(id),
            Act::Sync => self.clients[id].sync(&mut self.course.rng),
            Act::Settle(stream, kind, nonce, rejected) => {
                self.clients[id].settle(stream, kind, &nonce, rejected, &mut self.course.rng)
            }
            Act::Tire(stream, nonce) => self.clients[id].tire(stream, &nonce),
            Act::Whim => self.whim(id),
        };
        self.carry_out(id, todo);
    }

    pub(crate) fn carry_out(&mut self, id: usize, todo: Vec<Do>) {
        for task in todo {
            match task {
                Do::Send(stream, request) => self.send(stream, request),
                Do::Later(pause, act) => self.course.after(pause, Event::Act(id, act)),
                Do::Reopen(kind) => self.reopen(id, kind),
            }
        }
    }

    fn connect(&mut self, id: usize) -> Vec<Do> {
        let mut todo = Vec::new();
        if self.clients[id].retired {
            return todo;
        }
        for service in self.clients[id].services() {
            if !self.clients[id].has(service) {
                let stream = self.open(id, service);
                todo.extend(self.clients[id].opened(stream, service, &mut self.course.rng));
            }
        }
        todo
    }

    /// M-01: with one stream per type an Envoy opens a new one when a cluster warms.
    fn reopen(&mut self, id: usize, kind: Type) {
        if let Some(stream) = self.clients[id].line(Some(kind)) {
            self.end_at_client(stream);
        }
    }

    /// A stream of a client has ended; the client reconnects, with or without what it held.
    pub(crate) fn lost(&mut self, id: usize, stream: u64) {
        let client = &mut self.clients[id];
        if client.closed(stream).is_none() || client.retired {
            return;
        }
        if self.course.rng.chance(15) && client.persona != Persona::Streams {
            client.forget();
            self.course.log(|| format!("client {id}: forgets everything"));
        }
        if self.course.rng.chance(5) && self.clients[id].lines.is_empty() {
            let zone = self.course.rng.below(self.origins.len());
            self.clients[id].forget();
            (self.clients[id].zone, self.clients[id].profile) = (zone, self.origins[zone].profile);
            self.course.log(|| format!("client {id}: begins anew in zone {zone}"));
        }
        self.course.soon(1, 3000, Event::Act(id, Act::Connect));
    }

    pub(crate) fn receive(&mut self, id: usize, stream: u64, answer: &Answer, scene: &Scene) -> Result<(), Broken> {
        self.course
            .log(|| format!("client {id}: stream {stream} <- {}", answer.brief()));
        self.see_arrival(id, stream, answer, scene)?;
        let serial = scene.wants.get(&answer.kind).map_or(0, |want| want.serial);
        let todo = self.clients[id].receive(stream, answer, serial, &mut self.course.rng);
        self.carry_out(id, todo);
        Ok(())
    }

    fn whim(&mut self, id: usize) -> Vec<Do> {
        if self.course.calm {
            return Vec::new();
        }
        self.course.soon(100, 6000, Event::Act(id, Act::Whim));
        let slips = self.course.besides.slips;
        self.clients[id].indulge(slips, &mut self.course.rng)
    }

    /// Something fails.
    pub(crate) fn fault(&mut self) -> Result<(), Broken> {
        if self.course.calm {
            return Ok(());
        }
        self.course.soon(300, 9000, Event::Fault);
        if self.course.clock.is_frozen() {
            return Ok(());
        }
        if self.course.besides.frozen && self.course.rng.chance(20) {
            self.freeze();
            return Ok(());
        }
        let streams = self.network.ids();
        match self.course.rng.below(11) {
            0..=3 => {
                if let Some(stream) = self.course.rng.pick(&streams).copied() {
                    self.network.stall(stream, &mut self.course);
                    let pause = self.course.rng.millis(100, 20_000);
                    let end = if self.course.rng.chance(50) {
                        Event::Heal(stream)
                    } else {
                        Event::EndAtClient(stream)
                    };
                    self.course.after(pause, end);
                }
            }
            4..=6 => {
                if let Some(stream) = self.course.rng.pick(&streams).copied() {
                    self.course.at_once(Event::EndAtClient(stream));
                    self.course.deliver(Event::EndAtRelay(stream));
                }
            }
            7 | 8 if self.origins.lists.is_some() => return self.origins.fault_above(&mut self.course),
            7 | 8 => {
                let zone = self.course.rng.below(self.origins.len());
                if self.origins[zone].connected {
                    self.course.soon(50, 15_000, Event::Reach(zone));
                    return self.origins[zone].lose(&mut self.course);
                }
            }
            9 => {
                let zone = self.course.rng.below(self.origins.len());
                self.origins[zone].mute(&mut self.course);
            }
            _ => self.restart(),
        }
        Ok(())
    }

    /// The relay stops for a while.
    fn freeze(&mut self) {
        let pause = self.course.rng.millis(1200, 40_000);
        self.course.log(|| format!("the relay stands still for {pause:?}"));
        self.course.tally.hit(Rule::K27);
        self.course.clock.freeze(pause);
        self.course.after(pause, Event::Sweep);
    }
}
