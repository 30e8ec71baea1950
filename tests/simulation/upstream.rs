//! The relay's way to a control plane: the machines of both streams, driven as their shell drives them.
//!
//! Owns the links, attempts and the order of a turn. Refuses to know what is in a message.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::protocol::{Backoff, Client, ClientSettings, Demand, Leg as Which, Request, read_delta, read_sotw};
use distributary::xds::{Changes, Dialect, Target, Update, Want};

use super::body::{Type, read};
use super::feed::Zone;
use super::origin::{Habits, Reply, Session};
use super::rng::Rng;
use super::tally::{Broken, Rule};
use super::wire::Up;
use super::world::{Event, Pipe, World};

/// The relay's writer of one view, and the control plane at the other end.
pub(crate) struct Wire {
    pub(crate) habits: Habits,
    demand: Demand,
    pub(crate) legs: [Leg; 2],
    /// What the view has asked for.
    pub(crate) wanted: BTreeSet<(Type, Target)>,
    timer: Option<Duration>,
}

/// One of the two streams.
pub(crate) struct Leg {
    client: Client,
    backoff: Backoff,
    stage: Stage,
    /// Whether it will be looked at whether anything is wanted.
    idle: bool,
    pub(crate) link: Option<Link>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Rest,
    Opening,
    Live,
    Waiting,
}

/// One stream, from its request on.
pub(crate) struct Link {
    id: u64,
    pub(crate) session: Session,
    up: Pipe<Request>,
    down: Pipe<Reply>,
    answered: bool,
    opened: Duration,
}

/// Which stream of which zone an event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) zone: usize,
    leg: usize,
    id: u64,
}

/// Something that happens on the way to a control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hop {
    Opened(At),
    Request(At),
    Response(At),
    Retry(At),
    /// Nothing may have been wanted of it for a while.
    Idle(At),
}

/// How long a stream of which nothing is wanted is kept.
const IDLE: Duration = Duration::from_secs(10);

impl Wire {
    pub(crate) fn new(habits: Habits) -> Self {
        let settings = Arc::new(ClientSettings {
            types: Default::default(),
            relay_id: "relay".to_owned(),
            does_not_exist: Duration::from_secs(15),
            wildcard_quiet: Duration::from_millis(250),
        });
        let leg = || Leg {
            client: Client::new(settings.clone(), habits.dialect, Node::default()),
            backoff: Backoff::default(),
            stage: Stage::Rest,
            idle: false,
            link: None,
        };
        Self {
            demand: Demand::default(),
            legs: [leg(), leg()],
            wanted: BTreeSet::new(),
            timer: None,
            habits,
        }
    }

    fn tell(&mut self, told: Vec<(Which, Want)>, changes: &mut Vec<Changes>) {
        for (which, want) in told {
            let leg = &mut self.legs[usize::from(which == Which::Aside)];
            changes.extend(leg.client.handle_want(&want));
        }
    }

    fn serves(&self) -> bool {
        self.legs
            .iter()
            .all(|leg| leg.stage == Stage::Live || !leg.client.wanted())
    }

    fn leg(&mut self, at: At) -> Option<&mut Leg> {
        let leg = &mut self.legs[at.leg];
        let same = leg.link.as_ref().is_some_and(|link| link.id == at.id);
        same.then_some(leg)
    }
}

impl Zone {
    /// Publishes, and keeps the books.
    fn publish(&mut self, changes: &[Changes]) {
        for change in changes {
            let Some(kind) = Type::of(change.type_url.url()) else {
                continue;
            };
            for update in &change.updates {
                if let Update::Absent(name, _) | Update::Forget(name) = update {
                    self.book.gone(kind, name);
                }
                if let Update::Put(resource, _) = update {
                    let any = distributary::proto::google::protobuf::Any {
                        type_url: kind.url().to_owned(),
                        value: resource.body(),
                    };
                    let revision = read(kind, &any).map(|facts| facts.revision).unwrap_or_default();
                    self.book.note(kind, resource, revision);
                }
            }
        }
        self.view.publish(changes);
    }
}

