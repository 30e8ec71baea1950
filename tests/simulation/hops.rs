// SPDX-License-Identifier: Apache-2.0
//! The events between the relay and a control plane, step by step.
//!
//! Owns the life of the streams: opened, asked, answered, ended. Does not know how the writer uses the responses.

use std::time::Duration;

use bytes::Bytes;
use protocol::{Client, Pause, Request};
use xds::Changes;

use super::body::Type;
use super::course::Course;
use super::event::Event;
use super::origin::{Reply, begins};
use super::origins::Origins;
use super::tally::{Broken, Rule};
use super::upstream::{At, Hop, Link, SILENT, Stage};
use super::wire::cut;
use super::world::World;
use super::zone::Zone;

impl World {
    pub(crate) fn hop(&mut self, hop: Hop) -> Result<(), Broken> {
        match hop {
            Hop::Opened(at) => self.origins[at.zone].opened(at, &mut self.course),
            Hop::Request(at) => return self.asked(at),
            Hop::Response(at) => return self.origins[at.zone].answered(at, &mut self.course),
            Hop::Idle(at) => self.origins[at.zone].idle(at, &mut self.course),
            Hop::Noticed(at) => {
                self.course.tally.hit(Rule::Mute);
                // A connection that is still being opened fails.
                self.origins[at.zone].unreachable(at, &mut self.course);
                return self.origins[at.zone].hang_up(at, &mut self.course);
            }
            Hop::TimedOut(at) => self.origins[at.zone].unreachable(at, &mut self.course),
            Hop::Retry(at) => {
                let here = &mut self.origins[at.zone];
                if let Some(leg) = here.leg(at) {
                    leg.stage = Stage::Rest;
                    leg.link = None;
                    here.write(Vec::new(), &mut self.course);
                }
            }
        }
        Ok(())
    }

    /// A request arrives at the control plane.
    fn asked(&mut self, at: At) -> Result<(), Broken> {
        let leg = self.origins[at.zone].leg(at);
        let link = leg.and_then(|leg| leg.link.as_mut());
        let clean = link.as_ref().is_some_and(|link| link.clean);
        let Some(request) = link.and_then(|link| link.up.arrive(false).filter(|_| !link.mute)) else {
            return Ok(());
        };
        let node = match &request {
            Request::Sotw(request) => &request.node,
            Request::Delta(request) => &request.node,
        };
        if let Some(node) = node.as_ref().filter(|_| self.origins.lists.is_none()) {
            let zone = self.origins.recognise(node, &mut self.course.tally)?;
            if zone != at.zone {
                return broken!(K04, "upstream {} is taken for a client of zone {zone}", at.zone);
            }
        }
        if let Some(node) = node.as_ref().filter(|_| self.origins.lists.is_some()) {
            self.origins.check_marks(at, node, &mut self.course.tally)?;
            self.origins[at.zone].check_side(Some(node), &mut self.course.tally)?;
        }
        if self.origins.lists.is_some() {
            // E-04: one resource of a type is brought with a version that nobody gave.
            let given = |version: &&String| clean || *version != "unknown";
            let (declared, first): (Vec<&String>, bool) = match &request {
                // E-25: so is what is held.
                Request::Sotw(request) if request.version_info == "unknown" => (Vec::new(), false),
                Request::Sotw(request) => (vec![&request.version_info], request.response_nonce.is_empty()),
                Request::Delta(request) => (request.initial_resource_versions.values().filter(given).collect(), true),
            };
            self.origins[at.zone].check_versions(&declared, clean && first, &mut self.course.tally)?;
        }
        if self.origins[at.zone].upper.is_some() {
            return self.ask_upper(at, &request);
        }
        self.origins[at.zone].respond(at, &request, &mut self.course);
        Ok(())
    }
}

impl Origins {
    /// E-17: ends the streams on which the relay may hold content that is gone. On the next ones it learns that.
    pub(crate) fn end_blurred(&mut self, course: &mut Course) -> Result<(), Broken> {
        self.zones.iter_mut().try_for_each(|zone| {
            let mut blurred = zone.links(|link| link.blurred).into_iter();
            blurred.try_for_each(|at| zone.hang_up(at, course))
        })
    }
}

