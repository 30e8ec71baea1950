// SPDX-License-Identifier: Apache-2.0
//! The control planes of the worlds: which habits they have, and what goes wrong on a stream of one (E-12, E-13).
//!
//! Owns their chance. What a stream says is decided by `peers::session`. Knows nothing of relays.

use bytes::Bytes;
use peers::session::{self, Reply as Said, Resources, State};
use prost::Message;
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::Any;
use protocol::Request;
use xds::Dialect;

use super::body::Type;
use super::names::{canonical, is_collection};
use super::rng::Rng;
use super::wire::{Answer, decode};

/// What a control plane is like.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    pub(crate) dialect: Dialect,
    pub(crate) manners: session::Habits,
    /// How many responses in a hundred have something wrong in them.
    noise: usize,
    /// How many streams in a hundred end early.
    moody: usize,
}

impl Habits {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let delta = rng.chance(70);
        let manners = session::Habits {
            silent: delta && rng.chance(50),
            says_missing: rng.chance(50),
            believes: rng.chance(70),
            patient: rng.chance(50),
            forces_endpoints: rng.chance(30),
            insists: true,
            snapshot: rng.chance(20),
            partial: rng.chance(50),
            split: rng.chance(50).then(|| rng.range(1, 3)),
            ..session::Habits::default()
        };
        Self {
            dialect: if delta { Dialect::Delta } else { Dialect::Sotw },
            manners,
            noise: if rng.chance(30) { 10 } else { 0 },
            moody: if rng.chance(30) { 30 } else { 0 },
        }
    }

    /// The same for one that says nothing where nothing is new, perhaps.
    pub(crate) fn silent(mut self, rng: &mut Rng) -> Self {
        let silent = rng.chance(60);
        self.manners.silent = silent;
        self.manners.partial &= !silent;
        self.manners.believes |= silent;
        self
    }

    /// The same for one that answers as java-control-plane over SotW.
    pub(crate) fn strict(self) -> Self {
        let manners = session::Habits {
            snapshot: false,
            strict: true,
            silent: true,
            partial: false,
            ..self.manners
        };
        Self {
            dialect: Dialect::Sotw,
            manners,
            ..self
        }
    }

    /// The habits of one of several servers: it believes what clients declare, and its versions name the server.
    pub(crate) fn of_server(server: usize, rng: &mut Rng) -> Self {
        let mut habits = Self::new(rng);
        habits.manners.believes = true;
        habits.manners.snapshot = false;
        habits.manners.mark = format!(".s{server}");
        habits
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
    fn read(&self, dialect: Dialect) -> Result<Answer, String> {
        match self {
            Self::Message(bytes) => decode(bytes.clone(), dialect),
            Self::Close => Err("closes".to_owned()),
        }
    }

    /// The names of this type that it brings, if it is a delta response.
    pub(crate) fn brings(&self, kind: Type) -> Vec<String> {
        let answer = self.read(Dialect::Delta).ok().filter(|answer| answer.kind == kind);
        let entries = answer.into_iter().flat_map(|answer| answer.entries);
        entries.map(|entry| entry.name).collect()
    }

    /// Formats a reply for the trace.
    pub(crate) fn brief(&self, dialect: Dialect) -> String {
        self.read(dialect).map_or_else(|what| what, |answer| answer.brief())
    }
}

/// One stream as the control plane sees it.
pub(crate) struct Session {
    habits: Habits,
    pub(crate) stream: session::Session,
}

impl Session {
    pub(crate) fn new(habits: &Habits, calm: bool, rng: &mut Rng) -> Self {
        let mut habits = habits.clone();
        if calm {
            (habits.noise, habits.moody) = (0, 0);
        }
        habits.manners.ends_after = rng.chance(habits.moody).then(|| rng.below(5) as u64);
        Self {
            habits,
            stream: session::Session::default(),
        }
    }

