// SPDX-License-Identifier: Apache-2.0
//! A zone: a control plane, and the relay's writer of its view.
//!
//! Owns what happens to the control plane, and which way leads to it. Knows nothing of the protocol between them.

use std::sync::Arc;

use cache::View;
use proto::envoy::config::core::v3::Node;
use xds::{Cut, ServerState};

use super::classes::{Profile, nobody};
use super::course::Course;
use super::event::Event;
use super::feed::{Feed, News};
use super::lists::{Eyes, Mood, Source, Upper};
use super::rng::Rng;
use super::tally::{Broken, Rule};
use super::truth::{Step, Truth};
use super::upstream::{Wire, way};
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
    /// The way through the protocol; without one, changes are published directly.
    pub(crate) wire: Option<Wire>,
    /// The way that is no stream: files or polls.
    pub(crate) source: Option<Source>,
    /// If the server is itself a relay: that relay.
    pub(crate) upper: Option<Box<Upper>>,
    /// If this is the control plane of such a relay: the relay's zone.
    pub(crate) below: Option<usize>,
    /// What the relay has on disk of the view.
    pub(crate) saved: Option<Cut>,
    pub(crate) connected: bool,
    /// The simplest way to it.
    pub(crate) feed: Feed,
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
            wire: way(rng).map(|habits| Wire::new(habits, Node::default())),
            source: None,
            upper: None,
            below: None,
            saved: None,
            connected: true,
            feed: Feed::new(rng),
        }
    }

    /// Begins a view in which nothing is known; returns whether there was none.
    pub(crate) fn attach(&mut self, view: Arc<View>, node: Node) -> bool {
        let saved = self.saved.as_ref().filter(|_| self.wire.is_some());
        let files = matches!(self.source, Some(Source::Folder(_)));
        let before = std::mem::replace(&mut self.writer, Writer::new(view, files, saved));
        self.wire = self.wire.take().map(|wire| wire.anew(node.clone()));
        if let Some(source) = &mut self.source {
            source.attach(node);
        }
        self.feed.clear();
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
        let changed = self.truth.apply(step, &mut course.rng);
        if changed.is_empty() {
            return;
        }
        if self.wire.is_some() || self.source.is_some() {
            course.log(|| format!("origin {zone}: {step:?}"));
            course.deliver(Event::Utter(zone, false));
            return;
        }
        for (kind, name) in &changed {
            let content = self.truth.get(*kind, name).cloned();
            self.feed.push(News::Is(*kind, name.clone(), content));
        }
        course.log(|| format!("origin {zone}: {step:?}"));
        course.deliver(Event::Upstream(zone));
    }

    /// The relay's upstream task runs.
    pub(crate) fn upstream(&mut self, course: &mut Course) -> Result<(), Broken> {
        if self.source.is_some() {
            return self.read_source(course);
        }
        if self.wire.is_some() {
            self.write(Vec::new(), course);
            return Ok(());
        }
        let now = course.clock.instant();
        let server_state = if self.connected {
            ServerState::Up
        } else {
            ServerState::Failing
        };
        self.writer.view.publish_server_state(server_state);
        let wants = self.writer.view.take_wants(now);
        for want in wants {
            self.want(&want, course);
        }
        self.hear(course);
        self.set_lease(course);
        Ok(())
    }

    /// The writer runs again when unwanted names have lingered long enough.
    pub(crate) fn set_lease(&mut self, course: &mut Course) {
        let due = self.writer.view.demand().poll_timeout();
        self.writer.lease.set(due, Event::Upstream(self.id), course);
    }

    /// The control plane of a zone is gone.
    pub(crate) fn lose(&mut self, course: &mut Course) -> Result<(), Broken> {
        let zone = self.id;
        course.log(|| format!("upstream {zone}: lost"));
        course.tally.hit(Rule::G19);
        if self.wire.is_none() {
            return self.lost();
        }
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
