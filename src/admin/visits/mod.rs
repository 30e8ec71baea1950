// SPDX-License-Identifier: Apache-2.0
//! Who is connected to an address, and for whom the relay waits.
//!
//! Owns the bounds: how many connections and answers there are, and how long a visitor may keep the relay waiting. Whoever keeps it
//! waiting longest gives way to a newcomer. Knows no sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, AbortRegistration};
use parking_lot::Mutex;

use crate::clock;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisitorRoom {
    /// Connections.
    connections: usize,
    /// Answers that are made or sent; those to probes do not count.
    answers: usize,
}

/// The visits to one address.
#[derive(Debug)]
pub(super) struct Visits {
    room: VisitorRoom,
    known: Mutex<BTreeMap<u64, Visitor>>,
}

/// One connection.
#[derive(Debug)]
struct Visitor {
    ends: AbortHandle,
    /// Whether it was told to end.
    ended: bool,
    /// When it came, or had its last answer.
    since: Instant,
    /// How long it may be without a request.
    patience: Duration,
    requests: BTreeMap<u64, VisitorRequest>,
}

#[derive(Debug)]
struct VisitorRequest {
    /// Whether it counts as an answer.
    counts: bool,
    /// How large the answer is, if it is in memory as a whole.
    bytes: usize,
    waits: Option<VisitorWait>,
}

/// Since when the relay waits for the client, and how long it does.
#[derive(Clone, Copy, Debug)]
struct VisitorWait {
    since: Instant,
    patience: Duration,
}

/// A connection that is open. Dropping it ends the visit.
#[derive(Debug)]
pub(super) struct VisitorPresence {
    visits: Arc<Visits>,
    number: u64,
}

/// A request from its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Answering {
    presence: Arc<VisitorPresence>,
    number: u64,
}

/// The most requests for which an address has room. At most every other connection is one that the relay works for, so that another
/// one can give way.
const ANSWERS_MAX: usize = 64;
/// How many bytes of large answers there may be at a time. A larger one is alone.
const BYTES_MAX: usize = 32 << 20;
/// How long a connection may take for its first request...
const FIRST: Duration = Duration::from_secs(10);
/// ... for the body of a request...
const BODY: Duration = Duration::from_secs(10);
/// ... for the next request...
const NEXT: Duration = Duration::from_secs(60);
/// ... and to take what is sent.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a stream may be without a question.
const STREAM: Duration = Duration::from_secs(600);

impl VisitorRoom {
    /// Room for so many connections.
    pub(super) fn new(connections: usize) -> Self {
        Self {
            connections,
            answers: ANSWERS_MAX.min(connections / 2),
        }
    }
}

impl Visits {
    pub(super) fn new(room: VisitorRoom) -> Arc<Self> {
        Arc::new(Self {
            room,
            known: Mutex::default(),
        })
    }

    /// Whether a connection may be accepted: if there is no room, the relay waits for the client of another one.
    pub(super) fn may_enter(&self) -> bool {
        let known = self.known.lock();
        let staying = || known.values().filter(|visit| !visit.ended);
        staying().count() < self.room.connections || staying().any(|visit| visit.waits_since().is_some())
    }

    /// A connection begins. If there is no room, another one ends.
    pub(super) fn enter(self: &Arc<Self>, now: Instant) -> (Arc<VisitorPresence>, AbortRegistration) {
        let (ends, registration) = AbortHandle::new_pair();
        let mut known = self.known.lock();
        if known.values().filter(|visit| !visit.ended).count() >= self.room.connections {
            end_longest(&mut known, |_| true);
        }
        let number = known.last_key_value().map_or(0, |(last, _)| last + 1);
        let visit = Visitor {
            ends,
            ended: false,
            since: now,
            patience: FIRST,
            requests: BTreeMap::new(),
        };
        known.insert(number, visit);
        let visits = self.clone();
        (Arc::new(VisitorPresence { visits, number }), registration)
    }

    /// Ends all that have kept the relay waiting for too long.
    pub(super) fn end_overdue(&self, now: Instant) {
        let mut known = self.known.lock();
        for visit in known.values_mut().filter(|visit| visit.is_overdue(now)) {
            visit.end();
        }
    }

    /// Returns whether another answer may begin. If there is no room, the visit ends that takes its answers most slowly.
    fn makes_room(&self) -> bool {
        let mut known = self.known.lock();
        let staying = known.values().filter(|visit| !visit.ended);
        staying.map(Visitor::answers).sum::<usize>() < self.room.answers
            || end_longest(&mut known, |visit| visit.answers() > 0)
    }

