// SPDX-License-Identifier: Apache-2.0
//! The turn of a writer whose control plane is asked over streams: its machines are driven as their shell drives them.
//!
//! Owns the order of a turn. Knows nothing of the content of messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use protocol::{LegKind, Request};
use xds::{Changes, Name, Objection, Rejection, Resource, TypeUrl, Want};

use super::course::Course;
use super::event::Event;
use super::network::Pipe;
use super::origin::Session;
use super::upstream::{At, Hop, Leg, Link, Stage};
use super::wire::Up;
use super::zone::Zone;

/// How long a stream on which nothing is wanted is kept.
const IDLE: Duration = Duration::from_secs(10);

impl Zone {
    /// The stream that an event is about, if it still is.
    pub(crate) fn leg(&mut self, at: At) -> Option<&mut Leg> {
        self.wire.leg(at)
    }

    /// Tells the streams what is wanted, and publishes what an earlier run of the relay knew of that.
    fn tell(&mut self, mut told: Vec<(LegKind, Want)>, changes: &mut Vec<Changes>) {
        loop {
            let earlier = self.writer.view.head().restored();
            let told_now = std::mem::take(&mut told).into_iter();
            let restored = told_now.filter_map(|want| self.wire.tell(want, earlier.as_deref(), changes));
            let restored: Vec<Changes> = restored.collect();
            if restored.is_empty() {
                return;
            }
            told = self.writer.publish_restored(&restored);
        }
    }

    /// The writer's turn: wants go to the machines, changes into the view, requests to the transport.
    pub(crate) fn write(&mut self, mut changes: Vec<Changes>, course: &mut Course) {
        let zone = self.id;
        let now = course.clock.instant();
        let superseded = self.writer.view.mailbox().take_superseded();
        for leg in &mut self.wire.legs {
            leg.superseded |= superseded;
            leg.stood_in = leg.stood_in.map(|_| true);
        }
        self.tell_rejected(now);
        self.writer.hold(&mut changes, now);
        let wants = self.writer.view.take_wants(now);
        for want in wants {
            let sign = if want.wanted { '+' } else { '-' };
            course.log(|| format!("upstream {zone}: {sign} {:?} {:?}", want.type_url, want.target));
            let told = self.writer.demand(&want);
            self.tell(told, &mut changes);
        }
        loop {
            let mut said = Vec::new();
            self.divide(now);
            (0..2).for_each(|leg| self.turn_leg(leg, &mut said, course));
            if self.divide(now) {
                (0..2).for_each(|leg| self.turn_leg(leg, &mut said, course));
            }
            (0..2).for_each(|leg| self.report(leg, now, course));
            self.writer.hold(&mut said, now);
            changes.append(&mut said);
            self.writer.cross(&mut changes, now);
            if changes.is_empty() {
                changes = self.writer.release(now);
            }
            self.writer.note_holds(&mut course.tally);
            if changes.is_empty() {
                let before = self.writer.view.cut().server_state();
                let server_state = self.wire.server_state(before, course.clock.now());
                self.writer.rest(server_state, now, &mut course.tally);
                if before != server_state {
                    course.log(|| format!("upstream {zone}: {before:?} -> {server_state:?}"));
                }
                break;
            }
            let heard = std::mem::take(&mut changes);
            course.log(|| format!("upstream {zone}: heard {heard:?}"));
            self.writer.publish(&heard);
            let told = self.writer.demand.handle_cut(&self.writer.view.cut());
            self.tell(told, &mut changes);
        }
        self.set_writer(course);
    }

    fn divide(&mut self, now: Instant) -> bool {
        let demand = self.writer.view.demand();
        let is_wanted = |type_url: &TypeUrl, name: &Name| demand.wants(type_url, name);
        self.wire.divide(is_wanted, now)
    }

    /// E-24: tells the streams of which types clients have rejected something.
    fn tell_rejected(&mut self, now: Instant) {
        let rejected = self.writer.view.rejected().take();
        for leg in &mut self.wire.legs {
            rejected
                .iter()
                .for_each(|type_url| leg.client.handle_rejected(type_url, now));
        }
    }

