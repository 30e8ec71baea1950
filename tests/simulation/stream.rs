// SPDX-License-Identifier: Apache-2.0
//! A stream between a client and the relay: both pipes, and the relay's machine for it.
//!
//! Owns its timer. Knows nothing of the content of messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use cache::Scopes;
use distributary::downstream::Seats;
use peers::asked::Asked;
use protocol::{Response, Server};
use xds::{Dialect, Status, TypeUrl};

use super::body::Type;
use super::client::Client;
use super::course::Course;
use super::event::Event;
use super::lists::Plan;
use super::network::Pipe;
use super::scene::Scene;
use super::tally::{Broken, Rule, Tally};
use super::wire::{Answer, Up};

/// A stream between a client and the relay.
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) client: usize,
    pub(crate) zone: usize,
    pub(crate) dialect: Dialect,
    pub(crate) server: Server,
    pub(crate) place: Option<Seats>,
    /// The zone from which each authority was last read.
    pub(crate) reads: BTreeMap<Option<String>, usize>,
    /// The configuration that its session has taken up, where there are lists of servers.
    pub(crate) plan: Option<Arc<Plan>>,
    /// For each owner the zone that it reads since an earlier configuration, though another one is the first now (G-21).
    pub(crate) leaving: BTreeMap<Option<String>, usize>,
    /// The class of its client, where there are lists of servers.
    pub(crate) class: usize,
    /// What the client asked for, by the requests that the relay has read.
    pub(crate) wants: Arc<BTreeMap<Type, Arc<Asked>>>,
    /// How many more responses the transport can take.
    pub(crate) room: usize,
    waker: Waker,
    /// When the stream's timer is set to.
    timer: Option<Duration>,
    /// The time for which the timer has gone off: it is not set for that again until something else happens.
    pub(crate) fired: Option<Instant>,
    pub(crate) up: Pipe<(Up, Arc<Asked>)>,
    pub(crate) down: Pipe<(Answer, Scene)>,
    pub(crate) stalled: bool,
    pub(crate) at_relay: bool,
    pub(crate) at_client: bool,
}

impl Stream {
    pub(crate) fn new(id: u64, client: &Client, class: usize, server: Server, waker: Waker) -> Self {
        Self {
            id,
            client: client.id,
            zone: client.zone,
            dialect: client.dialect,
            server,
            place: None,
            reads: BTreeMap::new(),
            plan: None,
            leaving: BTreeMap::new(),
            class,
            wants: Arc::default(),
            room: client.window,
            waker,
            timer: None,
            fired: None,
            up: Pipe::default(),
            down: Pipe::default(),
            stalled: false,
            at_relay: true,
            at_client: true,
        }
    }

    /// When the relay must look after it, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        let settles = self.place.as_ref().and_then(Seats::poll_timeout);
        self.server.poll_timeout().into_iter().chain(settles).min()
    }
}

/// A type is finished when it has a response, or needs none and waits for no acknowledgement.
pub(crate) fn is_dealt_with(server: &Server, response: Option<&Response>, type_url: &TypeUrl) -> bool {
    match response {
        Some(response) => response.type_url == *type_url,
        None => !server
            .status()
            .any(|(known, status)| known == type_url && status == Status::Stale),
    }
}

/// The names of this world are few, so what is kept for one client is little, whatever it does.
const KEPT_MAX: usize = 1200;

impl Stream {
    /// The relay hears what has rung, and the session moves if it must; returns whether it has a place.
    pub(crate) fn poll(&mut self, scopes: &Scopes, now: Instant) -> bool {
        let Some(place) = &mut self.place else {
            return false;
        };
        let (server, fired) = (&mut self.server, &mut self.fired);
        place.poll_bells(&mut Context::from_waker(&self.waker), |type_url, dirty| {
            *fired = None;
            server.handle_dirty(type_url, dirty);
        });
        if place.settle(scopes, &self.server, now) {
            self.server.handle_moved(now);
        }
        true
    }

    /// Its timer has gone off; returns the time for which it was set, if that has come.
    pub(crate) fn fire(&mut self, now: Instant) -> Option<Instant> {
        self.timer = None;
        let due = self.due().filter(|due| *due <= now)?;
        self.fired = Some(due);
        Some(due)
    }

    pub(crate) fn check_kept(&self, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::K21);
        let (id, kept) = (self.id, self.server.kept());
        if kept > KEPT_MAX {
            return broken!(K21, "stream {id}: {kept} entries are kept");
        }
        Ok(())
    }

    pub(crate) fn set_timer(&mut self, course: &mut Course) {
        let Some(due) = self.due().filter(|due| self.fired != Some(*due)) else {
            return;
        };
        let now = course.clock.now();
        let time = course.clock.time(due).max(now);
        if self.timer.is_none_or(|timer| time < timer || timer < now) {
            self.timer = Some(time);
            course.at(time, Event::Timer(self.id));
        }
    }
}
