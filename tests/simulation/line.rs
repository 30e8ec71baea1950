//! The link of a client stream: what arrives at which side, stalls, and ends.
//!
//! Owns the end of a stream on either side. Knows nothing of the messages on it.

use std::time::Duration;

use super::event::Event;
use super::feed;
use super::judge::Moment;
use super::tally::{Broken, Rule};
use super::world::World;

impl World {
    /// The relay's half is gone; the client learns it later.
    pub(crate) fn end_at_relay(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.at_relay) else {
            return;
        };
        stream.at_relay = false;
        let zone = stream.zone;
        stream.place = None;
        let over = self.observe(&Moment::Over(id));
        debug_assert!(over.is_ok(), "the end of a stream breaks no rule");
        self.course.deliver(Event::EndAtClient(id));
        self.course.after(Duration::ZERO, Event::Upstream(zone));
    }

    /// The client's half is gone; the relay learns it later.
    pub(crate) fn end_at_client(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else {
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
                self.streams.remove(&id);
            }
        } else if !stream.at_relay {
            self.streams.remove(&id);
        }
    }

    pub(crate) fn arrive_at_client(&mut self, id: u64) -> Result<(), Broken> {
        let Some(stream) = self.streams.get_mut(&id) else {
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
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.room += 1;
            stream.fired = None;
        }
        self.turn(id)
    }

    /// Nothing passes on this link until it heals.
    pub(crate) fn stall(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.stalled = true;
            self.course.log(|| format!("stream {id}: stalls"));
        }
    }

    pub(crate) fn heal(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.stalled) else {
            return;
        };
        stream.stalled = false;
        let (up, down) = (stream.up.take_late(), stream.down.take_late());
        self.course.log(|| format!("stream {id}: heals"));
        (0..up).for_each(|_| self.course.after(Duration::ZERO, Event::ToRelay(id)));
        (0..down).for_each(|_| self.course.after(Duration::ZERO, Event::ToClient(id)));
    }

    /// All streams end, and nothing is known any more but what is on disk.
    pub(crate) fn restart(&mut self) {
        self.course.log(|| "the relay restarts".to_owned());
        self.save_views();
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|id| self.end_at_relay(id));
        self.forget_views();
        self.forget_sources();
    }

    /// The control plane of a zone is gone.
    pub(crate) fn lose(&mut self, zone: usize) -> Result<(), Broken> {
        self.course.log(|| format!("upstream {zone}: lost"));
        self.course.tally.hit(Rule::G19);
        if self.zones[zone].wire.is_none() {
            return feed::lost(&mut self.zones[zone]);
        }
        self.zones[zone].connected = false;
        self.sever(zone)
    }
}
