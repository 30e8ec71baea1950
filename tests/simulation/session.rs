// SPDX-License-Identifier: Apache-2.0
//! The relay's half of a client stream, driven as its shell drives it.
//!
//! Owns the order of calls: bell, wants, cut, responses, timers. Knows nothing of the content of messages.

use std::sync::Arc;

use proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use protocol::{Code, End, Opening, Receipt, ReceiptKind, Server};
use xds::Sight;

use super::body::Type;
use super::classes::opening;
use super::client::Persona;
use super::event::Event;
use super::judge::{Came, Moment};
use super::reading::Reading;
use super::scene::{Scene, current, strays};
use super::stream::{Stream, is_dealt_with};
use super::tally::{Broken, Rule};
use super::wire::{Answer, Up, decode, encode};
use super::world::World;

impl World {
    /// A client opens a stream.
    pub(crate) fn open(&mut self, client: usize, service: Option<Type>) -> u64 {
        let id = self.course.next_stream();
        let asks = &self.clients[client];
        let opening = Opening {
            service: service.map(|kind| kind.type_url().clone()),
            identity: self.relay.identity(client),
            ..opening(asks.dialect, id as u32)
        };
        let lists = self.origins.lists.as_ref();
        let class = lists.map_or(0, |lists| lists.class(&asks.profile));
        let server = Server::new(self.relay.settings.clone(), opening);
        let mut stream = Stream::new(id, asks, class, server, self.network.waker(id));
        stream.plan = lists.map(|lists| lists.plan.clone());
        self.network.put(Box::new(stream));
        self.course
            .log(|| format!("client {client}: opens stream {id} {service:?}"));
        id
    }

    /// A client sends a request.
    pub(crate) fn send(&mut self, id: u64, request: Up) {
        self.course
            .log(|| format!("stream {id}: client -> {}", request.brief()));
        let at = self.course.clock.now() + self.course.delay();
        let Some((client, kind)) = self.network.get(id).map(|stream| stream.client).zip(request.kind()) else {
            return;
        };
        let want = self.clients[client].requests(id, kind, &request);
        let asked = Moment::Asked(&self.clients[client], id, kind, &request);
        let asked = self.judge.see(&asked, &mut self.course.tally);
        debug_assert!(asked.is_ok(), "no question breaks a rule");
        if let Some(stream) = self.network.get_mut(id) {
            let at = stream.up.send((request, want), at);
            self.course.at(at, Event::ToRelay(id));
        }
    }

    pub(crate) fn arrive_at_relay(&mut self, id: u64) -> Result<(), Broken> {
        let now = self.course.clock.instant();
        let Some(mut stream) = self.network.take(id) else {
            return Ok(());
        };
        let arrived = stream.up.arrive(stream.stalled).filter(|_| stream.at_relay);
        let Some((request, want)) = arrived else {
            self.network.put(stream);
            return Ok(());
        };
        if let Some(kind) = request.kind() {
            Arc::make_mut(&mut stream.wants).insert(kind, want);
            self.judge
                .see(&Moment::Heard(id, kind, &request), &mut self.course.tally)?;
        }
        let receipt = match &request {
            Up::Sotw(request) => stream.server.handle(request.clone(), &self.relay.answers, now),
            Up::Delta(request) => match acknowledge(&mut stream.server, request) {
                Some(receipt) => Ok(receipt),
                None => stream.server.handle(request.clone(), &self.relay.answers, now),
            },
        };
        if let Some(node) = stream.server.node() {
            self.course.tally.hit(Rule::B01);
            if *node.id != *format!("client-{}", stream.client) {
                return broken!(B01, "stream {id} is now {}", node.id);
            }
        }
        self.note_rejection(&stream, receipt.as_ref().ok());
        let mut refused = false;
        let comes = stream.place.is_none() && receipt.is_ok();
        if let Some(node) = stream.server.node().filter(|_| comes) {
            stream.place = self.seat(stream.zone, node)?;
            refused = stream.place.is_none();
        }
        self.relay.say_wants(&mut stream, &self.origins, &mut self.course)?;
        stream.fired = None;
        self.course.log(|| {
            let kind = receipt.as_ref().map(|receipt| format!("{:?}", receipt.kind));
            format!("stream {id}: relay <- {} = {kind:?}", request.brief())
        });
        self.network.put(stream);
        if refused {
            self.refuse(id);
            return Ok(());
        }
        if let Err(end) = receipt {
            return self.end(id, &end);
        }
        self.turn(id)
    }

