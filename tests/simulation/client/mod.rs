// SPDX-License-Identifier: Apache-2.0
//! A client: what it wants, what it holds, and what it sends on its streams.
//!
//! Owns the behaviour of real clients and of hostile ones. Knows nothing of the relay.

mod delta;
mod hostile;
mod memory;
mod sotw;
mod taking;
mod wish;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use peers::asked::Asked;
use proto::envoy::config::core::v3::Node;
use proto::google::rpc::Status;
use xds::Dialect;

use super::body::Type;
use super::classes::Profile;
use super::names::covers;
use super::rng::Rng;
use super::wire::{Answer, Up};
use memory::Memory;

/// Something that a client does on its own.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Connect,
    /// Sends the requests that its current wants need.
    Sync,
    /// Answers a response: accepts it, or with `true` rejects it.
    Settle(u64, Type, String, bool),
    /// Stops waiting for the endpoints of the clusters in this response.
    Tire(u64, String),
    /// Begins or ceases to want something at random.
    Whim,
}

/// What the world must do for a client.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it does not live long")]
pub(crate) enum Do {
    Send(u64, Up),
    Later(Duration, Act),
    /// Closes its stream of this type, and opens another.
    Reopen(Type),
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    /// One aggregated stream, wildcards for clusters and listeners, the rest by what those refer to.
    Envoy,
    /// The same on one stream of each type.
    Streams,
    /// Everything by name, from listeners on.
    Grpc,
    /// An Envoy that asks for clusters by name besides its wildcard, and often changes what it wants.
    OnDemand,
    /// It sends random requests.
    Hostile,
}

/// One client.
pub(crate) struct Client {
    pub(crate) id: usize,
    pub(crate) zone: usize,
    pub(crate) profile: Profile,
    pub(crate) persona: Persona,
    pub(crate) dialect: Dialect,
    /// The authorities under which it wants names.
    pub(crate) authorities: &'static [&'static str],
    /// How many responses the transport takes before the client has read one.
    pub(crate) window: usize,
    /// How long it takes to read one, in milliseconds.
    pub(crate) reading: (usize, usize),
    /// How long it takes to settle one, in milliseconds, while it does not behave.
    settling: (usize, usize),
    /// Whether it rejects responses with something bad in them.
    picky: bool,
    /// Whether it asks for a wildcard with `*`, not with an empty list.
    explicit: bool,
    ttl: bool,
    wrapper: bool,
    pub(crate) lines: BTreeMap<u64, Line>,
    pub(crate) holds: BTreeMap<Type, BTreeMap<String, Holding>>,
    /// What it wants although no resource refers to it.
    whims: BTreeMap<Type, BTreeSet<String>>,
    stars: BTreeSet<Type>,
    /// Endpoints that a warming cluster waits for (M-01).
    pub(crate) warming: BTreeSet<String>,
    withheld: Vec<Withheld>,
    /// Hostile: what it has received and not settled.
    received: Vec<(u64, Type, String)>,
    /// Whether it behaves from now on.
    tame: bool,
    /// Whether it has gone for good.
    pub(crate) retired: bool,
}

/// One open stream.
#[derive(Default)]
pub(crate) struct Line {
    service: Option<Type>,
    greeted: bool,
    pub(crate) muxes: BTreeMap<Type, Mux>,
}

/// One type on a stream.
#[derive(Clone, Default)]
pub(crate) struct Mux {
    started: bool,
    named: bool,
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<String>,
    /// SotW: the version that was accepted last.
    version: String,
    /// SotW: the nonce that was settled last.
    nonce: String,
    /// SotW: the newest nonce that was received.
    newest: String,
    pub(crate) memory: Memory,
}

/// What is held under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) revision: u64,
    /// The stream on which it came.
    pub(crate) stream: u64,
    /// How many requests the relay had read by then.
    pub(crate) serial: u64,
    pub(crate) version: String,
    pub(crate) refers: Arc<[String]>,
    endpoints: Option<String>,
    /// Whether it came with a time to live.
    pub(crate) mortal: bool,
}

/// An acknowledgement that waits for endpoints (M-01).
struct Withheld {
    stream: u64,
    nonce: String,
    waits: BTreeSet<String>,
}

