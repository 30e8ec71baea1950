// SPDX-License-Identifier: Apache-2.0
//! The relay's half of the streams to a control plane: the machines of both streams.
//!
//! Owns the links and the attempts. Knows nothing of the content of messages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::envoy::config::core::v3::Node;
use protocol::{Backoff, Client, Division, LegKind, Request, Rhythm};
use xds::{Changes, Cut, Name, ServerState, TypeUrl, Want};

use super::besides::Besides;
use super::body::Type;
use super::classes::client_settings;
use super::lists::Ahead;
use super::network::Pipe;
use super::origin::{Habits, Reply, Session};
use super::rng::Rng;

/// The relay's writer of one view, and the control plane at the other end.
pub(crate) struct Wire {
    pub(crate) habits: Habits,
    /// The streams.
    pub(crate) legs: [Leg; 2],
    /// Which names of a type are asked for beside the others.
    pub(crate) division: Division,
    /// The types of which any names ever were.
    pub(crate) divided: BTreeSet<TypeUrl>,
    /// What the relay has learned of how the control plane answers.
    pub(crate) rhythm: Arc<Rhythm>,
    /// The id of the relay that writes.
    relay: String,
}

/// How long a control plane may take for a name; a stream without an answer is silent for long after that.
pub(crate) const SILENT: Duration = Duration::from_secs(15);

/// One stream and its attempts.
pub(crate) struct Leg {
    pub(crate) client: Client,
    pub(crate) backoff: Backoff,
    pub(crate) stage: Stage,
    /// Whether a check for an idle stream is scheduled.
    pub(crate) idle: bool,
    pub(crate) link: Option<Link>,
    /// Whether the last attempt failed, and no stream of the view was answered since.
    pub(crate) failing: bool,
    /// Whether another server has stood in since the last stream began, as far as the writer knows.
    pub(crate) superseded: bool,
    /// The same, as the world knows: `false` once another server has stood in, `true` when the writer has had a turn since.
    pub(crate) stood_in: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Rest,
    Opening,
    Live,
    Waiting,
}

/// One stream, from the attempt to open it.
pub(crate) struct Link {
    pub(crate) id: u64,
    pub(crate) session: Session,
    /// If the control plane is a relay: that relay's half.
    pub(crate) ahead: Option<Box<Ahead>>,
    pub(crate) up: Pipe<Request>,
    pub(crate) down: Pipe<Reply>,
    pub(crate) answered: bool,
    /// Whether everything sent on it is lost, without either side knowing.
    pub(crate) mute: bool,
    pub(crate) opened: Duration,
    /// Whether it must not declare anything from before (L-20).
    pub(crate) clean: bool,
    /// Whether a wildcard began while content was on its way that the server does not count as sent any more (E-17).
    pub(crate) blurred: bool,
}

/// Which stream of which zone an event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) zone: usize,
    pub(crate) leg: usize,
    pub(crate) id: u64,
}

/// Something that happens on the way to a control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hop {
    Opened(At),
    Request(At),
    Response(At),
    Retry(At),
    /// The transport reports that the control plane is not reachable.
    Noticed(At),
    /// The relay stops waiting for a connection.
    TimedOut(At),
    /// Perhaps nothing has been wanted on the stream for a while.
    Idle(At),
}

/// How long everything must have been quiet before a wildcard counts as complete.
pub(crate) const WILDCARD_QUIET: Duration = Duration::from_millis(250);
/// The longest pause before another attempt.
pub(crate) const RECONNECT_MAX: Duration = Duration::from_secs(30);

impl Wire {
    pub(crate) fn new(habits: Habits, node: Node) -> Self {
        Self::above(habits, node, "relay")
    }

    /// The writer of a view of the relay with this id.
    pub(crate) fn above(habits: Habits, node: Node, relay: &str) -> Self {
        let settings = client_settings(relay, WILDCARD_QUIET);
        let leg = || Leg::new(Client::new(settings.clone(), habits.dialect, node.clone()));
        Self {
            legs: [leg(), leg()],
            division: Division::default(),
            divided: BTreeSet::new(),
            rhythm: Arc::default(),
            relay: relay.to_owned(),
            habits,
        }
    }

    /// Gives the control plane the habits of its world.
    pub(crate) fn trouble(&mut self, besides: Besides, rng: &mut Rng) {
        if besides.amnesia {
            self.habits = self.habits.clone().silent(rng);
        }
        if besides.strict {
            self.habits = self.habits.clone().strict();
        }
    }

