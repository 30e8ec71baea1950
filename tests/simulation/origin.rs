// SPDX-License-Identifier: Apache-2.0
//! A control plane as a program: a naive server of one stream.
//!
//! Owns the server's half of both dialects, with the behaviour of real servers (C-16, E-12, E-13, E-22). Knows nothing of
//! relays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::Any;
use protocol::Request;
use xds::Dialect;

use super::body::{Content, Type, read};
use super::names::{canonical, covers, is_collection};
use super::rng::Rng;
use super::served::{Served, entry, resource, spoil, spoil_delta};
use super::truth::Truth;

/// What a control plane is like.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    pub(crate) dialect: Dialect,
    /// Whether it reports that a name does not exist, or stays silent (C-16).
    says_missing: bool,
    /// Whether it waits for an acknowledgement before it speaks of a type again.
    patient: bool,
    /// Whether it sends all endpoints again after clusters.
    forces_endpoints: bool,
    /// Whether it believes what a client declares that it holds.
    pub(crate) believes: bool,
    /// SotW: whether it is silent while a list of names lacks anything that it has (E-18).
    snapshot: bool,
    /// SotW: whether it is silent while it lacks a name of the list, and looks for the node of each request, as java-control-plane (E-01,
    /// E-27).
    strict: bool,
    /// SotW: whether it says nothing to a client that has the version which it has, as go-control-plane.
    silent: bool,
    /// SotW: whether it sends only what has changed, where it may.
    partial: bool,
    /// How many entries go into one delta response.
    chunk: usize,
    /// How many responses in a hundred have something wrong in them.
    noise: usize,
    /// How many streams in a hundred end early.
    pub(crate) moody: usize,
    /// The suffix of its versions.
    pub(crate) mark: String,
}

impl Habits {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            dialect: if rng.chance(70) { Dialect::Delta } else { Dialect::Sotw },
            says_missing: rng.chance(50),
            patient: rng.chance(50),
            forces_endpoints: rng.chance(30),
            believes: rng.chance(70),
            snapshot: rng.chance(20),
            strict: false,
            silent: false,
            partial: rng.chance(50),
            chunk: if rng.chance(50) { 1000 } else { rng.range(1, 3) },
            noise: if rng.chance(30) { 10 } else { 0 },
            moody: if rng.chance(30) { 30 } else { 0 },
            mark: String::new(),
        }
    }

    /// The same for one that says nothing where nothing is new, perhaps.
    pub(crate) fn silent(self, rng: &mut Rng) -> Self {
        let silent = rng.chance(60);
        Self {
            silent,
            partial: self.partial && !silent,
            believes: self.believes || silent,
            ..self
        }
    }

    /// The same for one that answers as java-control-plane over SotW.
    pub(crate) fn strict(self) -> Self {
        Self {
            dialect: Dialect::Sotw,
            snapshot: false,
            strict: true,
            silent: true,
            partial: false,
            ..self
        }
    }

    /// The habits of one of several servers: it believes what clients declare, and its versions name the server.
    pub(crate) fn of_server(server: usize, rng: &mut Rng) -> Self {
        Self {
            believes: true,
            snapshot: false,
            mark: format!(".s{server}"),
            ..Self::new(rng)
        }
    }
}

/// After this many responses nothing is spoiled any more. A control plane that repeats at once what was rejected, in many parts
/// of which one is always spoiled, would never finish.
const LOUD: u64 = 2000;

/// The type of which a delta request asks for a wildcard or a collection, if it does.
pub(crate) fn begins(request: &Request) -> Option<Type> {
    let Request::Delta(request) = request else { return None };
    let kind = Type::of(&request.type_url)?;
    let mut names = request.resource_names_subscribe.iter();
    let any = names.any(|name| name == "*" || is_collection(&canonical(kind, name)));
    any.then_some(kind)
}

/// What it sends.
#[derive(Debug)]
pub(crate) enum Reply {
    Message(Bytes),
    Close,
}

