// SPDX-License-Identifier: Apache-2.0
//! A server of a list that is a relay itself, with a control plane of its own.
//!
//! Owns the upper relay: its views, and its half of the streams from the relay below. Knows nothing of the clients of the
//! relay below.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use ::classes::Classes;
use cache::{Route, Routes, Scopes};
use distributary::downstream::Seats;
use proto::envoy::config::core::v3::Node;
use protocol::{Request, Server, StreamSettings, come_through, read_node};
use xds::{Dialect, Resource};

use crate::abilities::timed_out;
use crate::body::Type;
use crate::classes::{self, ANYBODY, opening, relay_node};
use crate::course::{Alarm, Course};
use crate::event::Event;
use crate::origin::{Habits, Reply};
use crate::origins::Origins;
use crate::rng::Rng;
use crate::tally::{Broken, Rule, Tally};
use crate::upstream::{At, Stage, Wire};
use crate::wire::encode;
use crate::world::World;
use crate::zone::Zone;

/// The relay above.
pub(crate) struct Upper {
    /// The zone that is its control plane.
    pub(super) origin: usize,
    scopes: Scopes,
    settings: Arc<StreamSettings>,
    /// Whether its control plane can report that a resource is gone, whatever the type.
    full: bool,
}

/// The upper relay's half of one stream from the relay below.
pub(crate) struct Ahead {
    server: Server,
    place: Option<Seats>,
    waker: Waker,
    alarm: Alarm,
    /// The time for which the timer has already fired.
    fired: Option<Instant>,
}

impl Upper {
    /// Whether it can report that a resource of this type is gone.
    pub(crate) const fn says_gone(&self, kind: Type) -> bool {
        self.full || kind.full_state()
    }

    fn forget(&mut self) {
        self.scopes = scopes();
    }
}

fn scopes() -> Scopes {
    let served = crate::names::SERVED.iter().map(|name| {
        (
            Arc::from(*name),
            Route {
                shared: true,
                ..Route::default()
            },
        )
    });
    classes::scopes(&Classes::default(), Routes::new(Route::default(), served.collect()), 0)
}

impl World {
    /// Handles a request of the relay below.
    pub(crate) fn ask_upper(&mut self, at: At, request: &Request) -> Result<(), Broken> {
        let now = self.course.clock.instant();
        let here = &mut self.origins[at.zone];
        let Some(settings) = here.upper.as_ref().map(|upper| upper.settings.clone()) else {
            return Ok(());
        };
        let dialect = here.wire.habits.dialect;
        let Some(leg) = here.wire.leg(at).filter(|leg| leg.stage == Stage::Live) else {
            return Ok(());
        };
        let Some(link) = leg.link.as_mut() else { return Ok(()) };
        let mut ahead = link.ahead.take().unwrap_or_else(|| {
            Box::new(Ahead {
                server: Server::new(settings.clone(), opening(dialect, at.id as u32)),
                place: None,
                waker: self.network.waker(at.id),
                alarm: Alarm::default(),
                fired: None,
            })
        });
        ahead.fired = None;
        let receipt = match request {
            Request::Sotw(request) => ahead.server.handle(request.clone(), &self.relay.answers, now),
            Request::Delta(request) => ahead.server.handle(request.clone(), &self.relay.answers, now),
        };
        if let Err(end) = receipt {
            self.course
                .log(|| format!("upper {}/{}: ends stream {}: {end}", at.zone, at.leg, at.id));
            self.origins[at.zone].reply(at, vec![Reply::Close], &mut self.course);
            return Ok(());
        }
        if settings.relay_id == "relay" {
            return broken!(K25, "a relay talks to itself");
        }
        if let (None, Some(node)) = (&ahead.place, ahead.server.node())
            && let Some(upper) = &self.origins[at.zone].upper
        {
            let place = Seats::enter(&upper.scopes, node, &Arc::default(), settings.timers.move_after);
            ahead.place = Some(place.map_err(|full| Broken::new(Rule::Views, full.to_string()))?);
        }
        self.turn_upper(at, ahead)
    }

    /// Runs the task of a stream, if it belongs to a relay above.
    pub(crate) fn turn_ahead(&mut self, id: u64) -> Result<(), Broken> {
        for zone in 0..self.origins.len() {
            for leg in 0..2 {
                let at = At { zone, leg, id };
                let ahead = self.origins[zone]
                    .wire
                    .leg(at)
                    .and_then(|leg| leg.link.as_mut()?.ahead.take());
                if let Some(ahead) = ahead {
                    return self.turn_upper(at, ahead);
                }
            }
        }
        Ok(())
    }

