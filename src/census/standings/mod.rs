// SPDX-License-Identifier: Apache-2.0
//! How all client streams stand, counted: who has everything, and who does not.
//!
//! Owns the counts, and that asking the streams takes at most a hundredth of the time, whoever wants to know how often. Does not say what is
//! wrong with a single stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{Census, CutOff};
use crate::answers;
use crate::clock::{self, WallClock};
use crate::inquiry::{ClientStream, ClientType, Depth, Question, StreamNumber, Whom};
use crate::xds::{TypeUrl, printable, worded};

worded! {
/// How a client stream stands as a whole: the first of these that is true of one of its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientState {
    /// It holds back something, because the client has rejected it: the client keeps what it had.
    Rejecting = "rejecting",
    /// The client has rejected something, had nothing, and was sent older content.
    Older = "older",
    /// It was sent a response more than ten seconds ago, and has not answered it.
    Lagging = "lagging",
    /// It has waited for more than ten seconds for what nobody has answered.
    Waiting = "waiting",
    /// The client has accepted everything, or was sent something a moment ago.
    Current = "current",
}
}

/// How all client streams stood at one time. Each stream is counted once: in its [`ClientState`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standings {
    /// [`ClientState::Rejecting`].
    pub rejecting: usize,
    /// [`ClientState::Older`].
    pub older: usize,
    /// [`ClientState::Lagging`].
    pub lagging: usize,
    /// [`ClientState::Waiting`].
    pub waiting: usize,
    /// How many clients have waited for as long and have no stream at present, because their last one ended unanswered.
    pub away: usize,
    /// [`ClientState::Current`].
    pub current: usize,
    /// Who hung and was cut off in the last ten minutes, the last one first.
    pub hung: Vec<(String, CutOff)>,
    /// The streams by type. A stream counts for each of its types.
    pub types: BTreeMap<TypeUrl, TypeStandings>,
}

/// The streams of one type that are not up to date. Who rejects something is in the table of the views, not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeStandings {
    /// As in [`Standings::lagging`].
    pub lagging: usize,
    /// As in [`Standings::waiting`] and [`Standings::away`].
    pub waiting: usize,
}

/// The last counts, and whose turn it is to count anew.
pub(super) struct LastStandings {
    turn: Semaphore,
    last: Mutex<Option<LastRound>>,
}

/// The last round of questions.
struct LastRound {
    counts: Arc<Standings>,
    /// Until when its counts are good enough.
    fresh: Instant,
}

/// A client that has not answered for this long does not keep up.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many of those that hung are named.
const NAMED_MAX: usize = 10;
/// How old the counts may be: so many times as long as the round of questions took, within these bounds.
const FRESH_ROUNDS: u32 = 100;
const FRESH_MIN: Duration = Duration::from_secs(1);
const FRESH_MAX: Duration = Duration::from_secs(10);

impl Default for LastStandings {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            last: Mutex::default(),
        }
    }
}

impl Census {
    /// Returns how many clients have waited for more than ten seconds and have no stream, because their last one ended unanswered.
    pub fn away(&self) -> usize {
        self.unserved().after(PATIENCE, clock::now()).len()
    }

    /// Returns by type how many client streams reject something and keep what they had, and how many were sent older content in the place of
    /// all that they reject.
    pub fn rejecting(&self) -> BTreeMap<TypeUrl, [usize; 2]> {
        let mut streams: BTreeMap<(TypeUrl, StreamNumber), bool> = BTreeMap::new();
        for view in self.views() {
            view.rejected().each(|type_url, stream, older| {
                *streams.entry((type_url.clone(), stream)).or_insert(true) &= older;
            });
        }
        let mut counts: BTreeMap<TypeUrl, [usize; 2]> = BTreeMap::new();
        for ((type_url, _), older) in streams {
            let [own, sent] = counts.entry(type_url).or_default();
            *(if older { sent } else { own }) += 1;
        }
        counts
    }

    /// Returns how all client streams stand now, or stood a moment ago: less than a second in a small fleet, less than ten in any.
    pub async fn standings(&self) -> Arc<Standings> {
        // The semaphore is never closed.
        let _turn = self.standings.turn.acquire().await;
        if let Some(last) = self.standings.fresh() {
            return last;
        }
        let begun = clock::now();
        let mut counts = Standings::default();
        let mut round = self.ask(Question {
            whom: Whom::default(),
            depth: Depth::Types,
        });
        while let Some(stream) = round.next().await {
            counts.add(&stream, clock::now());
        }
        let away = self.unserved().after(PATIENCE, clock::now());
        away.iter().for_each(|type_url| counts.add_away(type_url));
        counts.hung = self.hung().all(clock::now());
        let counts = Arc::new(counts);
        let now = clock::now();
        let took = now.saturating_duration_since(begun);
        *self.standings.last.lock() = Some(LastRound {
            counts: counts.clone(),
            fresh: now + (took * FRESH_ROUNDS).clamp(FRESH_MIN, FRESH_MAX),
        });
        counts
    }
}