impl Reply {
    /// The names of this type that it brings, if it is a delta response.
    pub(crate) fn brings(&self, kind: Type) -> Vec<String> {
        let Self::Message(bytes) = self else { return Vec::new() };
        let response = discovery::DeltaDiscoveryResponse::decode(bytes.clone()).unwrap_or_default();
        let all = response.resources.into_iter();
        let all = all.filter(|_| Type::of(&response.type_url) == Some(kind));
        all.map(|resource| resource.name).collect()
    }

    /// Formats a reply for the trace.
    pub(crate) fn brief(&self, dialect: Dialect) -> String {
        let bytes = match self {
            Self::Message(bytes) => bytes,
            Self::Close => return "closes".to_owned(),
        };
        if dialect == Dialect::Sotw {
            let response = discovery::DiscoveryResponse::decode(bytes.clone()).unwrap_or_default();
            let kind = Type::of(&response.type_url);
            let names = response
                .resources
                .iter()
                .map(|any| match kind.map(|kind| read(kind, any)) {
                    Some(Ok(facts)) => format!("{}@{}", facts.name, facts.revision),
                    Some(Err(_)) | None => "?".to_owned(),
                });
            return format!("{kind:?} {:?} {}", names.collect::<Vec<_>>(), response.nonce);
        }
        let response = discovery::DeltaDiscoveryResponse::decode(bytes.clone()).unwrap_or_default();
        let resources = response.resources.iter();
        let names = resources.map(|resource| format!("{}@{}", resource.name, resource.version));
        let kind = Type::of(&response.type_url);
        format!(
            "{kind:?} {:?} -{:?} {}",
            names.collect::<Vec<_>>(),
            response.removed_resources,
            response.nonce
        )
    }
}

/// F-04: for each name the spellings by which it is asked for. A name stays subscribed as long as one of its spellings is.
#[derive(Default)]
struct Texts(BTreeMap<(Type, String), BTreeSet<String>>);

impl Texts {
    /// The same request with every name in the canonical way.
    fn read(&mut self, kind: Type, request: &Request) -> Request {
        let mut request = request.clone();
        match &mut request {
            Request::Sotw(request) => {
                let names: BTreeSet<String> = request
                    .resource_names
                    .iter()
                    .map(|text| canonical(kind, text))
                    .collect();
                request.resource_names = names.into_iter().collect();
            }
            Request::Delta(request) => {
                for text in &mut request.resource_names_subscribe {
                    let name = canonical(kind, text);
                    self.0
                        .entry((kind, name.clone()))
                        .or_default()
                        .insert(std::mem::replace(text, name));
                }
                request.resource_names_unsubscribe.retain_mut(|text| {
                    let key = (kind, canonical(kind, text));
                    let texts = self.0.entry(key.clone()).or_default();
                    texts.remove(&std::mem::replace(text, key.1));
                    texts.is_empty()
                });
                let held = std::mem::take(&mut request.initial_resource_versions).into_iter();
                request.initial_resource_versions =
                    held.map(|(text, version)| (canonical(kind, &text), version)).collect();
            }
        }
        request
    }
}

/// One stream as the control plane sees it.
pub(crate) struct Session {
    habits: Habits,
    pub(crate) types: BTreeMap<Type, Served>,
    texts: Texts,
    nonces: u64,
    /// After so many responses it closes the stream.
    patience: Option<u64>,
}

impl Session {
    pub(crate) fn new(habits: &Habits, calm: bool, rng: &mut Rng) -> Self {
        let moody = !calm && rng.chance(habits.moody);
        let noise = if calm { 0 } else { habits.noise };
        Self {
            habits: Habits {
                noise,
                ..habits.clone()
            },
            types: BTreeMap::new(),
            texts: Texts::default(),
            nonces: 0,
            patience: moody.then(|| rng.below(5) as u64),
        }
    }

    pub(crate) fn request(&mut self, request: &Request, truth: &Truth, rng: &mut Rng) -> Vec<Reply> {
        let url = match request {
            Request::Sotw(request) => &request.type_url,
            Request::Delta(request) => &request.type_url,
        };
        let Some(kind) = Type::of(url) else { return Vec::new() };
        let request = &self.texts.read(kind, request);
        let first = !self.types.contains_key(&kind);
        let served = self.types.entry(kind).or_default();
        if served.hears_of_clients(request) {
            return Vec::new();
        }
        served.unknown = self.habits.strict && matches!(request, Request::Sotw(request) if request.node.is_none());
        match request {
            Request::Sotw(request) => served.sotw(kind, request, first),
            Request::Delta(request) => served.delta(kind, request, first, self.habits.believes),
        }
        self.push(truth, rng)
    }

