// SPDX-License-Identifier: Apache-2.0
//! The client streams in a stable order: those in trouble first, the worst before all others, then by node and number.
//!
//! Owns the order, and that little is kept for it: the streams are asked twice, all of them where they stand, and then, some at a time,
//! what is shown of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::census::{Census, ClientState};
use crate::classes::Node;
use crate::clock;
use crate::inquiry::{ClientStream, Depth, Question, StreamNumber, Whom};

/// The streams in order.
pub(super) struct Ordered {
    census: Census,
    whom: Whom,
    state: Option<ClientState>,
    by: Option<Sort>,
    room: usize,
    /// Where those stand that are still to be shown; none before all were asked.
    places: Option<std::vec::IntoIter<Rank>>,
    /// Those that are shown next.
    shown: std::vec::IntoIter<(ClientState, ClientStream)>,
    more: bool,
    late: usize,
}

/// By what else streams are ordered: who has sent most is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    Requests,
    RequestBytes,
}

/// Where a stream stands in the order.
struct Rank {
    /// How much it has sent, if that is the order.
    sent: u64,
    state: ClientState,
    node: Arc<Node>,
    number: StreamNumber,
}

/// How many streams are asked at a time what is shown of them.
const AT_ONCE: usize = 1024;

impl Ordered {
    /// Those of `whom` that are in this state, if one is given; at most `room` of them.
    pub(super) fn new(
        census: Census,
        (whom, state): (Whom, Option<ClientState>),
        by: Option<Sort>,
        room: usize,
    ) -> Self {
        Self {
            census,
            whom,
            state,
            by,
            room,
            places: None,
            shown: Vec::new().into_iter(),
            more: false,
            late: 0,
        }
    }

    /// Returns the next stream. One that has ended meanwhile is left out.
    pub(super) async fn next(&mut self) -> Option<(ClientState, ClientStream)> {
        let mut places = match self.places.take() {
            Some(places) => places,
            None => self.ordered().await,
        };
        let next = loop {
            if let Some(next) = self.shown.next() {
                break Some(next);
            }
            let some: Vec<Rank> = places.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                break None;
            }
            self.shown = self.of(&some).await.into_iter();
        };
        self.places = Some(places);
        next
    }

    /// Whether there are more than were asked for.
    pub(super) const fn more(&self) -> bool {
        self.more
    }

    /// Returns how many streams did not answer in time.
    pub(super) const fn late(&self) -> usize {
        self.late
    }

    /// Asks all streams where they stand.
    async fn ordered(&mut self) -> std::vec::IntoIter<Rank> {
        let mut round = self.census.ask(Question {
            whom: self.whom.clone(),
            depth: Depth::Types,
        });
        let mut places = Vec::new();
        while let Some(stream) = round.next().await {
            let state = ClientState::of(&stream, clock::now());
            if self.state.is_none_or(|asked| asked == state) {
                let sent = match self.by {
                    None => 0,
                    Some(Sort::Requests) => stream.requests,
                    Some(Sort::RequestBytes) => stream.request_bytes,
                };
                let (node, number) = (stream.node, stream.number);
                places.push(Rank {
                    sent,
                    state,
                    node,
                    number,
                });
            }
        }
        places.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
        self.late += round.late();
        self.more = places.len() > self.room;
        places.truncate(self.room);
        places.into_iter()
    }

    /// Returns these streams in their order.
    async fn of(&mut self, places: &[Rank]) -> Vec<(ClientState, ClientStream)> {
        let numbers = places.iter().map(|place| place.number).collect();
        let whom = Whom {
            streams: Some(Arc::new(numbers)),
            type_url: self.whom.type_url.clone(),
            ..Whom::default()
        };
        let depth = Depth::Types;
        let mut round = self.census.ask(Question { whom, depth });
        let mut found = BTreeMap::new();
        while let Some(stream) = round.next().await {
            found.insert(stream.number, stream);
        }
        self.late += round.late();
        let there = places
            .iter()
            .filter_map(|place| Some((place.state, found.remove(&place.number)?)));
        there.collect()
    }
}

impl Rank {
    fn order(&self) -> (Reverse<u64>, ClientState, &str, StreamNumber) {
        (Reverse(self.sent), self.state, &self.node.id, self.number)
    }
}