impl World {
    /// The writer's turn: what is wanted goes to the machines, what changed into the view, what they say to the transport.
    pub(crate) fn write(&mut self, zone: usize, mut changes: Vec<Changes>) {
        let now = self.instant();
        let wants = self.zones[zone].view.take_wants(now);
        let cut = self.zones[zone].view.cut();
        for want in wants {
            self.log(|| {
                format!(
                    "upstream {zone}: {} {:?} {:?}",
                    if want.wanted { '+' } else { '-' },
                    want.type_url,
                    want.target
                )
            });
            let Some(wire) = &mut self.zones[zone].wire else { return };
            if let Some(kind) = Type::of(want.type_url.url()) {
                let target = (kind, want.target.clone());
                let _ = if want.wanted {
                    wire.wanted.insert(target)
                } else {
                    wire.wanted.remove(&target)
                };
            }
            let told = wire.demand.handle_want(&want, &cut);
            wire.tell(told, &mut changes);
        }
        loop {
            (0..2).for_each(|leg| self.turn_leg(zone, leg, &mut changes));
            let here = &mut self.zones[zone];
            let Some(wire) = &mut here.wire else { return };
            if changes.is_empty() {
                let serves = wire.serves();
                here.view.publish_connected(serves);
                break;
            }
            let heard = std::mem::take(&mut changes);
            self.log(|| format!("upstream {zone}: heard {heard:?}"));
            let here = &mut self.zones[zone];
            here.publish(&heard);
            let cut = here.view.cut();
            let Some(wire) = &mut here.wire else { return };
            let told = wire.demand.handle_cut(&cut);
            wire.tell(told, &mut changes);
        }
        self.set_writer(zone);
    }

    fn set_writer(&mut self, zone: usize) {
        let Some(wire) = &self.zones[zone].wire else { return };
        let view = self.zones[zone].view.poll_timeout();
        let legs = wire.legs.iter().filter_map(|leg| leg.client.poll_timeout());
        let Some(due) = legs.chain(view).min() else { return };
        let (due, timer) = (self.time(due).max(self.now), wire.timer);
        if timer.is_none_or(|timer| due < timer || timer <= self.now) {
            self.at(due, Event::Upstream(zone));
            if let Some(wire) = &mut self.zones[zone].wire {
                wire.timer = Some(due);
            }
        }
    }

    fn turn_leg(&mut self, zone: usize, at: usize, changes: &mut Vec<Changes>) {
        let now = self.instant();
        let connected = self.zones[zone].connected;
        let Some(wire) = &mut self.zones[zone].wire else { return };
        let leg = &mut wire.legs[at];
        changes.extend(leg.client.handle_timeout(now));
        if leg.stage == Stage::Rest && leg.client.wanted() {
            leg.stage = Stage::Opening;
            self.last_stream += 1;
            let id = self.last_stream;
            let wire_at = At { zone, leg: at, id };
            let session = Session::new(&wire.habits, self.calm, &mut self.rng);
            leg.link = Some(Link {
                id,
                session,
                up: Pipe::default(),
                down: Pipe::default(),
                answered: false,
                opened: self.now,
            });
            let delay = self.delay();
            self.after(delay, Event::Hop(Hop::Opened(wire_at)));
            let _ = connected;
            return;
        }
        if leg.stage != Stage::Live {
            return;
        }
        let idle = !leg.client.wanted() && !std::mem::replace(&mut leg.idle, true);
        if let Some(id) = leg.link.as_ref().map(|link| link.id).filter(|_| idle) {
            self.after(IDLE, Event::Hop(Hop::Idle(At { zone, leg: at, id })));
        }
        let Some(wire) = &mut self.zones[zone].wire else { return };
        let leg = &mut wire.legs[at];
        leg.idle &= !leg.client.wanted();
        let mut requests = Vec::new();
        while let Some(request) = leg.client.poll_request(now) {
            requests.push(request);
        }
        for request in requests {
            self.log(|| format!("upstream {zone}/{at}: relay -> {}", brief(&request)));
            let arrives = self.now + self.delay();
            let Some(link) = self.zones[zone]
                .wire
                .as_mut()
                .and_then(|wire| wire.legs[at].link.as_mut())
            else {
                return;
            };
            let wire_at = At {
                zone,
                leg: at,
                id: link.id,
            };
            let arrives = link.up.send(request, arrives);
            self.at(arrives, Event::Hop(Hop::Request(wire_at)));
        }
    }