    fn turn_upper(&mut self, at: At, mut ahead: Box<Ahead>) -> Result<(), Broken> {
        let now = self.course.clock.instant();
        let (replies, wanted) = match &self.origins[at.zone].upper {
            Some(upper) => ahead.speak(&upper.scopes, &self.relay.answers, now)?,
            None => return Ok(()),
        };
        self.origins.see_above(at.zone, &mut self.course);
        if wanted {
            let (delay, origin) = (self.course.rng.millis(0, 5), self.origins.origin(at.zone));
            self.course.after(delay, Event::Upstream(origin));
        }
        let due = ahead.due().filter(|due| ahead.fired != Some(*due));
        ahead.alarm.set(due, Event::Turn(at.id), &mut self.course);
        if let Some(link) = self.origins[at.zone].wire.leg(at).and_then(|leg| leg.link.as_mut()) {
            link.ahead = Some(ahead);
        }
        let replies = self.origins[at.zone].cut_short(replies);
        self.origins[at.zone].reply(at, replies, &mut self.course);
        Ok(())
    }
}

impl Origins {
    /// Turns some servers into relays. Their control planes are zones that are in no list.
    pub(super) fn with_uppers(&mut self, settings: &StreamSettings, rng: &mut Rng) {
        for server in 0..self.zones.len() {
            let origin = self.zones.len();
            let here = &mut self.zones[server];
            if !rng.chance(30) {
                continue;
            }
            let truth = here.truth.clone();
            let habits = Habits::of_server(origin, rng);
            // Now and then it is this very relay (K-25).
            let relay_id = if rng.chance(10) {
                "relay".to_owned()
            } else {
                format!("upper-{server}")
            };
            let settings = StreamSettings {
                relay_id: relay_id.clone(),
                classes: Classes::default(),
                ..settings.clone()
            };
            self.zones[server].upper = Some(Box::new(Upper {
                origin,
                scopes: scopes(),
                settings: Arc::new(settings),
                full: habits.dialect == Dialect::Delta,
            }));
            let mut zone = Zone::new(origin, ANYBODY, rng);
            zone.truth = truth;
            zone.wire = Wire::above(habits, Node::default(), &relay_id);
            zone.below = Some(server);
            self.zones.push(zone);
        }
    }

    /// Ends all loops: no server is this very relay any more.
    pub(super) fn mend_loops(&mut self) {
        for server in 0..self.zones.len() {
            let origin = self.origin(server);
            let Some(upper) = &mut self.zones[server].upper else {
                continue;
            };
            if upper.settings.relay_id == "relay" {
                let relay_id = format!("upper-{server}");
                Arc::make_mut(&mut upper.settings).relay_id.clone_from(&relay_id);
                let wire = &mut self.zones[origin].wire;
                *wire = Wire::above(wire.habits.clone(), Node::default(), &relay_id);
            }
        }
    }

    /// The zone that owns the content of a server.
    pub(crate) fn origin(&self, server: usize) -> usize {
        self.zones[server].upper.as_ref().map_or(server, |upper| upper.origin)
    }

    /// Copies to each server the content of its control plane.
    pub(crate) fn see_origins(&mut self) {
        for server in 0..self.zones.len() {
            self.zones[server].truth = self.zones[self.origin(server)].truth.clone();
        }
    }

    /// Gives new views of the relay above their writers.
    fn see_above(&mut self, server: usize, course: &mut Course) {
        let Some(upper) = &self.zones[server].upper else { return };
        let (origin, created) = (upper.origin, upper.scopes.take_created());
        for view in created {
            let node = view.class().presented().over(&relay_node());
            let node = come_through(
                node,
                view.mailbox().take_relays(course.clock.instant()).unwrap_or_default(),
            );
            course.log(|| format!("upstream {origin}: a view of the relay above begins"));
            self.zones[origin].attach(view, node);
        }
    }

    /// Ends the views of relays above that no session has used for long.
    pub(crate) fn sweep_above(&self, now: Instant) {
        for upper in self.zones.iter().filter_map(|zone| zone.upper.as_ref()) {
            upper.scopes.sweep(now);
        }
    }

    /// How many views the relays above have.
    pub(crate) fn views_above(&self) -> usize {
        let uppers = self.zones.iter().filter_map(|zone| zone.upper.as_ref());
        uppers.map(|upper| upper.scopes.all().len()).sum()
    }

    /// Restarts a relay above, or cuts it off from its control plane.
    pub(crate) fn fault_above(&mut self, course: &mut Course) -> Result<(), Broken> {
        let uppers: Vec<usize> = (0..self.zones.len())
            .filter(|at| self.zones[*at].upper.is_some())
            .collect();
        let Some(server) = course.rng.pick(&uppers).copied() else {
            return Ok(());
        };
        let origin = self.origin(server);
        if course.rng.chance(50) {
            course.soon(50, 15_000, Event::Reach(origin));
            return self.zones[origin].lose(course);
        }
        course.log(|| format!("the relay that is server {server} restarts"));
        let legs = self.zones[server].wire.legs.iter_mut();
        legs.filter_map(|leg| leg.link.as_mut())
            .for_each(|link| link.ahead = None);
        if let Some(upper) = &mut self.zones[server].upper {
            upper.forget();
        }
        if course.besides.amnesia && course.rng.chance(70) {
            self.zones[origin].save(course.clock.instant());
        }
        self.zones[origin].detach();
        self.zones[server].sever(course)
    }