impl Zone {
    /// What the control plane makes of a request.
    fn respond(&mut self, at: At, request: &Request, course: &mut Course) {
        let Some(link) = self.wire.leg(at).and_then(|leg| leg.link.as_mut()) else {
            return;
        };
        let replies = link.session.request(request, self.truth.state(), &mut course.rng);
        if let Some(kind) = begins(request) {
            let mut coming = link.down.iter().flat_map(|reply| reply.brings(kind));
            link.blurred |= coming.any(|key| !link.session.stream.has_sent(kind.url(), &key));
        }
        let mut all = Type::EVERY.iter();
        if all.any(|kind| link.session.withholds(*kind, self.truth.state())) {
            course.tally.hit(Rule::E18);
        }
        let replies = self.cut_short(replies);
        self.reply(at, replies, course);
    }

    /// E-19: when nothing more is wanted on a stream, the server is not told; the stream is closed after a while.
    fn idle(&mut self, at: At, course: &mut Course) {
        let Some(leg) = self.leg(at) else {
            return;
        };
        leg.idle = false;
        if leg.stage == Stage::Live && !leg.client.wanted() {
            let lost = leg.client.handle_disconnected();
            leg.stage = Stage::Rest;
            leg.link = None;
            self.write(lost, course);
        }
    }

    fn opened(&mut self, at: At, course: &mut Course) {
        let now = course.clock.now();
        if self.hangs(at, course) {
            return;
        }
        if !self.connected {
            self.unreachable(at, course);
            return;
        }
        let rhythm = self.wire.rhythm.clone();
        let Some(leg) = self.wire.leg(at).filter(|leg| leg.stage == Stage::Opening) else {
            return;
        };
        leg.stage = Stage::Live;
        leg.client.handle_rhythm(rhythm);
        if std::mem::take(&mut leg.superseded) {
            leg.client.handle_superseded();
        }
        leg.client.handle_connected(Duration::from_millis(5));
        let clean = leg.stood_in.take_if(|seen| *seen).is_some();
        if let Some(link) = &mut leg.link {
            (link.opened, link.clean) = (now, clean);
        }
        course.at(now + SILENT, Event::Upstream(at.zone));
        course.log(|| format!("upstream {}/{}: stream {} opened", at.zone, at.leg, at.id));
        self.write(Vec::new(), course);
    }

    /// G-02: the connection fails.
    fn unreachable(&mut self, at: At, course: &mut Course) {
        let now = course.clock.instant();
        let dice = course.rng.range(0, 100) as f64 / 100.0;
        let Some(leg) = self.leg(at).filter(|leg| leg.stage == Stage::Opening) else {
            return;
        };
        leg.stage = Stage::Waiting;
        leg.failing = true;
        let pause = Pause::new(leg.backoff.handle_failure(dice), now);
        let due = pause.due(leg.client.lacks());
        course.at(course.clock.time(due), Event::Hop(Hop::Retry(at)));
        course.log(|| format!("upstream {}/{}: not reached", at.zone, at.leg));
        self.write(Vec::new(), course);
    }

    /// The control plane has changed its content, or confirms it.
    pub(crate) fn utter(&mut self, beat: bool, course: &mut Course) {
        let zone = self.id;
        if beat && !course.calm {
            course.soon(2000, 8000, Event::Utter(zone, true));
        }
        for leg in 0..2 {
            let Some(link) = &mut self.wire.legs[leg].link else {
                continue;
            };
            let replies = match beat {
                true => link.session.beat(self.truth.state(), &mut course.rng),
                false => link.session.push(self.truth.state(), &mut course.rng),
            };
            let id = link.id;
            self.reply(At { zone, leg, id }, replies, course);
        }
    }

    pub(crate) fn reply(&mut self, at: At, replies: Vec<Reply>, course: &mut Course) {
        let dialect = self.wire.legs[at.leg].client.dialect();
        for reply in replies {
            course.log(|| format!("origin {}/{}: -> {}", at.zone, at.leg, reply.brief(dialect)));
            let arrives = course.clock.now() + course.delay();
            let leg = self.leg(at);
            let Some(link) = leg.and_then(|leg| leg.link.as_mut()) else {
                return;
            };
            let arrives = link.down.send(reply, arrives);
            course.at(arrives, Event::Hop(Hop::Response(at)));
        }
    }

