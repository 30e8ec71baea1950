// SPDX-License-Identifier: Apache-2.0
//! What the machine has learned and others take from it, and what others have learned for it.
//!
//! Owns that each is taken once. Does not know who takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::rhythm::{Patience, Rhythm};
use super::stream::Stream;
use super::unserved::Unserved;
use super::{Client, ClientSettings, Request};
use proto::envoy::config::core::v3::Node;
use xds::{Changes, Name, Rejection, ServerWords, Twins, TypeUrl, Version};

/// The content of a response, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The type of the response.
    pub type_url: TypeUrl,
    /// How many resources were sound.
    pub valid: usize,
    /// How many were faulty.
    pub invalid: usize,
    /// F-16: how many entries and removals were ignored because they are for some clients only.
    pub ignored: usize,
}

/// What the server was told in one request of what clients reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The type.
    pub type_url: TypeUrl,
    /// The contents that clients reject. Those of the clients of a relay are not known.
    pub contents: Vec<(Name, Version)>,
    /// When it was told.
    pub at: Instant,
}

impl Client {
    /// Returns the node that the server is sent.
    #[must_use]
    pub fn node(&self) -> Node {
        self.introduction.node(&self.settings.relay_id)
    }

    /// Whether the server is told that requests come through this relay below.
    #[must_use]
    pub fn comes_through(&self, relay: &str) -> bool {
        self.introduction.comes_through(relay)
    }

    /// Returns the field of the last request with the node, once, if the request has one. All requests share the bytes.
    pub const fn take_node(&mut self) -> Option<Bytes> {
        self.introduced.take()
    }

    /// Returns the types that the server was asked for on this stream and has not answered, and since when.
    pub fn unanswered(&self) -> impl Iterator<Item = (TypeUrl, Instant)> {
        let feeds = self.feeds.values();
        feeds.filter_map(|feed| Some((feed.type_url().clone(), feed.unanswered()?)))
    }

    /// Returns what was in the last response, once.
    pub const fn take_received(&mut self) -> Option<Received> {
        self.received.take()
    }

    /// Returns what the server said about a resource, if it is held.
    #[must_use]
    pub fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        self.feed_of(type_url)?.words(name)
    }

    /// From now on, bytes that one of these has as well are kept once.
    pub fn share(&mut self, twins: Twins) {
        self.twins = twins;
    }

    /// There are new settings, for what is asked for from now on.
    pub fn handle_settings(&mut self, settings: Arc<ClientSettings>) {
        self.settings = settings;
    }

    /// Takes what was learned of the same server so far. It holds for what is requested from now on.
    pub fn handle_rhythm(&mut self, rhythm: Arc<Rhythm>) {
        self.rhythm = rhythm;
    }

    /// Takes what this stream has learned of the server, to be shared with the server's other streams.
    pub fn take_rhythm(&mut self) -> Option<Rhythm> {
        (!self.seen.is_empty()).then(|| std::mem::take(&mut self.seen))
    }

    /// Returns how long the relay waits for this server's answers for a type.
    pub(super) fn patience(&self, type_url: &TypeUrl) -> Patience {
        let round_trip = self.stream.as_ref().map_or(Duration::ZERO, Stream::round_trip);
        Patience::new(&self.settings, &self.rhythm, type_url, round_trip)
    }

    /// The server does not speak delta; `why` says how the relay knows. Every name of a delta-only type that waits gets an error,
    /// also a later one, until the server answers in delta or is asked in delta again.
    pub fn handle_no_delta(&mut self, why: &str) -> Vec<Changes> {
        self.unserved = Unserved::without_delta(why);
        let feeds = self.feeds.values_mut();
        feeds.filter_map(|feed| self.unserved.tell(feed, None)).collect()
    }

    /// The server is polled. To be called before anything is wanted. Names of a type that cannot be polled get an error.
    pub fn handle_polled(&mut self) {
        debug_assert!(self.feeds.is_empty(), "names that wait already would need the error");
        self.unserved = Unserved::of_polls();
    }

    /// Returns the wanted types that the server cannot be asked for, each with the reason.
    #[must_use]
    pub fn unserved(&self) -> BTreeMap<TypeUrl, Arc<str>> {
        let wanted = self.feeds.iter().filter(|(_, feed)| feed.wanted());
        let unserved = wanted.filter_map(|(of, _)| Some((of.clone(), self.unserved.error(of)?.message.clone())));
        unserved.collect()
    }

    /// E-24: a client has rejected something of this type.
    pub fn handle_rejected(&mut self, type_url: &TypeUrl, now: Instant) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            feed.rejected(now);
        }
    }

    /// Returns the types of which it is to be found out what clients reject, each once: see [`Self::handle_rejections`].
    pub fn take_questions(&mut self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut self.questions)
    }

    /// Takes all that clients reject of a type.
    pub fn handle_rejections(&mut self, type_url: &TypeUrl, rejections: &[Rejection]) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            feed.hear_clients(rejections);
        }
    }

    /// Returns the next request that tells the server what clients reject.
    pub(super) fn report(&mut self, now: Instant) -> Option<Request> {
        let (unserved, dialect) = (&self.unserved, self.dialect);
        let mut feeds = self.feeds.iter_mut().filter(|(_, feed)| feed.wanted());
        let (request, reported) = feeds.find_map(|(type_url, feed)| {
            let asks = unserved.asks(dialect, type_url);
            asks.then(|| feed.report(dialect, now)).flatten()
        })?;
        self.reported = Some(reported);
        Some(request)
    }

    /// Returns what the last request told the server, once.
    pub const fn take_reported(&mut self) -> Option<Reported> {
        self.reported.take()
    }
}
