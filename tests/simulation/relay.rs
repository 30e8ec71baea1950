//! The relay's half of a client stream, driven as its shell drives it.
//!
//! Owns the order of calls: bell, wants, cut, responses, timers. Refuses to know what is in a message.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use distributary::cache::{Driver, Seat};
use distributary::protocol::{Code, End, Opening, Server};
use distributary::xds::Dialect;

use super::body::Type;
use super::feed;
use super::tally::{Broken, Rule};
use super::wire::{Answer, Up, decode, encode};
use super::witness::{Scene, Witness};
use super::world::{Event, Pipe, Ringer, World};

/// A stream between a client and the relay.
pub(crate) struct Stream {
    pub(crate) client: usize,
    pub(crate) zone: usize,
    pub(crate) witness: Witness,
    dialect: Dialect,
    server: Server,
    seat: Option<Seat>,
    /// How many more responses the transport can take.
    room: usize,
    waker: Waker,
    /// When the stream's timer is set to.
    timer: Option<Duration>,
    /// The time for which the timer has gone off: it is not set for that again until something else happens.
    fired: Option<Instant>,
    up: Pipe<Up>,
    down: Pipe<Answer>,
    stalled: bool,
    at_relay: bool,
    at_client: bool,
}

/// The names of this world are few, so what is kept for one client is little, whatever it does.
const KEPT_MAX: usize = 1200;

impl Stream {
    /// From time to time the relay keeps only hashes of what a client holds, and nobody must notice; except that D-03 is broken
    /// where a full state can no longer list what goes. So of SotW clients only some are tried. Gives whether this is one.
    fn lag(&mut self, chance: u64, id: u64) -> bool {
        let loose = self.dialect == Dialect::Sotw && id.is_multiple_of(8);
        let Some(seat) = &self.seat else { return loose };
        if (loose || self.dialect == Dialect::Delta) && chance.is_multiple_of(31) {
            self.server.lighten(seat.view().baselines());
        }
        loose
    }
}

impl World {
    /// A client opens a stream.
    pub(crate) fn open(&mut self, client: usize, service: Option<Type>) -> u64 {
        self.last_stream += 1;
        let id = self.last_stream;
        let asks = &self.clients[client];
        let opening = Opening {
            dialect: asks.dialect,
            service: service.map(|kind| kind.type_url().clone()),
            nonce_prefix: id as u32,
        };
        let ringer = Ringer {
            stream: id,
            woken: self.woken.clone(),
        };
        let stream = Stream {
            client,
            zone: asks.zone,
            witness: Witness::new(asks.dialect),
            dialect: asks.dialect,
            server: Server::new(self.settings.clone(), opening),
            seat: None,
            room: asks.window,
            waker: Waker::from(Arc::new(ringer)),
            timer: None,
            fired: None,
            up: Pipe::default(),
            down: Pipe::default(),
            stalled: false,
            at_relay: true,
            at_client: true,
        };
        self.streams.insert(id, Box::new(stream));
        self.log(|| format!("client {client}: opens stream {id} {service:?}"));
        id
    }

    /// A client sends a request.
    pub(crate) fn send(&mut self, id: u64, request: Up) {
        self.log(|| format!("stream {id}: client -> {}", request.brief()));
        let at = self.now + self.delay();
        if let Some(stream) = self.streams.get_mut(&id) {
            let at = stream.up.send(request, at);
            self.at(at, Event::ToRelay(id));
        }
    }

    pub(crate) fn arrive_at_relay(&mut self, id: u64) -> Result<(), Broken> {
        let now = self.instant();
        let Some(mut stream) = self.streams.remove(&id) else {
            return Ok(());
        };
        let arrived = stream.up.arrive(stream.stalled).filter(|_| stream.at_relay);
        let Some(request) = arrived else {
            self.streams.insert(id, stream);
            return Ok(());
        };
        if let Some(kind) = request.kind() {
            stream.witness.request(kind, &request, now);
        }
        let receipt = match &request {
            Up::Sotw(request) => stream.server.handle_sotw(request, &self.answers, now),
            Up::Delta(request) => stream.server.handle_delta(request, &self.answers, now),
        };
        if let Some(node) = stream.server.node() {
            self.tally.hit(Rule::B01);
            if *node.id != *format!("client-{}", stream.client) {
                return Err(Broken::new(Rule::B01, format!("stream {id} is now {}", node.id)));
            }
        }
        let mut refused = false;
        if let Some(node) = stream
            .server
            .node()
            .filter(|_| stream.seat.is_none() && receipt.is_ok())
        {
            stream.seat = self.seat(stream.zone, node)?;
            refused = stream.seat.is_none();
        }
        stream.fired = None;
        self.log(|| {
            let kind = receipt.as_ref().map(|receipt| format!("{:?}", receipt.kind));
            format!("stream {id}: relay <- {} = {kind:?}", request.brief())
        });
        self.streams.insert(id, stream);
        if refused {
            self.refuse(id);
            return Ok(());
        }
        if let Err(end) = receipt {
            return self.end(id, &end);
        }
        self.turn(id)
    }