    pub(crate) fn request(&mut self, request: &Request, state: &State, rng: &mut Rng) -> Vec<Reply> {
        match request.clone() {
            Request::Sotw(request) => self.stream.hear_sotw(&self.habits.manners, request),
            Request::Delta(request) => self.stream.hear_delta(&self.habits.manners, request),
        }
        self.push(state, rng)
    }

    /// Sends what has changed.
    pub(crate) fn push(&mut self, state: &State, rng: &mut Rng) -> Vec<Reply> {
        let said = self.stream.replies(&self.habits.manners, state);
        let mut replies: Vec<Reply> = said.into_iter().map(|said| self.encode(said, rng)).collect();
        if self.stream.is_over(&self.habits.manners) {
            replies.push(Reply::Close);
        }
        replies
    }

    fn encode(&mut self, said: Said, rng: &mut Rng) -> Reply {
        let spoils = rng.chance(self.habits.noise) && self.stream.sent() < LOUD;
        let bytes = match said {
            Said::Sotw(mut response) => {
                if spoils {
                    spoil(&mut response.resources, &response.type_url, rng);
                    self.stream.doubt(&response.type_url);
                }
                response.encode_to_vec()
            }
            Said::Delta(mut response) => {
                if spoils {
                    spoil_delta(&mut response.resources, rng);
                }
                response.encode_to_vec()
            }
        };
        Reply::Message(bytes.into())
    }

    /// Confirms what has a time to live, and sometimes does not.
    pub(crate) fn beat(&mut self, state: &State, rng: &mut Rng) -> Vec<Reply> {
        for (type_url, all) in state {
            let mortal = all.iter().filter(|(_, resource)| resource.ttl.is_some());
            for (name, _) in mortal.filter(|_| rng.chance(80)) {
                self.stream.repeat(type_url, name);
            }
        }
        self.push(state, rng)
    }

    /// Whether it has the wildcard of a type.
    pub(crate) fn has_wildcard(&self, kind: Type) -> bool {
        let subscription = self.stream.types.get(kind.url());
        subscription.is_some_and(|subscription| subscription.asked.wildcard)
    }

    /// Whether it keeps silent because it was not asked for all that it has (E-18).
    pub(crate) fn withholds(&self, kind: Type, state: &State) -> bool {
        let asked = self.stream.types.get(kind.url()).zip(state.get(kind.url()));
        let sotw = self.habits.dialect == Dialect::Sotw;
        sotw && asked.is_some_and(|(subscription, all)| subscription.withholds(&self.habits.manners, all))
    }

    /// E-27: whether it keeps silent because it lacks a name that it was asked for, or was not told by whom.
    pub(crate) fn is_silenced(&self, kind: Type, state: &State) -> bool {
        let nothing = Resources::new();
        let (all, subscription) = (state.get(kind.url()), self.stream.types.get(kind.url()));
        let all = all.unwrap_or(&nothing);
        subscription.is_some_and(|subscription| subscription.is_silenced(&self.habits.manners, all))
    }
}

/// E-12, E-13: adds garbage, a repeated entry, or an entry without a name.
fn spoil(resources: &mut Vec<Any>, type_url: &str, rng: &mut Rng) {
    match (rng.below(3), resources.first().cloned()) {
        (0, Some(first)) => resources.push(first),
        (1, _) => resources.push(Any {
            type_url: type_url.to_owned(),
            // for an unknown type an empty body would be valid, as a resource without a name.
            value: if type_url == Type::Odd.url() {
                Bytes::from_static(b"\x0a\x05x")
            } else {
                Bytes::new()
            },
        }),
        _ => resources.push(Any {
            type_url: "type.googleapis.com/wrong.Type".to_owned(),
            value: Bytes::from_static(b"\x0a\x01x"),
        }),
    }
}

fn spoil_delta(resources: &mut Vec<discovery::Resource>, rng: &mut Rng) {
    match (rng.below(2), resources.first().cloned()) {
        (0, Some(first)) => resources.push(first),
        _ => resources.push(discovery::Resource::default()),
    }
}
