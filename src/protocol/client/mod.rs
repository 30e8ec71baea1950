// SPDX-License-Identifier: Apache-2.0
//! One upstream stream: turns interest into requests, and responses into changes.
//!
//! Owns the client's half of the protocol in both dialects. Knows nothing of connections, the other stream of its view and the
//! cache.

mod acks;
mod awaited;
mod beside;
mod complaint;
mod completeness;
mod coverage;
mod doubt;
mod entry;
mod feed;
mod ingest;
mod kept;
mod late;
mod node;
mod outbound;
mod refusals;
mod rhythm;
mod stated;
mod stream;
mod told;
mod unsaid;
mod unserved;
mod ways;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use beside::Parted;
use beside::Renamed;
use bytes::Bytes;
pub use doubt::{Decided, Doubt};
use entry::find_twins;
pub(crate) use feed::{Feed, UNANSWERED};
use ingest::Message;
use node::Introduction;
pub use node::come_through;
use outbound::Opening;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
pub use rhythm::Rhythm;
pub use stated::stated;
use stream::Stream;
pub use told::{Received, Reported};
use unserved::Unserved;
pub use wire::{Arrival, Cutter, FIELD_BYTES_MIN, Unreadable};
use xds::{Changes, Dialect, Name, ServerFeatures, Slot, Target, Twins, TypeUrl, Types, Update, Want};

/// The client's half of one ADS stream to one server, over all the connections that the stream takes.
///
/// It lives as long as the server is the source: the content that it holds survives the stream (G-19). Another server gets
/// another `Client`, because versions are valid only for the server that gave them (G-12).
///
/// - A, getters: [`dialect`](Self::dialect), [`wanted`](Self::wanted), [`connected`](Self::connected).
/// - B, inputs: `handle_*`. Each takes the time and returns the view's [`Changes`], to be published in order.
/// - C, commands: [`share`](Self::share); interest comes in as a [`Want`].
/// - D, outputs: [`poll_request`](Self::poll_request), to be called only when the transport takes a request, because the request
///   counts as sent (E-08, E-21); [`poll_timeout`](Self::poll_timeout), after which [`handle_timeout`](Self::handle_timeout) is
///   due and then `poll_request` again. Call both after every input.
///
/// Of one type, either the wildcard or names are wanted, never both: see [`Demand`](super::Demand).
#[derive(Debug)]
pub struct Client {
    settings: Arc<ClientSettings>,
    dialect: Dialect,
    /// Where the same content may be in memory already.
    twins: Twins,
    introduction: Introduction,
    /// The node as a field of the last request, if that has it, until `take_node` returns it.
    introduced: Option<Bytes>,
    /// Boxed: a map has room for eleven at once, and most streams have few types.
    feeds: BTreeMap<TypeUrl, Box<Feed>>,
    stream: Option<Stream>,
    received: Option<Received>,
    /// E-24: the types of which it is to be found out what clients reject, and what the server was told of that last, until somebody takes
    /// them.
    questions: BTreeSet<TypeUrl>,
    reported: Option<Reported>,
    unserved: Unserved,
    /// What is to be known of names that may silence the server, until somebody takes it.
    renamed: Renamed,
    silencers: Vec<(TypeUrl, Vec<Name>)>,
    /// The server's rhythm as other streams saw it; `seen` is what this stream saw and nobody took yet.
    rhythm: Arc<Rhythm>,
    seen: Rhythm,
    /// Whether all versions that the server is sent are its own: the stream shows whether it reads them.
    tries: bool,
}

/// What all upstream streams of a relay have in common.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The type table.
    pub types: Types,
    /// This relay's own id, for the node's metadata (K-25).
    pub relay_id: String,
    /// How long a server may take to send a name that it was asked for.
    pub does_not_exist: Duration,
    /// How long a server must be quiet before a delta wildcard counts as complete.
    pub wildcard_quiet: Duration,
    /// The server's features, from its configuration.
    pub features: ServerFeatures,
}

impl ClientSettings {
    /// How long an unknown server must usually be quiet before a delta wildcard counts as complete.
    pub const WILDCARD_QUIET: Duration = Duration::from_millis(250);
}

/// A message to the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// State of the world.
    Sotw(DiscoveryRequest),
    /// Incremental.
    Delta(DeltaDiscoveryRequest),
}