    /// The stream's task runs: what rang, what is wanted, what can be said.
    pub(crate) fn turn(&mut self, id: u64) -> Result<(), Broken> {
        let Some(mut stream) = self.streams.remove(&id) else {
            return Ok(());
        };
        let spoken = if stream.at_relay {
            self.speak(id, &mut stream)
        } else {
            Ok(())
        };
        self.streams.insert(id, stream);
        spoken
    }

    fn speak(&mut self, id: u64, stream: &mut Stream) -> Result<(), Broken> {
        let now = self.instant();
        let loose = stream.lag(id ^ self.now.as_micros() as u64, id);
        let Some(seat) = &stream.seat else {
            return Ok(());
        };
        let mut context = Context::from_waker(&stream.waker);
        while seat.bell().poll(Driver::Writer, &mut context).is_ready() {
            stream.fired = None;
            for (type_url, dirty) in seat.bell().take() {
                stream.server.handle_dirty(&type_url, dirty);
            }
        }
        let mut wanted = false;
        while let Some(want) = stream.server.poll_want() {
            wanted = true;
            if let Err(full) = seat.want(&want) {
                return Err(Broken::new(Rule::K21, full.to_string()));
            }
        }
        if wanted {
            let delay = self.rng.millis(0, 5);
            self.after(delay, Event::Upstream(stream.zone));
        }
        let cut = seat.view().cut();
        if stream.room > 0 {
            let scene = Scene {
                cut: &cut,
                book: &mut self.zones[stream.zone].book,
                now,
                expired: false,
                unanswered: self.settings.timers.unanswered,
            };
            stream.witness.look(&scene);
        }
        while stream.room > 0 {
            let expired = stream.server.expired_gates();
            let Some(response) = stream.server.poll_response(&cut.clone().into(), &self.answers, now) else {
                break;
            };
            let wrong = |what| Broken::new(Rule::B03, what);
            let answer = decode(encode(&response), stream.dialect).map_err(wrong)?;
            let expired = loose || stream.server.expired_gates() > expired;
            self.log(|| {
                format!(
                    "stream {id}: relay -> {}{}",
                    answer.brief(),
                    if expired { " (gate)" } else { "" }
                )
            });
            let mut scene = Scene {
                cut: &cut,
                book: &mut self.zones[stream.zone].book,
                now,
                expired,
                unanswered: self.settings.timers.unanswered,
            };
            let judged = stream.witness.response(&answer, &mut scene, &mut self.tally);
            judged.map_err(|broken| Broken::new(broken.rule, format!("stream {id}: {}", broken.what)))?;
            stream.room -= 1;
            let at = self.now + self.delay();
            let at = stream.down.send(answer, at);
            self.at(at, Event::ToClient(id));
        }
        self.tally.hit(Rule::K21);
        let kept = stream.server.kept();
        if kept > KEPT_MAX {
            return Err(Broken::new(Rule::K21, format!("stream {id}: {kept} entries are kept")));
        }
        self.set_timer(id, stream);
        Ok(())
    }

    fn set_timer(&mut self, id: u64, stream: &mut Stream) {
        let Some(due) = stream.server.poll_timeout().filter(|due| stream.fired != Some(*due)) else {
            return;
        };
        let time = self.time(due).max(self.now);
        let earlier = stream.timer.is_none_or(|timer| time < timer || timer < self.now);
        if earlier {
            stream.timer = Some(time);
            self.at(time, Event::Timer(id));
        }
    }