impl Client {
    pub(crate) fn new(
        id: usize,
        zone: usize,
        profile: Profile,
        persona: Persona,
        dialect: Dialect,
        rng: &mut Rng,
    ) -> Self {
        let slow = rng.chance(15);
        let mut stars = BTreeSet::new();
        if rng.chance(30) {
            stars.insert(Type::Odd);
        }
        Self {
            id,
            zone,
            profile,
            persona,
            dialect,
            authorities: &[],
            window: if slow { 1 } else { rng.range(1, 16) },
            reading: if slow { (200, 4000) } else { (0, 3) },
            settling: if rng.chance(25) { (50, 5000) } else { (0, 20) },
            picky: rng.chance(50),
            explicit: rng.chance(40),
            ttl: rng.chance(50),
            wrapper: rng.chance(50),
            lines: BTreeMap::new(),
            holds: BTreeMap::new(),
            whims: BTreeMap::new(),
            stars,
            warming: BTreeSet::new(),
            withheld: Vec::new(),
            received: Vec::new(),
            tame: false,
            retired: false,
        }
    }

    pub(crate) fn has(&self, service: Option<Type>) -> bool {
        self.line(service).is_some()
    }

    pub(crate) fn line(&self, service: Option<Type>) -> Option<u64> {
        let line = self.lines.iter().find(|(_, line)| line.service() == service)?;
        Some(*line.0)
    }

    /// The streams that it opens: one, or one for each type.
    pub(crate) fn services(&self) -> Vec<Option<Type>> {
        match self.persona {
            Persona::Streams => [Type::Cds, Type::Eds, Type::Lds, Type::Rds, Type::Sds]
                .map(Some)
                .to_vec(),
            Persona::Envoy | Persona::Grpc | Persona::OnDemand | Persona::Hostile => vec![None],
        }
    }

    /// Makes it behave, or lets it do as it likes again: one that behaves rejects nothing that is good.
    pub(crate) const fn behave(&mut self, tame: bool) {
        self.tame = tame;
    }

    /// Notes that it sends a request.
    pub(crate) fn requests(&mut self, stream: u64, kind: Type, request: &Up) -> Arc<Asked> {
        let held = self.holds.get(&kind).into_iter().flatten();
        let held = held.filter(|(_, held)| held.stream == stream);
        let held: Vec<String> = held.map(|(name, _)| name.clone()).collect();
        let Some(mux) = self.mux(stream, kind) else {
            return Arc::default();
        };
        mux.memory.request(kind, request, &held);
        mux.memory.want.clone()
    }

    /// Notes a response to which the relay had read its requests up to this number.
    pub(crate) fn answered(&mut self, stream: u64, answer: &Answer, serial: u64) {
        let full = self.is_full(answer.kind);
        if let Some(mux) = self.mux(stream, answer.kind) {
            mux.memory.answered(answer, serial, full);
        }
    }

    /// What it remembers of a type on a stream.
    pub(crate) fn memory(&self, stream: u64, kind: Type) -> Option<&Memory> {
        Some(&self.lines.get(&stream)?.muxes.get(&kind)?.memory)
    }

    /// What it holds of a type.
    pub(crate) fn held(&self, kind: Type) -> &BTreeMap<String, Holding> {
        static NONE: BTreeMap<String, Holding> = BTreeMap::new();
        self.holds.get(&kind).unwrap_or(&NONE)
    }

    /// The dialect in which each answer of a type lists all that there is (B-16).
    pub(crate) fn is_full(&self, kind: Type) -> bool {
        self.dialect == Dialect::Sotw && kind.full_state()
    }

    /// Whether each answer of a type that lists anything lists all that it wants (B-18).
    pub(crate) fn is_listed(&self, kind: Type) -> bool {
        self.dialect == Dialect::Sotw && kind == Type::Sds
    }

    /// Whether it reads times to live, and entries in a wrapper.
    pub(crate) const fn reads(&self) -> (bool, bool) {
        (self.ttl, self.wrapper)
    }

    pub(crate) fn forget(&mut self) {
        self.holds.clear();
        self.warming.clear();
    }

    /// The first requests on a stream that has opened.
    pub(crate) fn opened(&mut self, stream: u64, service: Option<Type>, rng: &mut Rng) -> Vec<Do> {
        let line = Line {
            service,
            ..Line::default()
        };
        self.lines.insert(stream, line);
        if self.persona == Persona::Hostile {
            return self.provoke(rng);
        }
        self.sync(rng)
    }