    pub(crate) fn hop(&mut self, hop: Hop) -> Result<(), Broken> {
        match hop {
            Hop::Opened(at) => self.opened(at),
            Hop::Request(at) => self.asked(at),
            Hop::Response(at) => return self.answered(at),
            Hop::Idle(at) => self.idle(at),
            Hop::Retry(at) => {
                if let Some(leg) = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at)) {
                    leg.stage = Stage::Rest;
                    leg.link = None;
                    self.write(at.zone, Vec::new());
                }
            }
        }
        Ok(())
    }

    /// E-19: a stream of which nothing is wanted is not told so, it is closed after a while.
    fn idle(&mut self, at: At) {
        let Some(leg) = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at)) else {
            return;
        };
        leg.idle = false;
        if leg.stage == Stage::Live && !leg.client.wanted() {
            let lost = leg.client.handle_disconnected();
            leg.stage = Stage::Rest;
            leg.link = None;
            self.write(at.zone, lost);
        }
    }

    fn opened(&mut self, at: At) {
        let (connected, now) = (self.zones[at.zone].connected, self.now);
        let dice = self.rng.range(0, 100) as f64 / 100.0;
        let Some(leg) = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at)) else {
            return;
        };
        if connected {
            leg.stage = Stage::Live;
            leg.client.handle_connected(Duration::from_millis(5));
            if let Some(link) = &mut leg.link {
                link.opened = now;
            }
            self.log(|| format!("upstream {}/{}: stream {} opened", at.zone, at.leg, at.id));
            self.write(at.zone, Vec::new());
            return;
        }
        leg.stage = Stage::Waiting;
        let wait = leg.backoff.handle_failure(dice);
        self.after(wait, Event::Hop(Hop::Retry(at)));
    }

    /// A request arrives at the control plane.
    fn asked(&mut self, at: At) {
        let here = &mut self.zones[at.zone];
        let Some(link) = here
            .wire
            .as_mut()
            .and_then(|wire| wire.leg(at))
            .and_then(|leg| leg.link.as_mut())
        else {
            return;
        };
        let Some(request) = link.up.arrive(false) else { return };
        let replies = link.session.request(&request, &here.truth, &mut self.rng);
        self.reply(at, replies);
    }

    /// The control plane has changed its mind, or confirms what it said.
    pub(crate) fn utter(&mut self, zone: usize, beat: bool) {
        if beat && !self.calm {
            let pause = self.rng.millis(2000, 8000);
            self.after(pause, Event::Utter(zone, true));
        }
        for leg in 0..2 {
            let here = &mut self.zones[zone];
            let Some(link) = here.wire.as_mut().and_then(|wire| wire.legs[leg].link.as_mut()) else {
                continue;
            };
            let replies = match beat {
                true => link.session.beat(&here.truth, &mut self.rng),
                false => link.session.push(&here.truth, &mut self.rng),
            };
            let id = link.id;
            self.reply(At { zone, leg, id }, replies);
        }
    }

    fn reply(&mut self, at: At, replies: Vec<Reply>) {
        for reply in replies {
            let dialect = self.zones[at.zone]
                .wire
                .as_ref()
                .map_or(Dialect::Delta, |wire| wire.habits.dialect);
            self.log(|| format!("origin {}/{}: -> {}", at.zone, at.leg, reply.brief(dialect)));
            let arrives = self.now + self.delay();
            let leg = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at));
            let Some(link) = leg.and_then(|leg| leg.link.as_mut()) else {
                return;
            };
            let arrives = link.down.send(reply, arrives);
            self.at(arrives, Event::Hop(Hop::Response(at)));
        }
    }

    /// A response arrives at the relay.
    fn answered(&mut self, at: At) -> Result<(), Broken> {
        let now = self.instant();
        let Some(leg) = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at)) else {
            return Ok(());
        };
        if leg.stage != Stage::Live {
            return Ok(());
        }
        let Some(reply) = leg.link.as_mut().and_then(|link| link.down.arrive(false)) else {
            return Ok(());
        };
        let Reply::Message(bytes) = reply else {
            return self.hang_up(at);
        };
        let changes = feed(&mut leg.client, bytes, now);
        if let Some(link) = leg.link.as_mut().filter(|link| !link.answered) {
            link.answered = true;
            leg.backoff.handle_response();
        }
        self.write(at.zone, changes);
        Ok(())
    }

    /// The stream has ended. G-19: that changes nothing.
    fn hang_up(&mut self, at: At) -> Result<(), Broken> {
        let now = self.now;
        let dice = self.rng.range(0, 100) as f64 / 100.0;
        let Some(leg) = self.zones[at.zone].wire.as_mut().and_then(|wire| wire.leg(at)) else {
            return Ok(());
        };
        if leg.stage != Stage::Live {
            return Ok(());
        }
        let lost = leg.client.handle_disconnected();
        leg.stage = Stage::Waiting;
        let lived = leg
            .link
            .as_ref()
            .map_or(Duration::ZERO, |link| now.saturating_sub(link.opened));
        let wait = if leg.link.as_ref().is_some_and(|link| link.answered) {
            leg.backoff.handle_end(lived, dice)
        } else {
            leg.backoff.handle_failure(dice)
        };
        self.log(|| format!("upstream {}/{}: stream {} ended", at.zone, at.leg, at.id));
        self.tally.hit(Rule::G19);
        let quiet = |changes: &Changes| changes.updates.is_empty() && changes.complete.is_none();
        if !lost.iter().all(quiet) {
            return Err(Broken::new(Rule::G19, format!("a lost stream changed {lost:?}")));
        }
        self.after(wait, Event::Hop(Hop::Retry(at)));
        self.write(at.zone, lost);
        Ok(())
    }

    /// Both streams to a control plane break.
    pub(crate) fn sever(&mut self, zone: usize) -> Result<(), Broken> {
        for leg in 0..2 {
            let link = self.zones[zone]
                .wire
                .as_ref()
                .and_then(|wire| wire.legs[leg].link.as_ref());
            if let Some(id) = link.map(|link| link.id) {
                self.hang_up(At { zone, leg, id })?;
            }
        }
        Ok(())
    }
}

fn feed(client: &mut Client, bytes: Bytes, now: std::time::Instant) -> Vec<Changes> {
    match client.dialect() {
        Dialect::Sotw => read_sotw(bytes)
            .map(|response| client.handle_sotw(response, now))
            .unwrap_or_default(),
        Dialect::Delta => read_delta(bytes)
            .map(|response| client.handle_delta(response, now))
            .unwrap_or_default(),
    }
}

/// Which way to a control plane a zone has: half of them speak its protocol.
pub(crate) fn way(rng: &mut Rng) -> Option<Habits> {
    rng.chance(70).then(|| Habits::new(rng))
}

/// For people.
fn brief(request: &Request) -> String {
    match request {
        Request::Sotw(request) => Up::Sotw(request.clone()).brief(),
        Request::Delta(request) => Up::Delta(request.clone()).brief(),
    }
}