    /// A response arrives at the relay.
    fn answered(&mut self, at: At, course: &mut Course) -> Result<(), Broken> {
        let now = course.clock.instant();
        let Some(leg) = self.leg(at).filter(|leg| leg.stage == Stage::Live) else {
            return Ok(());
        };
        let link = leg.link.as_mut();
        let Some(reply) = link.and_then(|link| link.down.arrive(false).filter(|_| !link.mute)) else {
            return Ok(());
        };
        let bytes = match reply {
            Reply::Message(bytes) => bytes,
            Reply::Close => return self.hang_up(at, course),
        };
        let changes = feed(&mut leg.client, bytes, now);
        if let Some(link) = leg.link.as_mut().filter(|link| !link.answered) {
            link.answered = true;
            leg.backoff.handle_response();
            self.wire.answered();
        }
        self.write(changes, course);
        Ok(())
    }

    /// The stream has ended. G-19: that changes nothing.
    fn hang_up(&mut self, at: At, course: &mut Course) -> Result<(), Broken> {
        let now = course.clock.now();
        let dice = course.rng.range(0, 100) as f64 / 100.0;
        let Some(leg) = self.leg(at).filter(|leg| leg.stage == Stage::Live) else {
            return Ok(());
        };
        let lost = leg.client.handle_disconnected();
        leg.stage = Stage::Waiting;
        let lived = leg
            .link
            .as_ref()
            .map_or(Duration::ZERO, |link| now.saturating_sub(link.opened));
        let answered = leg.link.as_ref().is_some_and(|link| link.answered);
        let wait = match answered {
            true => leg.backoff.handle_end(lived, dice),
            false => {
                leg.failing = true;
                leg.backoff.handle_failure(dice)
            }
        };
        let lacks = leg.client.lacks();
        course.log(|| format!("upstream {}/{}: stream {} ended", at.zone, at.leg, at.id));
        course.tally.hit(Rule::G19);
        let quiet = |changes: &Changes| changes.updates.is_empty() && changes.complete.is_none();
        if !lost.iter().all(quiet) {
            return broken!(G19, "a lost stream changed {lost:?}");
        }
        let due = Pause::new(wait, course.clock.instant()).due(lacks);
        course.at(course.clock.time(due), Event::Hop(Hop::Retry(at)));
        self.write(lost, course);
        Ok(())
    }

    /// Nothing arrives on either stream any more, until the transport's own checks notice.
    pub(crate) fn mute(&mut self, course: &mut Course) {
        for at in self.links(|_| true) {
            if let Some(link) = self.leg(at).and_then(|leg| leg.link.as_mut()) {
                link.mute = true;
            }
            course.log(|| format!("upstream {}/{}: stream {} falls silent", at.zone, at.leg, at.id));
            course.soon(10_000, 60_000, Event::Hop(Hop::Noticed(at)));
        }
    }

    /// The streams of this kind.
    fn links(&self, kind: impl Fn(&Link) -> bool) -> Vec<At> {
        let legs = self.wire.legs.iter().enumerate();
        let links = legs.filter_map(|(leg, it)| Some((leg, it.link.as_ref()?)));
        let links = links.filter(|(_, link)| kind(link));
        let zone = self.id;
        links.map(|(leg, link)| At { zone, leg, id: link.id }).collect()
    }

    /// Both streams to a control plane break.
    pub(crate) fn sever(&mut self, course: &mut Course) -> Result<(), Broken> {
        let mut links = self.links(|_| true).into_iter();
        links.try_for_each(|at| self.hang_up(at, course))
    }
}

fn feed(client: &mut Client, bytes: Bytes, now: std::time::Instant) -> Vec<Changes> {
    let arrival = cut(bytes).finish(client.dialect());
    arrival
        .map(|arrival| client.handle_response(arrival, now))
        .unwrap_or_default()
}
