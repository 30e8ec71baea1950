// SPDX-License-Identifier: Apache-2.0
//! A zone: a control plane, and the relay's writer of its view.
//!
//! Owns what happens to the control plane, and which way leads to it. Knows nothing of the protocol between them.

use std::sync::Arc;

use cache::View;
use proto::envoy::config::core::v3::Node;
use xds::Cut;

use super::classes::{Profile, nobody};
use super::course::Course;
use super::event::Event;
use super::lists::{Eyes, Mood, Upper};
use super::origin::Habits;
use super::rng::Rng;
use super::tally::{Broken, Rule};
use super::truth::{Step, Truth};
use super::upstream::Wire;
use super::writer::Writer;

/// A control plane and the view of it.
pub(crate) struct Zone {
    /// Its place among the zones.
    pub(crate) id: usize,
    /// What the clients that begin here have in common.
    pub(crate) profile: Profile,
    /// How the server behaves towards new streams, where there are lists.
    pub(crate) mood: Mood,
    /// Where there are lists and several classes of clients: who reads this server.
    pub(crate) eyes: Option<Eyes>,
    pub(crate) truth: Truth,
    pub(crate) writer: Writer,
    /// The streams between the two.
    pub(crate) wire: Wire,
    /// If the server is itself a relay: that relay.
    pub(crate) upper: Option<Box<Upper>>,
    /// If this is the control plane of such a relay: the relay's zone.
    pub(crate) below: Option<usize>,
    /// What the relay has on disk of the view.
    pub(crate) saved: Option<Cut>,
    pub(crate) connected: bool,
}

impl Zone {
    pub(crate) fn new(id: usize, profile: Profile, rng: &mut Rng) -> Self {
        let first = 1_000_000 * (id as u64 + 1);
        Self {
            id,
            profile,
            mood: Mood::Fine,
            eyes: None,
            truth: Truth::new(first, rng),
            writer: Writer::none(),
            wire: Wire::new(Habits::new(rng), Node::default()),
            upper: None,
            below: None,
            saved: None,
            connected: true,
        }
    }

    /// Begins a view in which nothing is known; returns whether there was none.
    pub(crate) fn attach(&mut self, view: Arc<View>, node: Node) -> bool {
        let before = std::mem::replace(&mut self.writer, Writer::new(view, self.saved.as_ref()));
        self.wire.begin_anew(node);
        !before.attached
    }

    /// The view has ended.
    pub(crate) fn detach(&mut self) {
        self.attach(nobody(), Node::default());
        self.writer.attached = false;
    }

    /// An operator begins a change.
    pub(crate) fn plan(&mut self, course: &mut Course) {
        if course.calm {
            return;
        }
        let mut time = course.clock.now();
        for (pause, step) in self.truth.plan(&mut course.rng) {
            time += pause;
            course.at(time, Event::Step(self.id, step));
        }
        course.soon(50, 4000, Event::Plan(self.id));
    }

    pub(crate) fn change(&mut self, step: &Step, course: &mut Course) {
        let zone = self.id;
        if course.calm && !matches!(step, Step::Mend(..)) {
            return;
        }
        if self.truth.apply(step, &mut course.rng) {
            course.log(|| format!("origin {zone}: {step:?}"));
            course.deliver(Event::Utter(zone, false));
        }
    }

    /// The control plane of a zone is gone.
    pub(crate) fn lose(&mut self, course: &mut Course) -> Result<(), Broken> {
        let zone = self.id;
        course.log(|| format!("upstream {zone}: lost"));
        course.tally.hit(Rule::G19);
        self.connected = false;
        self.sever(course)
    }

    /// The control plane of a zone can be reached again.
    pub(crate) fn reach(&mut self, course: &mut Course) {
        let zone = self.id;
        course.log(|| format!("upstream {zone}: connected"));
        self.connected = true;
        course.at_once(Event::Upstream(zone));
    }
}
