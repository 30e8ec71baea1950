// SPDX-License-Identifier: Apache-2.0
//! The relay's half of the streams to a control plane: the machines of both streams.
//!
//! Owns the links and the attempts. Knows nothing of the content of messages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::envoy::config::core::v3::Node;
use protocol::{
    Backoff, Client, ClientSettings, Declined, Dialects, Division, Ending, Leg as Which, Next, Request, Rhythm,
    Suspects, Trial,
};
use xds::{Changes, Cut, Dialect, Name, ServerState, TypeUrl, Want};

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
    /// What the relay has learned of its dialects.
    pub(crate) dialects: Dialects,
    /// The two streams that all types share, and then those for types that end streams.
    pub(crate) legs: Vec<Leg>,
    /// Which names of a type are asked for beside the others.
    pub(crate) division: Division,
    /// The types of which any names ever were.
    pub(crate) divided: BTreeSet<TypeUrl>,
    pub(crate) settings: Arc<ClientSettings>,
    /// What the relay has learned of how the control plane answers.
    pub(crate) rhythm: Arc<Rhythm>,
    /// The id of the relay that writes.
    relay: String,
}

/// One stream and its attempts: one of the two that all types share, or one that was split off.
pub(crate) struct Leg {
    pub(crate) client: Client,
    pub(crate) backoff: Backoff,
    pub(crate) trial: Trial,
    /// Which of the two shared streams it is, or was split off from.
    pub(crate) which: usize,
    /// Whether it is for types that end the stream that the others share.
    pub(crate) alone: bool,
    pub(crate) types: BTreeSet<TypeUrl>,
    pub(crate) suspects: Suspects,
    /// Types that were found to end streams, and have not moved yet.
    pub(crate) suspected: Vec<TypeUrl>,
    /// Whether it ended because of what was asked for, which is not reported yet.
    pub(crate) trouble: bool,
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
    /// How it ends instead of being answered.
    pub(crate) refusal: Option<Ending>,
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
        let leg = |which, alone| {
            Leg::new(
                which,
                alone,
                Client::new(settings.clone(), habits.dialect, node.clone()),
            )
        };
        Self {
            legs: vec![leg(0, false), leg(1, false)],
            division: Division::default(),
            divided: BTreeSet::new(),
            settings: settings.clone(),
            rhythm: Arc::default(),
            relay: relay.to_owned(),
            dialects: Dialects::new(true),
            habits,
        }
    }

    /// Gives the control plane the refusals of its world.
    pub(crate) fn trouble(&mut self, besides: Besides, rng: &mut Rng) {
        if besides.refusals {
            self.habits = self.habits.clone().refusing(rng);
        }
        if besides.amnesia {
            self.habits = self.habits.clone().silent(rng);
        }
        if besides.strict {
            self.habits = self.habits.clone().strict();
        }
        if besides.shunned {
            self.habits = self.habits.clone().shunning(rng);
        }
    }

    /// The dialect of the next attempt on a stream.
    pub(crate) fn dialect(&self, leg: usize) -> Dialect {
        match self.habits.refuses {
            Some(_) => self.legs[leg].trial.next(&self.dialects).0,
            None => self.habits.dialect,
        }
    }

    /// Whether the relay may ask it in SotW.
    pub(crate) fn sotw(&self) -> bool {
        self.habits.dialect == Dialect::Sotw || self.habits.refuses.is_some()
    }

    /// The dialect of a stream.
    pub(crate) fn dialect_of(&self, leg: usize) -> Dialect {
        self.legs.get(leg).map_or(Dialect::Delta, |leg| leg.client.dialect())
    }

    /// Notes that the control plane has answered a stream. G-08: what failed on its other streams is over until it fails again.
    pub(crate) fn answered(&mut self, leg: usize) {
        self.legs.iter_mut().for_each(|leg| leg.failing = false);
        let leg = &mut self.legs[leg];
        leg.trial.handle_answer(leg.client.dialect(), &mut self.dialects);
    }

    /// E-23: notes that a stream ended unanswered; returns whether the other dialect is tried at once.
    pub(crate) fn refused(&mut self, leg: usize, ending: Ending) -> bool {
        let leg = &mut self.legs[leg];
        let declined = Declined {
            dialect: leg.client.dialect(),
            ending,
            words: "refused".into(),
        };
        self.habits.refuses.is_some() && leg.trial.handle_end(declined, true, &self.dialects) == Next::Other
    }

    /// The same for the next view; it keeps what was learned of how the control plane answers.
    pub(crate) fn anew(self, node: Node) -> Self {
        Self {
            rhythm: self.rhythm,
            ..Self::above(self.habits, node, &self.relay)
        }
    }

    /// Tells a stream what is wanted; returns what an earlier run of the relay knew of that.
    pub(crate) fn tell(
        &mut self,
        (which, want): (Which, Want),
        earlier: Option<&Cut>,
        changes: &mut Vec<Changes>,
    ) -> Option<Changes> {
        let rhythm = self.rhythm.clone();
        let which = match self.division.concerns(&want.type_url) {
            true => self.division.route(which, &want, &mut streams(&mut self.legs)),
            false => which,
        };
        let leg = self.leg_of(usize::from(which == Which::Aside), &want.type_url);
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

    /// The state of the server, by the streams on which something is wanted. Streams that were split off count only if nothing is wanted
    /// on the shared ones.
    pub(crate) fn server_state(&self, otherwise: ServerState) -> ServerState {
        let shared = self.legs.iter().any(|leg| !leg.alone && leg.client.wanted());
        let counts = |leg: &&Leg| leg.client.wanted() && !(shared && leg.alone);
        let states = self.legs.iter().filter(counts).map(Leg::server_state);
        states.reduce(ServerState::beside).unwrap_or(otherwise)
    }

    /// Whether the control plane has answered one of the shared streams that are open.
    pub(crate) fn is_answered(&self) -> bool {
        let answered = |leg: &Leg| leg.stage == Stage::Live && leg.link.as_ref().is_some_and(|link| link.answered);
        self.legs.iter().any(|leg| !leg.alone && answered(leg))
    }

    /// Whether the control plane may still answer one of them that was opened after that.
    pub(crate) fn may_be_answered(&self, since: Duration) -> bool {
        let waits = |link: &Link| !link.answered && link.opened > since;
        self.legs
            .iter()
            .any(|leg| !leg.alone && leg.link.as_ref().is_some_and(waits))
    }

    pub(crate) fn leg(&mut self, at: At) -> Option<&mut Leg> {
        let leg = self.legs.get_mut(at.leg)?;
        let same = leg.link.as_ref().is_some_and(|link| link.id == at.id);
        same.then_some(leg)
    }
}

