//! One upstream stream: interest into requests, responses into changes.
//!
//! Owns the client's half of the protocol in both dialects. Refuses to know connections, the other stream of its view and
//! the cache.

mod acks;
mod agenda;
mod awaited;
mod collections;
mod completeness;
mod entry;
mod feed;
mod greeting;
mod ingest;
mod kept;
mod node;
mod noted;
mod outbound;
mod parted;
mod refusals;
mod rhythm;
mod stated;
mod sweep;
mod unserved;
mod ways;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acks::Ack;
use agenda::Agenda;
use feed::Feed;
use ingest::Message;
use unserved::Unserved;
use ways::Ways;

use crate::proto::envoy::config::core::v3::Node;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse};
use crate::xds::{Changes, Dialect, ServerFeatures, Slot, Target, TypeUrl, Types, Update, Want};
pub use node::come_through;
pub use noted::Received;
pub use parted::Parted;
pub use rhythm::Rhythm;
pub use stated::stated;
pub use wire::{Cutter, DeltaResponse, Unreadable, read_delta, read_sotw};

/// The client's half of one ADS stream to one server, over all the connections that it takes.
///
/// It lives as long as the server is the source: what it holds survives the stream (G-19). For another server there is
/// another one, because versions are good for the server that gave them alone (G-12).
///
/// - A, getters: [`dialect`](Self::dialect), [`wanted`](Self::wanted), [`connected`](Self::connected).
/// - B, inputs: `handle_*`. Each takes the time; what changes in the view comes back as [`Changes`], to be published in order.
/// - C, commands: none; what is wanted comes in as a [`Want`].
/// - D, outputs: [`poll_request`](Self::poll_request), to be called only when the transport takes a request, because asking
///   is sending (E-08, E-21); [`poll_timeout`](Self::poll_timeout), after which [`handle_timeout`](Self::handle_timeout) is due
///   and then `poll_request` again. Both after every input.
///
/// Of one type either the wildcard is wanted or names are, never both: see [`Demand`](super::Demand).
#[derive(Debug)]
pub struct Client {
    settings: Arc<ClientSettings>,
    dialect: Dialect,
    /// The dialect in which the server gave the versions that are held.
    versions_of: Dialect,
    node: Node,
    feeds: BTreeMap<TypeUrl, Feed>,
    agenda: Agenda,
    stream: Option<Stream>,
    received: Option<Received>,
    /// The type that the last request asked for, if it was the first of that type on the stream.
    asked: Option<TypeUrl>,
    unserved: Unserved,
    /// What others have seen of the server, and what was seen here and not taken yet.
    rhythm: Arc<Rhythm>,
    seen: Rhythm,
}

/// What all upstream streams of a relay have in common.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The type table.
    pub types: Types,
    /// This relay's own id, for the node's metadata (K-25).
    pub relay_id: String,
    /// How long a server has to send a name that it was asked for.
    pub does_not_exist: Duration,
    /// How long it must be quiet before a delta wildcard counts as complete.
    pub wildcard_quiet: Duration,
    /// What the server says of itself.
    pub features: ServerFeatures,
}

/// A message to the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// State of the world.
    Sotw(DiscoveryRequest),
    /// Incremental.
    Delta(DeltaDiscoveryRequest),
}

/// What holds for the present stream alone.
#[derive(Debug)]
struct Stream {
    node_sent: bool,
    /// How long the transport takes there and back.
    round_trip: Duration,
    /// So many types came and went that it is no longer known what the server was told of each.
    forgetful: bool,
    /// At how many types those that nobody wants are dropped.
    sweep_at: usize,
}

/// Types that nobody wants any more are remembered up to this number while the stream lasts.
const TYPES_REMEMBERED: usize = 1024;

impl Client {
    /// The machine for a server to which the relay says that it is `node`.
    #[must_use]
    pub fn new(settings: Arc<ClientSettings>, dialect: Dialect, node: Node) -> Self {
        let node = node::stamped(node, &settings.relay_id);
        Self {
            settings,
            dialect,
            versions_of: dialect,
            node,
            feeds: BTreeMap::new(),
            agenda: Agenda::default(),
            stream: None,
            received: None,
            asked: None,
            unserved: Unserved::default(),
            rhythm: Arc::default(),
            seen: Rhythm::default(),
        }
    }

