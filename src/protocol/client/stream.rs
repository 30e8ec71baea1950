//! The beginning and the end of a stream.
//!
//! Owns what ends with the stream. Knows nothing of connections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Client;
use super::silence::PassedOver;
use super::sweep::TYPES_REMEMBERED;
use xds::{Changes, TypeUrl};

/// State that belongs to the present stream alone.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) node_sent: bool,
    /// Whether another relay is at the other end.
    pub(super) relayed: bool,
    /// When the server has last answered for any type.
    pub(super) heard: Option<Instant>,
    /// How long the transport takes for a round trip.
    pub(super) round_trip: Duration,
    /// The number of first requests so far.
    pub(super) requested: u32,
    /// Types were dropped on this stream, so it is not known any more whether the server was asked for a new type before.
    pub(super) forgetful: bool,
    /// From this number of types on, those that nobody wants are dropped.
    pub(super) sweep_at: usize,
    /// Types of which the first answer has left names out, and it is not known what that means.
    pub(super) unsure: BTreeSet<TypeUrl>,
    /// Questions that the server has passed over, until somebody takes them.
    pub(super) passed_over: BTreeMap<TypeUrl, PassedOver>,
}

impl Client {
    /// A stream was opened; `round_trip` is how long its transport takes for a round trip.
    pub fn handle_connected(&mut self, round_trip: Duration) {
        self.stream = Some(Stream {
            round_trip,
            sweep_at: TYPES_REMEMBERED,
            ..Stream::default()
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

    /// The stream ended. G-19: everything else stays.
    pub fn handle_disconnected(&mut self) -> Vec<Changes> {
        self.stream = None;
        self.silencers.clear();
        let changes = self.feeds.values_mut().filter_map(|feed| feed.disconnected()).collect();
        self.feeds.retain(|_, feed| feed.wanted());
        self.note_all();
        changes
    }
}