impl Leg {
    pub(crate) fn new(which: usize, alone: bool, client: Client) -> Self {
        Self {
            client,
            backoff: Backoff::new(RECONNECT_MAX),
            trial: Trial::new(!alone),
            which,
            alone,
            types: BTreeSet::new(),
            suspects: Suspects::default(),
            suspected: Vec::new(),
            trouble: false,
            stage: Stage::Rest,
            idle: false,
            link: None,
            failing: false,
            superseded: false,
            stood_in: None,
        }
    }

    /// G-08: a server that failed has to answer before it counts again.
    fn server_state(&self) -> ServerState {
        let answered = self.link.as_ref().is_some_and(|link| link.answered);
        match self.stage {
            Stage::Live if answered => ServerState::Up,
            _ if self.failing => ServerState::Failing,
            Stage::Live => ServerState::Open,
            Stage::Rest | Stage::Opening | Stage::Waiting => ServerState::Trying,
        }
    }
}

/// The machines of all streams, each with what its stream is for.
fn streams(legs: &mut [Leg]) -> Vec<(Which, &mut Client)> {
    let which = |leg: &Leg| if leg.which == 0 { Which::Main } else { Which::Aside };
    legs.iter_mut().map(|leg| (which(leg), &mut leg.client)).collect()
}

/// The way of a zone to its control plane: most zones speak the protocol.
pub(crate) fn way(rng: &mut Rng) -> Option<Habits> {
    rng.chance(70).then(|| Habits::new(rng))
}