    pub(crate) fn timer(&mut self, id: u64) -> Result<(), Broken> {
        let now = self.instant();
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.at_relay) else {
            return Ok(());
        };
        stream.timer = None;
        let Some(due) = stream.server.poll_timeout().filter(|due| *due <= now) else {
            return self.turn(id);
        };
        stream.fired = Some(due);
        let Some(cut) = stream.seat.as_ref().map(|seat| seat.view().cut()) else {
            return Ok(());
        };
        match stream.server.handle_timeout(&cut.into(), now) {
            Some(end) => self.end(id, &end),
            None => self.turn(id),
        }
    }

    /// The relay ends a stream.
    fn end(&mut self, id: u64, end: &End) -> Result<(), Broken> {
        self.log(|| format!("stream {id}: the relay ends it: {end}"));
        let Some(stream) = self.streams.get(&id) else {
            return Ok(());
        };
        self.tally.hit(Rule::G18);
        let lonely = end.code == Code::Unavailable && stream.witness.sent == 0;
        if !lonely {
            return Err(Broken::new(Rule::G18, format!("stream {id} ended with {end}")));
        }
        self.end_at_relay(id);
        Ok(())
    }

    /// There are too many views. In the end who is refused gives up.
    fn refuse(&mut self, id: u64) {
        self.log(|| format!("stream {id}: refused, there are too many views"));
        if let Some(stream) = self.streams.get(&id).filter(|_| self.calm) {
            self.clients[stream.client].retired = true;
        }
        self.end_at_relay(id);
    }

    /// The relay's half is gone; the client learns it later.
    pub(crate) fn end_at_relay(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.at_relay) else {
            return;
        };
        stream.at_relay = false;
        let zone = stream.zone;
        stream.seat = None;
        let delay = self.delay();
        self.after(delay, Event::EndAtClient(id));
        self.after(Duration::ZERO, Event::Upstream(zone));
    }

    /// The client's half is gone; the relay learns it later.
    pub(crate) fn end_at_client(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.at_client {
            stream.at_client = false;
            let (client, at_relay) = (stream.client, stream.at_relay);
            self.log(|| format!("stream {id}: has ended for client {client}"));
            self.lost(client, id);
            if at_relay {
                let delay = self.delay();
                self.after(delay, Event::EndAtRelay(id));
            } else {
                self.streams.remove(&id);
            }
        } else if !stream.at_relay {
            self.streams.remove(&id);
        }
    }

    pub(crate) fn arrive_at_client(&mut self, id: u64) -> Result<(), Broken> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        let Some(answer) = stream.down.arrive(stream.stalled).filter(|_| stream.at_client) else {
            return Ok(());
        };
        let client = stream.client;
        let (low, high) = self.clients[client].reading;
        let read = if self.calm {
            Duration::ZERO
        } else {
            self.rng.millis(low, high)
        };
        self.after(read, Event::Credit(id));
        self.receive(client, id, &answer)
    }

    pub(crate) fn credit(&mut self, id: u64) -> Result<(), Broken> {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.room += 1;
            stream.fired = None;
        }
        self.turn(id)
    }

    /// Nothing passes on this link until it heals.
    pub(crate) fn stall(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.stalled = true;
            self.log(|| format!("stream {id}: stalls"));
        }
    }

    pub(crate) fn heal(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.stalled) else {
            return;
        };
        stream.stalled = false;
        let (up, down) = (stream.up.take_late(), stream.down.take_late());
        self.log(|| format!("stream {id}: heals"));
        (0..up).for_each(|_| self.after(Duration::ZERO, Event::ToRelay(id)));
        (0..down).for_each(|_| self.after(Duration::ZERO, Event::ToClient(id)));
    }

    /// All streams end, and nothing is known any more.
    pub(crate) fn restart(&mut self) {
        self.log(|| "the relay restarts".to_owned());
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|id| self.end_at_relay(id));
        self.forget_views();
    }

    /// The control plane of a zone is gone.
    pub(crate) fn lose(&mut self, zone: usize) -> Result<(), Broken> {
        self.log(|| format!("upstream {zone}: lost"));
        self.tally.hit(Rule::G19);
        if self.zones[zone].wire.is_none() {
            return feed::lost(&mut self.zones[zone]);
        }
        self.zones[zone].connected = false;
        self.sever(zone)
    }
}
