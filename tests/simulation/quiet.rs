// SPDX-License-Identifier: Apache-2.0
//! Lulls, and the end of a world: all participants behave, everything heals, and then clients and views must hold the right content.
//!
//! Owns when that is, and how life goes on. Does not judge.

use xds::Slot;

use super::client::Act;
use super::event::Event;
use super::tally::{Broken, Rule};
use super::truth::Step;
use super::world::World;

impl World {
    /// Everything heals, and all participants behave.
    pub(crate) fn calm_down(&mut self) -> Result<(), Broken> {
        self.course.log(|| "calm".to_owned());
        self.course.calm = true;
        self.network.heal_all(&mut self.course);
        self.origins.end_blurred(&mut self.course)?;
        for zone in self.origins.iter() {
            self.course.at_once(Event::Reach(zone.id));
            for (kind, name) in zone.truth.keys().cloned() {
                self.course.at_once(Event::Step(zone.id, Step::Mend(kind, name)));
            }
        }
        self.clients.iter_mut().for_each(|client| client.behave(true));
        self.rest()?;
        // Clients that rejected or ignored responses answer them now.
        for id in 0..self.clients.len() {
            let todo = self.clients[id].atone();
            self.carry_out(id, todo);
        }
        self.rest()
    }

    /// A lull in the middle: everything rests and is judged, and then goes on.
    pub(crate) fn pause(&mut self) -> Result<(), Broken> {
        self.course.tally.hit(Rule::Lull);
        match self.origins.lists.is_some() {
            true => self.lull()?,
            false => {
                self.calm_down()?;
                self.judge()?;
            }
        }
        self.course.log(|| "life goes on".to_owned());
        self.course.calm = false;
        for id in 0..self.clients.len() {
            self.clients[id].behave(false);
            if std::mem::take(&mut self.clients[id].retired) {
                self.course.at_once(Event::Act(id, Act::Connect));
            }
        }
        self.stir();
        Ok(())
    }

    /// Checks that all content is right.
    pub(crate) fn judge(&mut self) -> Result<(), Broken> {
        self.origins.check(&mut self.course.tally)?;
        self.judge_rest(self.course.last_stream(), true)
    }

    /// All clients leave, and nothing may be left of them.
    pub(crate) fn leave(&mut self) -> Result<(), Broken> {
        self.clients.iter_mut().for_each(|client| client.retired = true);
        for stream in self.network.ids() {
            self.course.at_once(Event::EndAtClient(stream));
        }
        self.rest()?;
        self.course.tally.hit(Rule::Empty);
        if let Some(stream) = self.network.ids().first() {
            return broken!(Empty, "stream {stream} is still there");
        }
        for zone in self.origins.iter() {
            let (id, view, cut) = (zone.id, &zone.writer.view, zone.writer.view.cut());
            // What was taken over can bring along a type of which nobody has ever wanted anything here.
            let knows = |slot: &Slot| slot.wildcard.is_some() || !slot.named.entries().is_empty();
            if !view.demand().is_idle() || cut.slots().any(|(_, slot)| knows(slot)) {
                return broken!(Empty, "zone {id}: {} sessions: {cut:?}", view.demand().seats());
            }
        }
        self.close_views()
    }
}