    /// Answers what a stream wants to know of the clients: in these worlds they reject everything, whenever the relay asks.
    fn report(&mut self, at: usize, now: Instant, course: &mut Course) {
        let cut = self.writer.view.cut();
        let leg = &mut self.wire.legs[at];
        for type_url in leg.client.take_questions() {
            let slot = cut.slot(&type_url);
            let states = slot
                .into_iter()
                .flat_map(|slot| slot.wildcard.iter().chain([&slot.named]));
            let resources = states.flat_map(|state| state.resources());
            let rejections: Vec<Rejection> = resources.map(|resource| rejected(resource, now)).collect();
            leg.client.handle_rejections(&type_url, &rejections);
        }
        if leg.stage == Stage::Live {
            self.speak_up(at, now, course);
        }
    }

    fn set_writer(&mut self, course: &mut Course) {
        let legs = self.wire.legs.iter().map(|leg| leg.client.poll_timeout());
        let ours = [
            self.writer.view.demand().poll_timeout(),
            self.writer.guard.poll_timeout(),
        ];
        let division = self.wire.division.poll_timeout();
        let due = legs.chain(ours).flatten().chain(division).min();
        self.writer.alarm.set(due, Event::Upstream(self.id), course);
    }

    fn turn_leg(&mut self, at: usize, changes: &mut Vec<Changes>, course: &mut Course) {
        let zone = self.id;
        let now = course.clock.instant();
        let wire = &mut self.wire;
        let leg = &mut wire.legs[at];
        let due = leg.client.poll_timeout();
        let late = leg.client.handle_timeout(now);
        if !late.is_empty() {
            course.clock.late(due, "a control plane's silence counted");
        }
        changes.extend(late);
        if let Some(seen) = leg.client.take_rhythm() {
            Arc::make_mut(&mut wire.rhythm).merge(&seen);
        }
        if leg.stage == Stage::Opening && !leg.client.wanted() {
            leg.stage = Stage::Rest;
            leg.link = None;
        }
        if leg.stage == Stage::Rest && leg.client.wanted() {
            leg.stage = Stage::Opening;
            let id = course.next_stream();
            let wire_at = At { zone, leg: at, id };
            let session = Session::new(&wire.habits, course.calm, &mut course.rng);
            leg.link = Some(Link {
                id,
                session,
                ahead: None,
                up: Pipe::default(),
                down: Pipe::default(),
                answered: false,
                mute: false,
                opened: course.clock.now(),
                clean: false,
                blurred: false,
            });
            course.deliver(Event::Hop(Hop::Opened(wire_at)));
            return;
        }
        if leg.stage != Stage::Live {
            return;
        }
        let idle = !leg.client.wanted() && !std::mem::replace(&mut leg.idle, true);
        if let Some(id) = leg.link.as_ref().map(|link| link.id).filter(|_| idle) {
            course.after(IDLE, Event::Hop(Hop::Idle(At { zone, leg: at, id })));
        }
        self.speak_up(at, now, course);
    }

    /// Sends the requests of the leg's machine.
    fn speak_up(&mut self, at: usize, now: Instant, course: &mut Course) {
        let leg = &mut self.wire.legs[at];
        leg.idle &= !leg.client.wanted();
        let Some(link) = &mut leg.link else { return };
        let (zone, id) = (self.id, link.id);
        while let Some(request) = leg.client.poll_request(now) {
            let request = introduced(request, leg.client.take_node());
            course.log(|| format!("upstream {zone}/{at}: relay -> {}", brief(&request)));
            let arrives = link.up.send(request, course.clock.now() + course.delay());
            course.at(arrives, Event::Hop(Hop::Request(At { zone, leg: at, id })));
        }
    }
}

/// The request with its node.
pub(crate) fn introduced(mut request: Request, node: Option<Bytes>) -> Request {
    let node = node.unwrap_or_default();
    let merged = match &mut request {
        Request::Sotw(request) => request.merge(node),
        Request::Delta(request) => request.merge(node),
    };
    merged.expect("a field with a node");
    request
}

fn rejected(resource: &Resource, now: Instant) -> Rejection {
    Rejection {
        content: Some((resource.name().clone(), resource.version())),
        kind: "envoy 1".into(),
        clients: 1,
        of: 1,
        objection: Arc::new(Objection::new(0, "no", now)),
    }
}

/// Formats a request for the trace.
fn brief(request: &Request) -> String {
    match request {
        Request::Sotw(request) => Up::Sotw(request.clone()).brief(),
        Request::Delta(request) => Up::Delta(request.clone()).brief(),
    }
}