    /// E-24: the writers of the views that a stream reads hear that its client has rejected something.
    fn note_rejection(&mut self, stream: &Stream, receipt: Option<&Receipt>) {
        if receipt.is_some_and(|receipt| matches!(receipt.kind, ReceiptKind::Nack { .. })) {
            let zones = stream.reads.values().copied().chain([stream.zone]);
            zones.for_each(|zone| self.course.soon(0, 5, Event::Upstream(zone)));
        }
    }

    /// The stream's task runs: what rang, what is wanted, what can be sent.
    pub(crate) fn turn(&mut self, id: u64) -> Result<(), Broken> {
        let Some(mut stream) = self.network.take(id) else {
            return self.turn_ahead(id);
        };
        let spoken = match stream.at_relay {
            true => self.speak(id, &mut stream),
            false => Ok(()),
        };
        let end = stream.server.poll_end();
        self.network.put(stream);
        spoken?;
        end.map_or(Ok(()), |end| self.end(id, &end))
    }

    fn speak(&mut self, id: u64, stream: &mut Stream) -> Result<(), Broken> {
        let now = self.course.clock.instant();
        if !stream.poll(&self.relay.scopes, now) {
            return Ok(());
        }
        self.relay.say_wants(stream, &self.origins, &mut self.course)?;
        self.origins.see_views(&self.relay.scopes, &mut self.course)?;
        self.see_moves(id, stream)?;
        let Some(place) = &stream.place else { return Ok(()) };
        let sight = place.sight();
        while stream.room > 0 {
            let gates = stream.server.expired_gates();
            let Some(answer) = self.next_response(stream, &sight)? else {
                break;
            };
            let expired = stream.server.expired_gates() > gates;
            let gate = if expired { " (gate)" } else { "" };
            self.course
                .log(|| format!("stream {id}: relay -> {}{gate}", answer.brief()));
            let reading = self.reading(stream);
            let scene = Scene {
                strays: strays(&answer, &reading, &self.origins),
                current: current(&answer, &reading, &self.origins),
                reading,
                wants: stream.wants.clone(),
                now,
                expired,
            };
            self.transmit(id, stream, answer, scene)?;
        }
        stream.set_timer(&mut self.course);
        stream.check_kept(&mut self.course.tally)
    }

    /// What a stream reads now.
    pub(crate) fn reading(&self, stream: &Stream) -> Reading {
        let alone = [(None, stream.zone)];
        let alone = alone
            .iter()
            .filter(|_| self.origins.lists.is_none())
            .map(|(name, zone)| (name, zone));
        let reads = stream.reads.iter().chain(alone);
        let cut = |(authority, zone): (&Option<String>, &usize)| {
            (authority.clone(), (*zone, self.origins[*zone].writer.view.cut()))
        };
        Reading {
            sourced: stream
                .plan
                .as_ref()
                .map(|plan| plan.sourced.clone())
                .unwrap_or_default(),
            reads: reads.map(cut).collect(),
            permitted: self.relay.permitted(stream.client),
        }
    }

    /// A response has reached its client.
    pub(crate) fn see_arrival(&mut self, id: usize, stream: u64, answer: &Answer, scene: &Scene) -> Result<(), Broken> {
        let came = Came {
            client: &self.clients[id],
            stream,
            answer,
            scene,
            zones: &self.origins,
        };
        let judged = self.judge.see(&Moment::Came(&came), &mut self.course.tally);
        let client = &mut self.clients[id];
        let serial = scene.wants.get(&answer.kind).map_or(0, |want| want.serial);
        client.answered(stream, answer, serial);
        judged.map_err(|broken| broken.of("stream", stream))
    }

