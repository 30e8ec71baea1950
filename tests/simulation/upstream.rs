//! The relay's half of the streams to a control plane: the machines of both streams, driven as their shell drives them.
//!
//! Owns the links, the attempts and the order of a turn. Knows nothing of the content of messages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::envoy::config::core::v3::Node;
use protocol::{
    Backoff, Client, ClientSettings, Declined, Dialects, Ending, Leg as Which, Next, Request, Rhythm, Suspects, Trial,
};
use xds::{Changes, Cut, Dialect, ServerState, TypeUrl, Want};

use super::besides::Besides;
use super::classes::client_settings;
use super::course::Course;
use super::event::Event;
use super::feed::Zone;
use super::lists::Ahead;
use super::network::Pipe;
use super::origin::{Habits, Reply, Session};
use super::rng::Rng;
use super::wire::Up;

/// The relay's writer of one view, and the control plane at the other end.
pub(crate) struct Wire {
    pub(crate) habits: Habits,
    /// What the relay has learned of its dialects.
    pub(crate) dialects: Dialects,
    /// The two streams that all types share, and then those for types that end streams.
    pub(crate) legs: Vec<Leg>,
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
/// How long a stream on which nothing is wanted is kept.
const IDLE: Duration = Duration::from_secs(10);
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
        if besides.shunned {
            self.habits = self.habits.clone().shunning(rng);
        }
    }

    /// The dialect of the next attempt on a stream.
    fn dialect(&self, leg: usize) -> Dialect {
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
    fn tell(
        &mut self,
        (which, want): (Which, Want),
        earlier: Option<&Cut>,
        changes: &mut Vec<Changes>,
    ) -> Option<Changes> {
        let rhythm = self.rhythm.clone();
        let leg = self.leg_of(usize::from(which == Which::Aside), &want.type_url);
        leg.client.handle_rhythm(rhythm);
        changes.extend(leg.client.handle_want(&want));
        let slot = earlier.and_then(|earlier| earlier.slot(&want.type_url));
        let slot = slot.filter(|_| want.wanted)?;
        leg.client.handle_restored(&want.type_url, &want.target, slot)
    }

    /// The state of the server: the worst of the streams on which something is wanted. Streams that were split off count only if
    /// nothing is wanted on the shared ones.
    fn server_state(&self, otherwise: ServerState) -> ServerState {
        let shared = self.legs.iter().any(|leg| !leg.alone && leg.client.wanted());
        let counts = |leg: &&Leg| leg.client.wanted() && !(shared && leg.alone);
        worst(self.legs.iter().filter(counts).map(Leg::server_state)).unwrap_or(otherwise)
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

impl Zone {
    /// The stream that an event is about, if it still is.
    pub(crate) fn leg(&mut self, at: At) -> Option<&mut Leg> {
        self.wire.as_mut()?.leg(at)
    }

    /// Tells the streams what is wanted, and publishes what an earlier run of the relay knew of that.
    fn tell(&mut self, mut told: Vec<(Which, Want)>, changes: &mut Vec<Changes>) {
        while let Some(wire) = &mut self.wire {
            let earlier = self.writer.view.restored();
            let told_now = std::mem::take(&mut told).into_iter();
            let restored = told_now.filter_map(|want| wire.tell(want, earlier.as_deref(), changes));
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
        let superseded = self.writer.view.take_superseded();
        for leg in self.wire.iter_mut().flat_map(|wire| &mut wire.legs) {
            leg.superseded |= superseded;
            leg.stood_in = leg.stood_in.map(|_| true);
        }
        self.writer.hold(&mut changes, now);
        let wants = self.writer.view.take_wants(now);
        for want in wants {
            course.log(|| {
                format!(
                    "upstream {zone}: {} {:?} {:?}",
                    if want.wanted { '+' } else { '-' },
                    want.type_url,
                    want.target
                )
            });
            let told = self.writer.demand(&want);
            self.tell(told, &mut changes);
        }
        loop {
            let suspected = self.judge_types(&mut changes, course);
            for type_url in suspected {
                let told = self.writer.demand.handle_unserved(&type_url, &self.writer.view.cut());
                self.tell(told, &mut changes);
            }
            let count = self.wire.as_ref().map_or(0, |wire| wire.legs.len());
            let mut said = Vec::new();
            (0..count).for_each(|leg| self.turn_leg(leg, &mut said, course));
            self.writer.hold(&mut said, now);
            changes.append(&mut said);
            if changes.is_empty() {
                changes = self.writer.release(now);
            }
            self.writer.note_holds(&mut course.tally);
            let Some(wire) = &mut self.wire else { return };
            if changes.is_empty() {
                let before = self.writer.view.cut().server_state();
                let server_state = wire.server_state(before);
                if server_state == ServerState::Up {
                    self.writer.view.forget_restored();
                }
                self.writer.view.publish_server_state(server_state);
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

    fn set_writer(&mut self, course: &mut Course) {
        let legs = self.wire.iter().flat_map(|wire| &wire.legs);
        let legs = legs.flat_map(|leg| [leg.client.poll_timeout(), leg.suspects.poll_timeout()]);
        let ours = [self.writer.view.poll_timeout(), self.writer.guard.poll_timeout()];
        let due = legs.chain(ours).flatten().min();
        self.writer.alarm.set(due, Event::Upstream(self.id), course);
    }

    fn turn_leg(&mut self, at: usize, changes: &mut Vec<Changes>, course: &mut Course) {
        let zone = self.id;
        let now = course.clock.instant();
        let Some(wire) = &mut self.wire else { return };
        let dialect = wire.dialect(at);
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
            leg.client.handle_dialect(dialect);
            let mut habits = wire.habits.clone();
            habits.dialect = dialect;
            let session = Session::new(&habits, course.calm, &mut course.rng);
            let refusal = habits.refusal(course.calm, &mut course.refusals);
            leg.link = Some(Link {
                id,
                session,
                ahead: None,
                up: Pipe::default(),
                down: Pipe::default(),
                answered: false,
                refusal,
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
        let Some(leg) = self.wire.as_mut().map(|wire| &mut wire.legs[at]) else {
            return;
        };
        leg.idle &= !leg.client.wanted();
        let Some(link) = &mut leg.link else { return };
        let (zone, id) = (self.id, link.id);
        while let Some(request) = leg.client.poll_request(now) {
            if let Some(asked) = leg.client.take_asked().filter(|_| !leg.alone) {
                leg.suspects.handle_asked(asked, now);
            }
            course.log(|| format!("upstream {zone}/{at}: relay -> {}", brief(&request)));
            let arrives = link.up.send(request, course.clock.now() + course.delay());
            course.at(arrives, Event::Hop(Hop::Request(At { zone, leg: at, id })));
        }
    }
}

/// The worst of some states.
pub(crate) fn worst(states: impl Iterator<Item = ServerState>) -> Option<ServerState> {
    let order = [
        ServerState::Failing,
        ServerState::Trying,
        ServerState::Open,
        ServerState::Up,
    ];
    states.min_by_key(|server_state| order.iter().position(|other| other == server_state))
}

/// The way of a zone to its control plane: most zones speak the protocol.
pub(crate) fn way(rng: &mut Rng) -> Option<Habits> {
    rng.chance(70).then(|| Habits::new(rng))
}

/// Formats a request for the trace.
fn brief(request: &Request) -> String {
    match request {
        Request::Sotw(request) => Up::Sotw(request.clone()).brief(),
        Request::Delta(request) => Up::Delta(request.clone()).brief(),
    }
}