    /// Sends what has changed.
    pub(crate) fn push(&mut self, truth: &Truth, rng: &mut Rng) -> Vec<Reply> {
        let mut replies = Vec::new();
        for kind in Type::EVERY {
            let told = match self.habits.dialect {
                Dialect::Sotw => self.say_all(kind, truth, rng),
                Dialect::Delta => self.say_news(kind, truth, rng),
            };
            if kind == Type::Cds
                && !told.is_empty()
                && self.habits.forces_endpoints
                && let Some(endpoints) = self.types.get_mut(&Type::Eds)
            {
                endpoints.sent.values_mut().for_each(|revision| *revision = 0);
                endpoints.owes = true;
            }
            replies.extend(told);
        }
        let sent = self.nonces;
        if self.patience.is_some_and(|patience| sent >= patience) {
            replies.push(Reply::Close);
        }
        replies
    }

    /// Confirms what has a time to live, and sometimes does not.
    pub(crate) fn beat(&mut self, truth: &Truth, rng: &mut Rng) -> Vec<Reply> {
        for kind in Type::EVERY {
            let Some(served) = self.types.get_mut(&kind) else {
                continue;
            };
            let mortal = truth.of(kind).filter(|content| content.ttl.is_some());
            for content in mortal.filter(|_| rng.chance(80)) {
                if let Some(revision) = served.sent.get_mut(&content.name) {
                    *revision = 0;
                }
            }
        }
        self.push(truth, rng)
    }

    /// Whether it has sent this, as far as it remembers.
    pub(crate) fn has_sent(&self, kind: Type, key: &str) -> bool {
        self.types
            .get(&kind)
            .is_some_and(|served| served.sent.contains_key(key))
    }

    /// Whether it keeps silent because it was not asked for all that it has (E-18).
    pub(crate) fn withholds(&self, kind: Type, truth: &Truth) -> bool {
        let served = self.types.get(&kind).filter(|served| served.listed);
        let sotw = self.habits.dialect == Dialect::Sotw;
        let lacks = |served: &Served| truth.of(kind).any(|content| !served.names.contains(&content.name));
        self.habits.snapshot && sotw && served.is_some_and(lacks)
    }

    /// E-27: whether it keeps silent because it lacks a name that it was asked for, or was not told by whom.
    pub(crate) fn is_silenced(&self, kind: Type, truth: &Truth) -> bool {
        let served = self.types.get(&kind).filter(|_| self.habits.strict);
        let lacks = |served: &Served| served.names.iter().any(|name| !truth.is_there(kind, name));
        served.is_some_and(|served| served.unknown || lacks(served))
    }

    fn nonce(&mut self) -> String {
        self.nonces += 1;
        format!("cp-{}", self.nonces)
    }