    /// K-25: each relay on the way has left its mark, once.
    pub(crate) fn check_marks(&mut self, at: At, node: &Node, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::K25);
        let mut expected = vec!["relay".to_owned()];
        let above = self.zones[at.zone]
            .below
            .and_then(|server| self.zones[server].upper.as_ref());
        expected.extend(above.map(|upper| upper.settings.relay_id.clone()));
        let node = read_node(node);
        let relays = node.relays();
        if relays != expected {
            return broken!(
                K25,
                "server {} is asked by way of {relays:?}, not {expected:?}",
                at.zone
            );
        }
        Ok(())
    }

    /// Checks, at rest, that both relays give equal content equal versions.
    pub(crate) fn compare_chains(&mut self, tally: &mut Tally) -> Result<(), Broken> {
        for server in 0..self.zones.len() {
            let (below, above) = (&self.zones[server], &self.zones[self.origin(server)]);
            if below.upper.is_none() || !below.writer.attached || !above.writer.attached {
                continue;
            }
            let mut compared = 0;
            let (lower, upper) = (below.writer.view.cut(), above.writer.view.cut());
            for (type_url, slot) in lower.slots() {
                let other = upper.slot(type_url);
                let kind = Type::of(type_url.url());
                let unsays = kind.is_some_and(|kind| below.says_gone(kind));
                let state = slot.wildcard.as_ref().filter(|state| state.complete());
                let theirs = other.and_then(|slot| slot.wildcard.as_ref());
                if let (Some(ours), Some(theirs)) = (state, theirs)
                    && unsays
                    && ours.sum() != theirs.sum()
                {
                    return broken!(
                        Chain,
                        "server {server}: {type_url:?} is {} here, and {} there",
                        ours.sum(),
                        theirs.sum()
                    );
                }
                for resource in slot
                    .named
                    .resources()
                    .chain(state.into_iter().flat_map(|state| state.resources()))
                {
                    let theirs = other.and_then(|slot| slot.resource(resource.name()));
                    let silent = |kind| timed_out(&upper, kind, resource.name().as_str());
                    // What the relay above has not confirmed in time goes for this one, which may hold that.
                    let held = |kind| below.writer.holds(kind, resource.name().as_str());
                    if theirs.is_none() && (!unsays || kind.is_some_and(silent) || kind.is_some_and(held)) {
                        continue;
                    }
                    compared += 1;
                    if theirs.map(|theirs| theirs.version()) != Some(resource.version()) {
                        return broken!(
                            Chain,
                            "server {server}: {} is {} here, and {:?} there",
                            resource.name(),
                            resource.version(),
                            theirs.map(|theirs| Resource::version(theirs).to_string())
                        );
                    }
                }
            }
            (0..compared).for_each(|_| tally.hit(Rule::Chain));
        }
        Ok(())
    }
}

impl Ahead {
    /// When its task must run, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        let settles = self.place.as_ref().and_then(Seats::poll_timeout);
        self.server.poll_timeout().into_iter().chain(settles).min()
    }

    /// Returns the responses of the relay above, and whether it wants anything new.
    fn speak(&mut self, scopes: &Scopes, answers: &cache::Library, now: Instant) -> Result<(Vec<Reply>, bool), Broken> {
        let Some(place) = &mut self.place else {
            return Ok((Vec::new(), false));
        };
        let (server, fired) = (&mut self.server, &mut self.fired);
        place.poll_bells(&mut Context::from_waker(&self.waker), |type_url, dirty| {
            *fired = None;
            server.handle_dirty(type_url, dirty);
        });
        if place.settle(scopes, &self.server, now) {
            self.server.handle_moved(now);
        }
        let mut wanted = false;
        while let Some(want) = self.server.poll_want() {
            wanted = true;
            let said = place.want(scopes, &want);
            said.map_err(|full| Broken::new(Rule::K21, full.to_string()))?;
        }
        if wanted {
            place.rest();
        }
        let sight = place.sight();
        let mut replies = Vec::new();
        if let Some(due) = self
            .server
            .poll_timeout()
            .filter(|due| *due <= now && self.fired != Some(*due))
        {
            self.fired = Some(due);
            self.server.handle_timeout(now);
        }
        loop {
            let response = self.server.poll_response(&sight, answers, now);
            place.looked(|type_url| crate::stream::is_dealt_with(&self.server, response.as_ref(), type_url));
            let Some(response) = response else { break };
            replies.push(Reply::Message(encode(&response)));
        }
        replies.extend(self.server.poll_end().map(|_| Reply::Close));
        Ok((replies, wanted))
    }
}