impl Client {
    /// Creates the client's half for a server that will see the relay as `node`.
    #[must_use]
    pub fn new(settings: Arc<ClientSettings>, dialect: Dialect, node: impl Into<Arc<Node>>) -> Self {
        Self::introduced(settings, dialect, Introduction::new(node.into()))
    }

    fn introduced(settings: Arc<ClientSettings>, dialect: Dialect, introduction: Introduction) -> Self {
        Self {
            settings,
            dialect,
            twins: Twins::default(),
            introduction,
            introduced: None,
            feeds: BTreeMap::new(),
            stream: None,
            received: None,
            questions: BTreeSet::new(),
            reported: None,
            unserved: Unserved::default(),
            renamed: Renamed::new(),
            silencers: Vec::new(),
            rhythm: Arc::default(),
            seen: Rhythm::default(),
            tries: false,
        }
    }

    /// Returns the dialect that the client speaks.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns whether anything is wanted that this server can be asked for, so that a stream is needed.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.wanted_in(self.dialect)
    }

    /// Returns whether anything of this type is wanted.
    #[must_use]
    pub fn wants(&self, type_url: &TypeUrl) -> bool {
        self.feeds.get(type_url).is_some_and(|feed| feed.wanted())
    }

    /// Returns whether anything is wanted that can be requested in this dialect.
    #[must_use]
    pub fn wanted_in(&self, dialect: Dialect) -> bool {
        let mut feeds = self.feeds.iter();
        feeds.any(|(type_url, feed)| feed.wanted() && self.unserved.asks(dialect, type_url))
    }

    /// Returns whether the type can be requested in the present dialect.
    fn asks(&self, type_url: &TypeUrl) -> bool {
        self.unserved.asks(self.dialect, type_url)
    }

    /// Returns whether nothing is known yet of something that is wanted and can be asked for.
    #[must_use]
    pub fn lacks(&self) -> bool {
        let mut asked = self.feeds.iter().filter(|(type_url, _)| self.asks(type_url));
        asked.any(|(_, feed)| feed.lacks())
    }

    /// Returns whether there is a stream.
    #[must_use]
    pub const fn connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Something is wanted, or not any more. The content that nobody wants is dropped.
    pub fn handle_want(&mut self, want: &Want) -> Vec<Changes> {
        let known = self.feeds.contains_key(&want.type_url);
        if !known && !want.wanted {
            return Vec::new();
        }
        let feed = self.feed(&want.type_url);
        let changes = match (&want.target, want.wanted) {
            (Target::Wildcard, true) => feed.want_wildcard(),
            (Target::Wildcard, false) => {
                feed.unwant_wildcard();
                None
            }
            (Target::Name(name), true) => forget(&want.type_url, feed.want(name, want.written.as_ref())),
            (Target::Name(name), false) => forget(&want.type_url, feed.unwant(name)),
        };
        let feed = self.feeds.get_mut(&want.type_url);
        let told = feed.and_then(|feed| self.unserved.tell(feed, want.target.name()));
        self.drop_unwanted(&want.type_url);
        changes.into_iter().chain(told).collect()
    }

    fn feed(&mut self, type_url: &TypeUrl) -> &mut Feed {
        let (patience, features) = (self.patience(type_url), self.settings.features);
        let feed = self.feeds.entry(type_url.clone());
        feed.or_insert_with(|| Box::new(Feed::new(type_url.clone(), patience, features)))
    }

    /// An earlier run of the relay held content for this target. It holds until the server sends something else; the server is
    /// not told of it. The changes are to be published as restored.
    pub fn handle_restored(&mut self, type_url: &TypeUrl, target: &Target, slot: &Slot) -> Option<Changes> {
        self.feeds.get_mut(type_url)?.restore(target, slot)
    }

    /// Returns how many resources a SotW response of this type may remove because it leaves them out.
    #[must_use]
    pub fn left_out(&self, type_url: &str) -> usize {
        if self.dialect == Dialect::Delta {
            return 0;
        }
        let type_url = self.settings.types.resolve(type_url);
        let feed = self.feeds.get(&type_url);
        feed.filter(|_| type_url.traits().full_state)
            .map_or(0, |feed| feed.count())
    }

    /// A part of an incomplete message was read at `at`.
    pub fn handle_bytes(&mut self, at: Instant) {
        self.feeds.values_mut().for_each(|feed| feed.bytes(at));
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Changes> {
        let mut changes = Vec::new();
        let due = self
            .feeds
            .values()
            .filter(|feed| feed.deadline().is_some_and(|at| at <= now));
        for type_url in due.map(|feed| feed.type_url().clone()).collect::<Vec<_>>() {
            self.note_silence(&type_url, now);
            if let Some(feed) = self.feeds.get_mut(&type_url) {
                let (changed, pause) = feed.timeout(now);
                changes.extend(changed);
                if feed.asks_clients(now) {
                    self.questions.insert(type_url.clone());
                }
                pause.into_iter().for_each(|pause| self.seen.note(&type_url, pause));
            }
        }
        changes
    }

    /// Returns the next message for the server, without [its node](Self::take_node). It counts as sent at `now`.
    pub fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.stream.as_ref()?;
        let request = self.next_request(now)?;
        let greets = self.stream.as_mut()?.greets();
        let (introduction, relay_id) = (&mut self.introduction, &self.settings.relay_id);
        self.introduced = greets.then(|| introduction.field(self.dialect, relay_id));
        Some(request)
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        let asked = || self.feeds.iter().filter(|(type_url, _)| self.asks(type_url));
        // D-08: ACKs and NACKs before everything else.
        let answer = asked().find(|(_, feed)| feed.outbound().acks().due(now));
        // E-19: a stream on which nothing is wanted is closed soon, so nothing needs to be unsubscribed.
        let change = || {
            asked()
                .find(|(_, feed)| feed.outbound().changed())
                .filter(|_| self.wanted())
        };
        let Some((type_url, _)) = answer.or_else(change) else {
            return self.greet_again().or_else(|| self.report(now));
        };
        let opened = self.feeds.values().filter_map(|feed| feed.outbound().opened());
        let last = opened.map(|first| first.place).max();
        let opening = Opening {
            // E-20: the legacy form of the wildcard, which every server knows, if it means the wildcard.
            legacy: type_url.traits().wildcard,
            place: last.map_or(0, |last| last.wrapping_add(1)),
            urges: !self.unserved.is_polled() && !self.tries,
            at: now,
        };
        let type_url = type_url.clone();
        self.feeds.get_mut(&type_url)?.request(self.dialect, opening)
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due, or when an answer that had to wait may be sent.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.feeds.values().filter_map(|feed| feed.deadline()).min()
    }

    /// Takes a response in the present dialect whose last byte was read at `now`.
    pub fn handle_response(&mut self, arrival: impl Into<Arrival>, now: Instant) -> Vec<Changes> {
        let arrival = arrival.into();
        let type_url = &self.settings.types.resolve(&arrival.type_url);
        // E-05: a response for a type that was never requested on this stream gets no answer.
        if !self.feeds.get(type_url).is_some_and(|feed| feed.outbound().is_opened()) {
            return Vec::new();
        }
        if self.dialect == Dialect::Delta {
            self.unserved = Unserved::Nothing;
        }
        let naming = self.naming(type_url);
        let Some(feed) = self.feeds.get_mut(type_url) else {
            return Vec::new();
        };
        let mut message = Message::read(arrival, self.dialect, type_url, feed.outbound().ways());
        find_twins(&mut message.entries, type_url, &self.twins);
        let valid = message.entries.len();
        let outbound = feed.outbound();
        let first = outbound.opened().filter(|_| !outbound.is_answered());
        let (changes, pause) = feed.receive(&mut message, self.dialect, now);
        self.received = Some(message.received(type_url, valid));
        if let Some(stream) = &mut self.stream {
            stream.hear(message.is_relayed());
        }
        feed.acknowledge(message.answer(), self.dialect, now);
        if let Some(Opening { place, .. }) = first {
            self.feeds.values_mut().for_each(|feed| feed.overtaken(place));
        }
        pause.into_iter().for_each(|pause| self.seen.note(type_url, pause));
        if let Some((of, before)) = naming {
            self.note_renamed(type_url, of, &before);
        }
        changes.into_iter().collect()
    }
}

fn forget(type_url: &TypeUrl, updates: Vec<Update>) -> Option<Changes> {
    (!updates.is_empty()).then(|| Changes::of((type_url.clone(), false), updates))
}