    fn say_all(&mut self, kind: Type, truth: &Truth, rng: &mut Rng) -> Vec<Reply> {
        let withheld = self.withholds(kind, truth) || self.is_silenced(kind, truth);
        let Some(served) = self.types.get_mut(&kind) else {
            return Vec::new();
        };
        if self.habits.patient && served.unsettled.is_some() || !served.subscribed() || withheld {
            return Vec::new();
        }
        // The client has not answered the last response, which has a fault. Its rejection will be stale, so everything is sent again.
        if std::mem::take(&mut served.faulty) {
            served.sent.values_mut().for_each(|revision| *revision = 0);
        }
        let target = served.target(kind, truth);
        let set: BTreeMap<String, u64> = target
            .iter()
            .map(|content| (content.name.clone(), content.revision))
            .collect();
        let new = set
            .iter()
            .filter(|(key, revision)| served.sent.get(*key) != Some(revision));
        let gone = served.sent.keys().filter(|key| !set.contains_key(*key));
        let changed = new.map(|(key, _)| key).chain(gone);
        let changed: BTreeSet<String> = changed.cloned().collect();
        // Where the absence of a name says nothing, a removal is not worth a response.
        let version = match self.habits.silent {
            true => format!("{}{}", truth.fingerprint(kind), self.habits.mark),
            false => format!("{}{}", served.version + 1, self.habits.mark),
        };
        if self.habits.silent && served.declared.take().as_ref() == Some(&version) {
            (served.sent, served.owes) = (set, false);
            return Vec::new();
        }
        let news = if kind.full_state() {
            set != served.sent
        } else {
            target.iter().any(|content| changed.contains(&content.name))
        };
        if !news && !served.owes {
            return Vec::new();
        }
        let partial = self.habits.partial && !kind.full_state();
        let fresh = |content: &&Arc<Content>| !partial || changed.contains(&content.name);
        let mut resources: Vec<Any> = target
            .iter()
            .filter(fresh)
            .map(|content| entry(kind, content, &self.habits.mark))
            .collect();
        served.sent = set;
        served.owes = false;
        served.version += 1;
        let nonce = self.nonce();
        let faulty = rng.chance(self.habits.noise);
        if faulty {
            spoil(&mut resources, kind, rng);
        }
        if let Some(served) = self.types.get_mut(&kind) {
            served.unsettled = Some(nonce.clone());
            served.faulty = faulty;
        }
        let response = discovery::DiscoveryResponse {
            version_info: version,
            resources,
            type_url: kind.url().to_owned(),
            nonce,
            ..Default::default()
        };
        vec![Reply::Message(response.encode_to_vec().into())]
    }

    fn say_news(&mut self, kind: Type, truth: &Truth, rng: &mut Rng) -> Vec<Reply> {
        let Some(served) = self.types.get_mut(&kind) else {
            return Vec::new();
        };
        if self.habits.patient && served.unsettled.is_some() {
            return Vec::new();
        }
        let target = served.target(kind, truth);
        let fresh = |content: &&Arc<Content>| served.sent.get(&content.name) != Some(&content.revision);
        let news: Vec<Arc<Content>> = target.iter().filter(fresh).cloned().collect();
        // What exists under another name is not gone; nor is a collection that has a member.
        let is = |content: &Content, key: &String| content.name == *key || covers(key, &content.name);
        let gone = |name: &&String| !target.iter().any(|content| is(content, name));
        let mut removed: Vec<String> = served.sent.keys().filter(gone).cloned().collect();
        served.sent.retain(|name, _| !removed.contains(name));
        let says = self.habits.says_missing;
        for name in served.names.iter().filter(|name| !truth.is_there(kind, name)) {
            let answers = says || served.known.contains(name);
            if answers && served.missing.insert(name.clone()) && !removed.contains(name) {
                removed.push(name.clone());
            }
        }
        served.missing.retain(|name| !truth.is_there(kind, name));
        served
            .sent
            .extend(news.iter().map(|content| (content.name.clone(), content.revision)));
        served.known.extend(news.iter().map(|content| content.name.clone()));
        if news.is_empty() && removed.is_empty() && !std::mem::take(&mut served.owes) {
            return Vec::new();
        }
        served.owes = false;
        let mut replies = Vec::new();
        let mut chunks: Vec<&[Arc<Content>]> = news.chunks(self.habits.chunk).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for chunk in chunks {
            let mut resources: Vec<discovery::Resource> = chunk
                .iter()
                .map(|content| resource(kind, content, &self.habits.mark))
                .collect();
            if rng.chance(self.habits.noise) && self.nonces < LOUD {
                spoil_delta(&mut resources, rng);
            }
            let nonce = self.nonce();
            if let Some(served) = self.types.get_mut(&kind) {
                served.unsettled = Some(nonce.clone());
                served.gone.insert(nonce.clone(), removed.clone());
            }
            let response = discovery::DeltaDiscoveryResponse {
                system_version_info: "any".to_owned(),
                resources,
                type_url: kind.url().to_owned(),
                removed_resources: removed.clone(),
                nonce,
                ..Default::default()
            };
            removed.clear();
            replies.push(Reply::Message(response.encode_to_vec().into()));
        }
        replies
    }
}