    /// The dialect that it speaks.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether anything is wanted that can be asked for, so that a stream is needed.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.wanted_in(self.dialect)
    }

    /// Whether anything of that is wanted of which nothing is known.
    #[must_use]
    pub fn lacks(&self) -> bool {
        let mut asked = self.feeds.iter().filter(|(type_url, _)| self.asks(type_url));
        asked.any(|(_, feed)| feed.lacks())
    }

    /// Who it says that it is.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Whether there is a stream.
    #[must_use]
    pub const fn connected(&self) -> bool {
        self.stream.is_some()
    }

    /// From now on it speaks this dialect. Only between streams. The dialects call versions by different names, so the server is
    /// not told the other one's; they are forgotten when it answers (E-23: it may refuse this dialect).
    pub fn handle_dialect(&mut self, dialect: Dialect) {
        debug_assert!(self.stream.is_none(), "the dialect belongs to the stream");
        if std::mem::replace(&mut self.dialect, dialect) != dialect {
            self.unserved.clear();
        }
    }

    /// G-12: another server has stood in. What this one said before is kept, but it is not told so. Only between streams.
    pub fn handle_superseded(&mut self) {
        debug_assert!(self.stream.is_none(), "the versions belong to the stream");
        self.forget_versions();
    }

    fn forget_versions(&mut self) {
        self.feeds.values_mut().for_each(Feed::forget_versions);
    }

    /// Something is wanted, or no more. What is not wanted is forgotten.
    pub fn handle_want(&mut self, want: &Want) -> Vec<Changes> {
        let known = self.feeds.contains_key(&want.type_url);
        if !known && !want.wanted {
            return Vec::new();
        }
        let (patience, features) = (self.patience(&want.type_url), self.settings.features);
        let feed = self
            .feeds
            .entry(want.type_url.clone())
            .or_insert_with(|| Feed::new(want.type_url.clone(), patience, features));
        let changes = match (&want.target, want.wanted) {
            (Target::Wildcard, true) => feed.want_wildcard(),
            (Target::Wildcard, false) => {
                feed.unwant_wildcard(self.dialect);
                None
            }
            (Target::Name(name), true) => forget(&want.type_url, feed.want(name, want.written.as_ref())),
            (Target::Name(name), false) => forget(&want.type_url, feed.unwant(name)),
        };
        let told = self.tell_unserved(&want.type_url);
        self.note(&want.type_url);
        self.drop_unwanted(&want.type_url);
        changes.into_iter().chain(told).collect()
    }

    /// Something is wanted of which an earlier run of the relay knew this. What it says holds until the server says otherwise;
    /// the server is not told of it. To be published as restored.
    pub fn handle_restored(&mut self, type_url: &TypeUrl, target: &Target, slot: &Slot) -> Option<Changes> {
        self.feeds.get_mut(type_url)?.restore(target, slot)
    }

    /// A stream was opened; `round_trip` is how long its transport takes there and back.
    pub fn handle_connected(&mut self, round_trip: Duration) {
        self.stream = Some(Stream {
            node_sent: false,
            round_trip,
            forgetful: false,
            sweep_at: TYPES_REMEMBERED,
        });
        let told = self.versions_of == self.dialect;
        let all: Vec<TypeUrl> = self.feeds.keys().cloned().collect();
        for type_url in all {
            let patience = self.patience(&type_url);
            if let Some(feed) = self.feeds.get_mut(&type_url) {
                feed.connected(self.dialect, told, patience);
            }
        }
        self.note_all();
    }

    /// The stream is gone. G-19: nothing else is.
    pub fn handle_disconnected(&mut self) -> Vec<Changes> {
        self.stream = None;
        let mut changes = Vec::new();
        for (type_url, feed) in &mut self.feeds {
            if let Some(wildcard) = feed.disconnected() {
                changes.push(Changes {
                    type_url: type_url.clone(),
                    wildcard,
                    updates: Vec::new(),
                    complete: None,
                    answered: Some(false),
                });
            }
        }
        self.feeds.retain(|_, feed| feed.wanted());
        self.note_all();
        changes
    }

    /// A SotW response whose last byte was read at `received`.
    pub fn handle_sotw(&mut self, response: DiscoveryResponse, received: Instant) -> Vec<Changes> {
        let type_url = self.settings.types.resolve(&response.type_url);
        self.receive(&type_url, received, |type_url, ways| {
            Message::sotw(response, type_url, ways)
        })
    }

    /// A delta response whose last byte was read at `received`.
    pub fn handle_delta(&mut self, response: DeltaResponse, received: Instant) -> Vec<Changes> {
        let type_url = self.settings.types.resolve(&response.head.type_url);
        self.receive(&type_url, received, |type_url, ways| {
            Message::delta(response, type_url, ways)
        })
    }

    /// A part of a message that is not whole yet was read at `at`.
    pub fn handle_bytes(&mut self, at: Instant) {
        self.feeds.values_mut().for_each(|feed| feed.bytes(at));
        self.note_all();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Changes> {
        let mut changes = Vec::new();
        while let Some(type_url) = self.agenda.due(now) {
            if let Some(feed) = self.feeds.get_mut(&type_url) {
                changes.extend(feed.timeout(now));
            }
            self.note_pause(&type_url);
            self.note(&type_url);
            self.agenda.rest(&type_url, now);
        }
        changes
    }

    /// The next message for the server. It counts as sent at `now`.
    pub fn poll_request(&mut self, now: Instant) -> Option<Request> {
        let stream = self.stream.as_ref()?;
        let forgetful = stream.forgetful;
        // D-08: answers before everything else.
        let due = |of: &&TypeUrl| self.feeds.get(*of).is_some_and(|feed| feed.outbound.acks.due(now));
        let answer = self.agenda.answers().find(due);
        // E-19: a stream of which nothing is wanted is closed before long; that says all.
        let change = || self.agenda.change().filter(|_| self.wanted());
        let Some(type_url) = answer.or_else(change).cloned() else {
            return self.greet_again();
        };
        let feed = self.feeds.get_mut(&type_url)?;
        // E-20: the legacy form, which every server knows, where it means the wildcard and the type was never named.
        let legacy = type_url.traits().wildcard && !forgetful;
        let first = !feed.outbound.opened;
        let mut request = match self.dialect {
            Dialect::Sotw => Request::Sotw(feed.sotw_request(legacy, now)?),
            Dialect::Delta => Request::Delta(feed.delta_request(legacy, now)?),
        };
        self.note(&type_url);
        self.asked = first.then_some(type_url);
        self.introduce(&mut request);
        Some(request)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, or an answer that had to wait may go out.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.deadline()
    }

    fn receive(
        &mut self,
        type_url: &TypeUrl,
        now: Instant,
        read: impl FnOnce(&TypeUrl, &Ways) -> Message,
    ) -> Vec<Changes> {
        // E-05: what was never asked for on this stream gets no answer.
        if !self.feeds.get(type_url).is_some_and(|feed| feed.outbound.opened) {
            return Vec::new();
        }
        if std::mem::replace(&mut self.versions_of, self.dialect) != self.dialect {
            self.forget_versions();
        }
        if self.dialect == Dialect::Delta {
            self.unserved.clear();
        }
        let Some(feed) = self.feeds.get_mut(type_url) else {
            return Vec::new();
        };
        let message = read(type_url, &feed.outbound.ways);
        let valid = message.entries.len();
        let (changes, message) = feed.receive(message, self.dialect, now);
        self.received = Some(Received {
            type_url: type_url.clone(),
            valid,
            invalid: message.faults.count(),
        });
        let ack = Ack {
            refusal: message.faults.refusal(),
            nonce: message.nonce,
        };
        // K-06: what was accepted here is accepted; no client is waited for.
        match self.dialect {
            Dialect::Sotw => feed.outbound.received(ack, now),
            // C-02: without a nonce there is nothing to answer to.
            Dialect::Delta if ack.nonce.is_empty() => feed.unanswerable(now),
            Dialect::Delta => feed.outbound.acks.push(ack, now),
        }
        self.note_pause(type_url);
        self.note(type_url);
        changes.into_iter().collect()
    }

    fn note(&mut self, type_url: &TypeUrl) {
        if let Some(feed) = self.feeds.get(type_url) {
            let outbound = self.asks(type_url).then_some(&feed.outbound);
            self.agenda.note(type_url, outbound, feed.deadline());
        }
    }

    fn note_all(&mut self) {
        let mut agenda = Agenda::default();
        for (type_url, feed) in &self.feeds {
            let outbound = self.asks(type_url).then_some(&feed.outbound);
            agenda.note(type_url, outbound, feed.deadline());
        }
        self.agenda = agenda;
    }
}

fn forget(type_url: &TypeUrl, updates: Vec<Update>) -> Option<Changes> {
    (!updates.is_empty()).then(|| Changes {
        type_url: type_url.clone(),
        wildcard: false,
        updates,
        complete: None,
        answered: None,
    })
}