    /// A stream has ended.
    pub(crate) fn closed(&mut self, stream: u64) -> Option<Option<Type>> {
        let line = self.lines.remove(&stream)?;
        self.withheld.retain(|withheld| withheld.stream != stream);
        self.received.retain(|(other, _, _)| *other != stream);
        Some(line.service)
    }

    /// Returns, for all its streams, the requests that its current wants need.
    pub(crate) fn sync(&mut self, rng: &mut Rng) -> Vec<Do> {
        let mut todo = Vec::new();
        let streams: Vec<u64> = self.lines.keys().copied().collect();
        for stream in streams {
            let mut kinds = Type::EVERY;
            if rng.chance(20) {
                // L-12: some ask for endpoints before clusters.
                kinds.swap(0, 1);
            }
            for kind in kinds {
                let serves = self
                    .lines
                    .get(&stream)
                    .is_some_and(|line| line.service.is_none_or(|only| only == kind));
                if !serves {
                    continue;
                }
                let request = match self.dialect {
                    Dialect::Sotw => self.sync_sotw(stream, kind),
                    Dialect::Delta => self.sync_delta(stream, kind),
                };
                todo.extend(request.map(|request| Do::Send(stream, request)));
            }
        }
        todo
    }

    /// Settles a response.
    pub(crate) fn settle(&mut self, stream: u64, kind: Type, nonce: &str, rejected: bool, rng: &mut Rng) -> Vec<Do> {
        let request = match self.dialect {
            Dialect::Sotw => self.settle_sotw(stream, kind, nonce, rejected),
            Dialect::Delta => self.settle_delta(stream, kind, nonce, rejected, rng.chance(30)),
        };
        request.map(|request| Do::Send(stream, request)).into_iter().collect()
    }

    /// Stops waiting for endpoints, and acknowledges the response.
    pub(crate) fn tire(&mut self, stream: u64, nonce: &str) -> Vec<Do> {
        let same = |withheld: &Withheld| withheld.stream == stream && withheld.nonce == nonce;
        let Some(at) = self.withheld.iter().position(same) else {
            return Vec::new();
        };
        let withheld = self.withheld.remove(at);
        self.warming.retain(|name| !withheld.waits.contains(name));
        let request = self.settle_delta(stream, Type::Cds, nonce, false, false);
        request.map(|request| Do::Send(stream, request)).into_iter().collect()
    }

    /// The node, with the first request of a stream (M-02).
    fn node(&mut self, stream: u64) -> Option<Node> {
        let line = self.lines.get_mut(&stream)?;
        if std::mem::replace(&mut line.greeted, true) {
            return None;
        }
        Some(self.node_now())
    }

    /// Its node, with all features.
    fn node_now(&self) -> Node {
        let ttl = self.ttl.then(|| "xds.config.supports-resource-ttl".to_owned());
        let wrapper = self.wrapper.then(|| "xds.config.resource-in-sotw".to_owned());
        let features = ttl.into_iter().chain(wrapper).collect();
        let mut node = self.profile.node(format!("client-{}", self.id), features);
        if self.is_undeclared_envoy() {
            node.user_agent_name = "envoy".to_owned();
        }
        if self.persona == Persona::Grpc {
            node.user_agent_name = "gRPC Go".to_owned();
        }
        node
    }

    /// Whether it is an Envoy that names none of its features (B-30).
    pub(crate) fn is_undeclared_envoy(&self) -> bool {
        let envoy = matches!(self.persona, Persona::Envoy | Persona::Streams | Persona::OnDemand);
        envoy && !self.ttl && !self.wrapper
    }

    fn mux(&mut self, stream: u64, kind: Type) -> Option<&mut Mux> {
        Some(self.lines.get_mut(&stream)?.muxes.entry(kind).or_default())
    }
}

impl Line {
    pub(crate) const fn service(&self) -> Option<Type> {
        self.service
    }
}

impl Mux {
    /// Whether it asks for a name, or for its collection.
    fn explicit(&self, name: &str) -> bool {
        let collection = |collection: &String| covers(collection, name);
        self.names.contains(name) || self.names.iter().any(collection)
    }
}

fn rejection() -> Status {
    Status {
        code: 13,
        message: "bad".to_owned(),
        ..Default::default()
    }
}