impl ClientState {
    /// Returns how a stream stands.
    #[must_use]
    pub fn of(stream: &ClientStream, now: Instant) -> Self {
        let types = stream.types.iter().map(|one| Self::of_type(one, now));
        types.min().unwrap_or(Self::Current)
    }

    fn of_type(one: &ClientType, now: Instant) -> Self {
        let older = !one.rejected.is_empty() && one.rejected.iter().all(|one| one.older.is_some());
        match TypeStandings::of(one, now) {
            _ if !one.objections.is_empty() && !older => Self::Rejecting,
            _ if older => Self::Older,
            TypeStandings { lagging: 1.., .. } => Self::Lagging,
            TypeStandings { waiting: 1.., .. } => Self::Waiting,
            TypeStandings { .. } => Self::Current,
        }
    }
}

impl LastStandings {
    fn fresh(&self) -> Option<Arc<Standings>> {
        let last = self.last.lock();
        let round = last.as_ref()?;
        (clock::now() < round.fresh).then(|| round.counts.clone())
    }
}

impl Standings {
    /// Returns how many streams there are.
    pub const fn streams(&self) -> usize {
        self.rejecting + self.older + self.lagging + self.waiting + self.current
    }

    /// Returns the counts in words: `192 of 200 streams are up to date; 8 have not answered for over 10 s`.
    pub fn words(&self) -> String {
        let be = if self.streams() == 1 {
            "stream is"
        } else {
            "streams are"
        };
        let mut words = format!("{} of {} {be} up to date", self.current, self.streams());
        let parts = [
            (self.rejecting, "rejects something", "reject something"),
            (
                self.older,
                "was sent older content in the place of what it rejects",
                "were sent older content in the place of what they reject",
            ),
            (
                self.lagging,
                "has not answered a response for over 10 s",
                "have not answered a response for over 10 s",
            ),
            (
                self.waiting,
                "waits for over 10 s for what nobody has answered",
                "wait for over 10 s for what nobody has answered",
            ),
            (
                self.away,
                "more client waits as long and has no stream now: its last one ended unanswered",
                "more clients wait as long and have no stream now: their last ones ended unanswered",
            ),
            (
                self.hung.len(),
                "hung and was cut off in the last 10 min",
                "hung and were cut off in the last 10 min",
            ),
        ];
        for (count, one, several) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            let what = if count == 1 { one } else { several };
            words.push_str(&format!("; {count} {what}"));
        }
        if !self.hung.is_empty() {
            let names: Vec<_> = self
                .hung
                .iter()
                .take(NAMED_MAX)
                .map(|(name, _)| printable(name))
                .collect();
            words.push_str(&format!(": {}", names.join(", ")));
        }
        words
    }

    /// Returns how many clients hang: those that lag, and those that were cut off for it.
    pub fn hanging(&self) -> usize {
        let lagging = self.types.values().map(|of| of.lagging).max();
        lagging.unwrap_or_default() + self.hung.len()
    }

    /// Returns the counts over all types.
    pub(crate) fn answer(&self, clock: WallClock) -> answers::StandingCounts {
        let hung = self
            .hung
            .iter()
            .take(NAMED_MAX)
            .map(|(name, CutOff { at, why })| answers::HungClient {
                name: name.clone(),
                at: clock.time(*at),
                why: (*why).to_owned(),
            });
        answers::StandingCounts {
            streams: self.streams(),
            up_to_date: self.current,
            rejecting: self.rejecting,
            older: self.older,
            lagging: self.lagging,
            waiting: self.waiting,
            away: self.away,
            hung: self.hung.len(),
            hung_clients: hung.collect(),
            why: self.words(),
        }
    }

    fn add(&mut self, stream: &ClientStream, now: Instant) {
        for one in &stream.types {
            let found = TypeStandings::of(one, now);
            self.types.entry(one.type_url.clone()).or_default().add(found);
        }
        let place = match ClientState::of(stream, now) {
            ClientState::Rejecting => &mut self.rejecting,
            ClientState::Older => &mut self.older,
            ClientState::Lagging => &mut self.lagging,
            ClientState::Waiting => &mut self.waiting,
            ClientState::Current => &mut self.current,
        };
        *place += 1;
    }

    fn add_away(&mut self, type_url: &TypeUrl) {
        self.away += 1;
        self.types
            .entry(type_url.clone())
            .or_default()
            .add(TypeStandings::WAITS);
    }
}

impl TypeStandings {
    const WAITS: Self = Self { lagging: 0, waiting: 1 };

    fn of(one: &ClientType, now: Instant) -> Self {
        let long = |since: Option<Instant>| since.is_some_and(|since| now.saturating_duration_since(since) >= PATIENCE);
        Self {
            lagging: usize::from(long(one.unanswered_since)),
            waiting: usize::from(long(one.waiting_since)),
        }
    }

    const fn add(&mut self, other: Self) {
        self.lagging += other.lagging;
        self.waiting += other.waiting;
    }
}

#[cfg(test)]
mod tests;