    /// Notes that the control plane has answered a stream. G-08: what failed on its other streams is over until it fails again.
    pub(crate) fn answered(&mut self) {
        self.legs.iter_mut().for_each(|leg| leg.failing = false);
    }

    /// Begins with the next view; it keeps what was learned of how the control plane answers.
    pub(crate) fn begin_anew(&mut self, node: Node) {
        *self = Self {
            rhythm: self.rhythm.clone(),
            ..Self::above(self.habits.clone(), node, &self.relay)
        };
    }

    /// Tells a stream what is wanted; returns what an earlier run of the relay knew of that.
    pub(crate) fn tell(
        &mut self,
        (which, want): (LegKind, Want),
        earlier: Option<&Cut>,
        changes: &mut Vec<Changes>,
    ) -> Option<Changes> {
        let rhythm = self.rhythm.clone();
        let which = match self.division.concerns(&want.type_url) {
            true => self.division.route(which, &want, &mut streams(&mut self.legs)),
            false => which,
        };
        let leg = &mut self.legs[usize::from(which == LegKind::Aside)];
        leg.client.handle_rhythm(rhythm);
        changes.extend(leg.client.handle_want(&want));
        let slot = earlier.and_then(|earlier| earlier.slot(&want.type_url));
        let slot = slot.filter(|_| want.wanted)?;
        leg.client.handle_restored(&want.type_url, &want.target, slot)
    }

    /// Moves names that may silence the control plane; returns whether any have moved.
    pub(crate) fn divide(&mut self, is_wanted: impl Fn(&TypeUrl, &Name) -> bool, now: Instant) -> bool {
        let moved = self.division.turn(&mut streams(&mut self.legs), is_wanted, now);
        let types = Type::EVERY.iter().map(|kind| kind.type_url());
        let divided = types.filter(|type_url| self.division.concerns(type_url));
        self.divided.extend(divided.cloned());
        moved
    }

    /// The state of the server, by the streams on which something is wanted.
    pub(crate) fn server_state(&self, otherwise: ServerState, now: Duration) -> ServerState {
        let asked = self.legs.iter().filter(|leg| leg.client.wanted());
        let states = asked.filter_map(|leg| leg.server_state(now));
        states.reduce(ServerState::beside).unwrap_or(otherwise)
    }

    /// Whether the control plane has answered one of the streams that are open.
    pub(crate) fn is_answered(&self) -> bool {
        let answered = |leg: &Leg| leg.stage == Stage::Live && leg.link.as_ref().is_some_and(|link| link.answered);
        self.legs.iter().any(answered)
    }

    /// Whether the control plane may still answer one of them that was opened after that.
    pub(crate) fn may_be_answered(&self, since: Duration) -> bool {
        let waits = |link: &Link| !link.answered && link.opened > since;
        self.legs.iter().any(|leg| leg.link.as_ref().is_some_and(waits))
    }

    pub(crate) fn leg(&mut self, at: At) -> Option<&mut Leg> {
        let leg = self.legs.get_mut(at.leg)?;
        let same = leg.link.as_ref().is_some_and(|link| link.id == at.id);
        same.then_some(leg)
    }
}

impl Leg {
    fn new(client: Client) -> Self {
        Self {
            client,
            backoff: Backoff::new(RECONNECT_MAX),
            stage: Stage::Rest,
            idle: false,
            link: None,
            failing: false,
            superseded: false,
            stood_in: None,
        }
    }

    /// G-08: a server that failed has to answer before it counts again. A stream on which it is silent for long does not count.
    fn server_state(&self, now: Duration) -> Option<ServerState> {
        let link = self.link.as_ref().filter(|_| self.stage == Stage::Live);
        Some(match link {
            Some(link) if link.answered => ServerState::Up,
            Some(link) if self.failing && link.opened + SILENT <= now => return None,
            _ if self.failing => ServerState::Failing,
            Some(_) => ServerState::Open,
            None => ServerState::Trying,
        })
    }
}

/// The machines of all streams, each with what its stream is for.
fn streams(legs: &mut [Leg]) -> Vec<(LegKind, &mut Client)> {
    let which = [LegKind::Main, LegKind::Aside].into_iter();
    which.zip(legs.iter_mut().map(|leg| &mut leg.client)).collect()
}
