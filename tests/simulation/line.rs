// SPDX-License-Identifier: Apache-2.0
//! The link of a client stream: what arrives at which side, stalls, and ends.
//!
//! Owns the end of a stream on either side. Knows nothing of the messages on it.

use std::time::Duration;

use super::event::Event;
use super::judge::Moment;
use super::tally::Broken;
use super::world::World;

impl World {
    /// The relay's half is gone; the client learns it later.
    pub(crate) fn end_at_relay(&mut self, id: u64) {
        let Some(stream) = self.network.get_mut(id).filter(|stream| stream.at_relay) else {
            return;
        };
        stream.at_relay = false;
        let zone = stream.zone;
        stream.place = None;
        let over = self.judge.see(&Moment::Over(id), &mut self.course.tally);
        debug_assert!(over.is_ok(), "the end of a stream breaks no rule");
        self.course.deliver(Event::EndAtClient(id));
        self.course.at_once(Event::Upstream(zone));
    }

    /// The client's half is gone; the relay learns it later.
    pub(crate) fn end_at_client(&mut self, id: u64) {
        let Some(stream) = self.network.get_mut(id) else {
            return;
        };
        if stream.at_client {
            stream.at_client = false;
            let (client, at_relay) = (stream.client, stream.at_relay);
            self.course
                .log(|| format!("stream {id}: has ended for client {client}"));
            self.lost(client, id);
            if at_relay {
                self.course.deliver(Event::EndAtRelay(id));
            } else {
                self.network.take(id);
            }
        } else if !stream.at_relay {
            self.network.take(id);
        }
    }

    pub(crate) fn arrive_at_client(&mut self, id: u64) -> Result<(), Broken> {
        let Some(stream) = self.network.get_mut(id) else {
            return Ok(());
        };
        let Some((answer, scene)) = stream.down.arrive(stream.stalled).filter(|_| stream.at_client) else {
            return Ok(());
        };
        let client = stream.client;
        let (low, high) = self.clients[client].reading;
        let read = if self.course.calm {
            Duration::ZERO
        } else {
            self.course.rng.millis(low, high)
        };
        self.course.after(read, Event::Credit(id));
        self.receive(client, id, &answer, &scene)
    }

    pub(crate) fn credit(&mut self, id: u64) -> Result<(), Broken> {
        if let Some(stream) = self.network.get_mut(id) {
            stream.room += 1;
            stream.fired = None;
        }
        self.turn(id)
    }

    /// All streams end, and nothing is known any more but what is on disk.
    pub(crate) fn restart(&mut self) {
        self.course.log(|| "the relay restarts".to_owned());
        self.origins.save_views(&mut self.course);
        self.network.ids().into_iter().for_each(|id| self.end_at_relay(id));
        self.forget_views();
    }
}