    /// Returns whether an answer of so many bytes has room, to a request that is not counted yet with that. Visits end that take
    /// large answers slowly.
    fn makes_room_of(&self, bytes: usize) -> bool {
        let mut known = self.known.lock();
        loop {
            let staying = known.values().filter(|visit| !visit.ended);
            let held = staying.map(Visitor::bytes).sum::<usize>();
            if held == 0 || held.saturating_add(bytes) <= BYTES_MAX {
                return true;
            }
            if !end_longest(&mut known, |visit| visit.bytes() > 0) {
                return false;
            }
        }
    }

    fn with<T>(&self, number: u64, change: impl FnOnce(&mut Visitor) -> T) -> Option<T> {
        self.known.lock().get_mut(&number).map(change)
    }
}

/// Ends the one of the chosen visits for which the relay has waited longest. Returns whether there is one.
fn end_longest(known: &mut BTreeMap<u64, Visitor>, chosen: impl Fn(&Visitor) -> bool) -> bool {
    let waiting = known.values_mut().filter(|visit| !visit.ended && chosen(visit));
    let waiting = waiting.filter_map(|visit| Some((visit.waits_since()?, visit)));
    match waiting.min_by_key(|(since, _)| *since) {
        Some((_, visit)) => visit.end(),
        None => return false,
    }
    true
}

impl Visitor {
    fn answers(&self) -> usize {
        self.requests.values().filter(|request| request.counts).count()
    }

    fn bytes(&self) -> usize {
        self.requests.values().map(|request| request.bytes).sum()
    }

    /// Returns since when the relay does nothing but wait for the client.
    fn waits_since(&self) -> Option<Instant> {
        let mut latest = None;
        for request in self.requests.values() {
            latest = latest.max(Some(request.waits?.since));
        }
        Some(latest.unwrap_or(self.since))
    }

    fn is_overdue(&self, now: Instant) -> bool {
        let over = |wait: VisitorWait| now.saturating_duration_since(wait.since) >= wait.patience;
        let idle = VisitorWait {
            since: self.since,
            patience: self.patience,
        };
        self.requests.is_empty() && over(idle) || self.requests.values().any(|one| one.waits.is_some_and(over))
    }

    fn end(&mut self) {
        self.ended = true;
        self.ends.abort();
    }
}

impl VisitorPresence {
    /// A request begins: its head is there. Returns nothing if there is no room for its answer.
    pub(super) fn request(self: &Arc<Self>, counts: bool, now: Instant) -> Option<Answering> {
        if counts && !self.visits.makes_room() {
            return None;
        }
        let wait = VisitorWait {
            since: now,
            patience: BODY,
        };
        let number = self.visits.with(self.number, |visit| {
            let number = visit.requests.last_key_value().map_or(0, |(last, _)| last + 1);
            let request = VisitorRequest {
                counts,
                bytes: 0,
                waits: Some(wait),
            };
            visit.requests.insert(number, request);
            number
        })?;
        Some(Answering {
            presence: self.clone(),
            number,
        })
    }
}

impl Drop for VisitorPresence {
    fn drop(&mut self) {
        self.visits.known.lock().remove(&self.number);
    }
}

impl Answering {
    /// The relay works on the answer.
    pub(super) fn works(&self) {
        self.set(None);
    }

    /// The answer is there, and has so many bytes. Returns whether there is room for them.
    pub(super) fn weighs(&self, bytes: usize) -> bool {
        let Self { presence, number } = self;
        let room = presence.visits.makes_room_of(bytes);
        if room {
            let set = |visit: &mut Visitor| visit.requests.get_mut(number).map(|request| request.bytes = bytes);
            let _ = presence.visits.with(presence.number, set);
        }
        room
    }

    /// Something was sent, and the client has to take it.
    pub(super) fn sent(&self, now: Instant) {
        self.set(Some(VisitorWait {
            since: now,
            patience: ANSWER,
        }));
    }

    /// The client may ask something more.
    pub(super) fn listens(&self, now: Instant) {
        self.set(Some(VisitorWait {
            since: now,
            patience: STREAM,
        }));
    }

    fn set(&self, waits: Option<VisitorWait>) {
        let set = |visit: &mut Visitor| {
            visit
                .requests
                .get_mut(&self.number)
                .map(|request| request.waits = waits)
        };
        let _ = self.presence.visits.with(self.presence.number, set);
    }

    /// The answer has ended.
    fn end(&self, now: Instant) {
        let end = |visit: &mut Visitor| {
            visit.requests.remove(&self.number);
            (visit.since, visit.patience) = (now, NEXT);
        };
        let _ = self.presence.visits.with(self.presence.number, end);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.end(clock::now());
    }
}

#[cfg(test)]
mod tests;