    /// The relay's next response, as it is on the wire.
    fn next_response(&mut self, stream: &mut Stream, sight: &Sight) -> Result<Option<Answer>, Broken> {
        let now = self.course.clock.instant();
        let done = stream.server.is_done();
        let response = stream.server.poll_response(sight, &self.relay.answers, now);
        if let Some(late) = response.as_ref().filter(|_| done) {
            return broken!(
                Done,
                "{} although there was nothing more to say, whatever is acknowledged",
                late.type_url
            );
        }
        if done {
            self.course.tally.hit(Rule::Done);
        }
        if response.is_some() {
            self.check_first_response(stream)?;
        }
        if let Some(place) = &stream.place {
            place.looked(|type_url| is_dealt_with(&stream.server, response.as_ref(), type_url));
        }
        let read = response.map(|response| decode(encode(&response), stream.dialect));
        read.transpose().map_err(|what| Broken::new(Rule::B24, what))
    }

    fn transmit(&mut self, id: u64, stream: &mut Stream, answer: Answer, scene: Scene) -> Result<(), Broken> {
        self.course.tally.responses += 1;
        let sent = Moment::Sent(&self.clients[stream.client], id, &answer, &scene);
        let judged = self.judge.see(&sent, &mut self.course.tally);
        judged.map_err(|broken| broken.of("stream", id))?;
        stream.room -= 1;
        let at = self.course.clock.now() + self.course.delay();
        let at = stream.down.send((answer, scene), at);
        self.course.at(at, Event::ToClient(id));
        Ok(())
    }

    pub(crate) fn timer(&mut self, id: u64) -> Result<(), Broken> {
        let now = self.course.clock.instant();
        let Some(stream) = self.network.get_mut(id).filter(|stream| stream.at_relay) else {
            return Ok(());
        };
        let Some(due) = stream.fire(now) else {
            return self.turn(id);
        };
        let Some(place) = &mut stream.place else {
            return Ok(());
        };
        if place.settle(&self.relay.scopes, &stream.server, now) {
            stream.server.handle_moved(now);
        }
        if stream.server.poll_timeout().is_none_or(|due| now < due) {
            return self.turn(id);
        }
        stream.server.handle_timeout(now);
        self.turn(id)?;
        if self.network.get(id).is_none_or(|stream| !stream.at_relay) {
            self.course.clock.late(Some(due), "a stream counted as unanswered");
        }
        Ok(())
    }

    /// The relay ends a stream.
    fn end(&mut self, id: u64, end: &End) -> Result<(), Broken> {
        self.course.log(|| format!("stream {id}: the relay ends it: {end}"));
        let Some(stream) = self.network.get(id) else {
            return Ok(());
        };
        self.course.tally.hit(Rule::G18);
        let lonely = end.code == Code::Unavailable && stream.server.sent() == 0;
        let lonely = lonely || end.code == Code::Unavailable && self.is_forsaken(stream);
        let hostile = self.clients[stream.client].persona == Persona::Hostile;
        let rude = hostile && end.code == Code::InvalidArgument;
        if !lonely && !rude {
            return broken!(G18, "stream {id} ended with {end}");
        }
        self.end_at_relay(id);
        Ok(())
    }

    /// Ends a stream because there are too many views. At the end, clients that were refused give up.
    fn refuse(&mut self, id: u64) {
        self.course
            .log(|| format!("stream {id}: refused, there are too many views"));
        if let Some(stream) = self.network.get(id).filter(|_| self.course.calm) {
            self.clients[stream.client].retired = true;
        }
        self.end_at_relay(id);
    }
}

/// Handles a request that does nothing but acknowledge a response; returns `None` for others.
fn acknowledge(server: &mut Server, request: &DeltaDiscoveryRequest) -> Option<Receipt> {
    let (type_url, nonce) = (&request.type_url, &request.response_nonce);
    let alone = DeltaDiscoveryRequest {
        type_url: type_url.clone(),
        response_nonce: nonce.clone(),
        ..Default::default()
    };
    let bare = alone == *request;
    bare.then(|| server.handle_acknowledgement(type_url.as_bytes(), nonce.as_bytes()))
        .flatten()
}
