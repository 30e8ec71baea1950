// SPDX-License-Identifier: Apache-2.0
//! The present stream: its beginning and its end, who was greeted, what was asked for in which order, and what may be forgotten.
//!
//! Owns what ends with the stream. Knows nothing of connections and of content.

use std::collections::BTreeMap;
use std::time::Duration;

use super::doubt::Doubt;
use super::rhythm::Patience;
use super::unserved::Unserved;
use super::{Client, Request};
use xds::{Changes, Dialect, TypeUrl};

/// State that belongs to the present stream alone.
#[derive(Debug, Default)]
pub(super) struct Stream {
    node_sent: bool,
    /// Whether another relay is at the other end.
    relayed: bool,
    /// How long the transport takes for a round trip.
    round_trip: Duration,
    /// From this number of types on, those that nobody wants are dropped.
    sweep_at: usize,
    /// Questions that the server has passed over, by types, until somebody takes them.
    passed_over: BTreeMap<TypeUrl, Doubt>,
}

/// While the stream lasts, up to this number of types that nobody wants is kept.
const TYPES_REMEMBERED: usize = 1024;

impl Stream {
    /// A request is sent. E-01: each has the node, because some control planes look at that of each. A relay remembers it. Returns whether
    /// this one has it.
    pub(super) const fn greets(&mut self) -> bool {
        !std::mem::replace(&mut self.node_sent, true) || !self.relayed
    }

    /// How long the transport takes for a round trip.
    pub(super) const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The server has answered; `relayed`: another relay is at the other end.
    pub(super) const fn hear(&mut self, relayed: bool) {
        self.relayed = relayed;
    }

    /// Whether another relay is at the other end, as far as is known.
    pub(super) const fn is_relayed(&self) -> bool {
        self.relayed
    }

    /// The server has passed over this question.
    pub(super) fn note_passed_over(&mut self, doubt: Doubt) {
        self.passed_over.insert(doubt.type_url().clone(), doubt);
    }

    /// Takes a question that was passed over.
    pub(super) fn take_passed_over(&mut self) -> Option<Doubt> {
        self.passed_over.pop_first().map(|(_, doubt)| doubt)
    }
}

impl Client {
    /// Changes the dialect. To be called only between streams. The two dialects have different versions, so the server is not
    /// sent those of the other dialect.
    pub fn handle_dialect(&mut self, dialect: Dialect) {
        debug_assert!(self.stream.is_none(), "the dialect belongs to the stream");
        if std::mem::replace(&mut self.dialect, dialect) != dialect {
            self.unserved = Unserved::Nothing;
        }
    }

    /// G-12: another server has stood in for this one. The content from this server is kept, but the server is not sent its
    /// versions. To be called only between streams.
    pub fn handle_superseded(&mut self) {
        debug_assert!(self.stream.is_none(), "the versions belong to the stream");
        self.feeds.values_mut().for_each(|feed| feed.forget_versions());
    }

    /// A stream was opened; `round_trip` is how long its transport takes for a round trip.
    pub fn handle_connected(&mut self, round_trip: Duration) {
        self.stream = Some(Stream {
            round_trip,
            sweep_at: TYPES_REMEMBERED,
            ..Stream::default()
        });
        for (type_url, feed) in &mut self.feeds {
            let patience = Patience::new(&self.settings, &self.rhythm, type_url, round_trip);
            feed.connected(self.dialect, patience);
        }
    }

    /// The stream ended. G-19: everything else stays.
    pub fn handle_disconnected(&mut self) -> Vec<Changes> {
        self.stream = None;
        self.silencers.clear();
        let changes = self.feeds.values_mut().filter_map(|feed| feed.disconnected()).collect();
        self.feeds.retain(|_, feed| feed.wanted());
        changes
    }

    /// K-25: these relays ask through this one, so another relay is sent the node again on the present stream.
    pub fn handle_relays(&mut self, relays: Vec<String>) {
        self.introduction.come_through(relays);
        self.stream.iter_mut().for_each(|stream| stream.node_sent = false);
    }

    /// K-25: returns a request with nothing but the changed node. C-04: it changes no subscription. SotW has no such request: there it is the
    /// last one of a type once more.
    pub(super) fn greet_again(&self) -> Option<Request> {
        if self.stream.as_ref()?.node_sent || self.unserved.is_polled() {
            return None;
        }
        let mut opened = self.feeds.iter().filter(|(_, feed)| feed.outbound().is_opened());
        let (type_url, feed) = match self.dialect {
            // A server might answer a question once more.
            Dialect::Sotw => opened
                .filter(|(_, feed)| feed.outbound().may_repeat())
                .max_by_key(|(_, feed)| feed.outbound().is_answered())?,
            Dialect::Delta => opened.next()?,
        };
        Some(feed.outbound().again(type_url, self.dialect, None))
    }

    /// Drops types that nobody wants, so that a client that invents types without end does not fill this table.
    pub(super) fn drop_unwanted(&mut self, last: &TypeUrl) {
        let Some(stream) = &mut self.stream else {
            if self.feeds.get(last).is_some_and(|feed| !feed.wanted()) {
                self.feeds.remove(last);
            }
            return;
        };
        if self.feeds.len() > stream.sweep_at {
            self.feeds.retain(|_, feed| feed.is_needed());
            stream.sweep_at = TYPES_REMEMBERED.max(self.feeds.len() * 2);
        }
    }
}
