//! Lulls, and the end of a world: all participants behave, everything heals, and then clients and views must hold the right content.
//!
//! Owns when that is, and how life goes on. Does not judge.

use std::time::Duration;

use super::client::Act;
use super::event::Event;
use super::tally::{Broken, Rule};
use super::truth::{Key, Step};
use super::world::World;

impl World {
    /// Everything heals, and all participants behave.
    pub(crate) fn calm_down(&mut self) -> Result<(), Broken> {
        self.course.log(|| "calm".to_owned());
        self.course.calm = true;
        self.network.heal_all(&mut self.course);
        self.origins.end_blurred(&mut self.course)?;
        for zone in 0..self.origins.len() {
            self.course.after(Duration::ZERO, Event::Reach(zone));
            let keys: Vec<Key> = self.origins[zone].truth.keys().cloned().collect();
            for (kind, name) in keys {
                self.course
                    .after(Duration::ZERO, Event::Step(zone, Step::Mend(kind, name)));
            }
        }
        for id in 0..self.clients.len() {
            self.clients[id].behave(true);
        }
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
                self.course.after(Duration::ZERO, Event::Act(id, Act::Connect));
            }
        }
        self.stir();
        Ok(())
    }

    /// Checks that all content is right.
    pub(crate) fn judge(&mut self) -> Result<(), Broken> {
        self.origins.see_origins();
        let mut tally = std::mem::take(&mut self.course.tally);
        let checked = self.origins.iter().enumerate().try_for_each(|(at, zone)| {
            let above = zone.upper.is_some().then(|| &self.origins[self.origins.origin(at)]);
            let checked = zone.check(above, &mut tally);
            checked.map_err(|broken| Broken::new(broken.rule, format!("zone {at}: {}", broken.what)))
        });
        self.course.tally = tally;
        checked?;
        self.origins.compare_chains(&mut self.course.tally)?;
        self.judge_rest(self.course.last_stream(), true)
    }

    /// All clients leave, and nothing may be left of them.
    pub(crate) fn leave(&mut self) -> Result<(), Broken> {
        for id in 0..self.clients.len() {
            self.clients[id].retired = true;
        }
        for stream in self.network.ids() {
            self.course.after(Duration::ZERO, Event::EndAtClient(stream));
        }
        self.rest()?;
        self.course.tally.hit(Rule::Empty);
        if let Some(stream) = self.network.ids().first() {
            return broken!(Empty, "stream {stream} is still there");
        }
        for (at, zone) in self.origins.iter().enumerate() {
            let cut = zone.view.cut();
            let known = cut.slots().count();
            if !zone.view.is_idle() || known > 0 {
                return broken!(
                    Empty,
                    "zone {at}: {} sessions, {known} types: {cut:?}",
                    zone.view.seats()
                );
            }
        }
        self.close_views()
    }
}
