// SPDX-License-Identifier: Apache-2.0
//! What the relay and the server say to each other about one type on the present stream, and when.
//!
//! Owns how long the relay waits, since when a question waits (E-27), and what the server's words are a part of (D-10). Knows nothing of
//! content.

use std::time::{Duration, Instant};

use crate::client::ingest::Message;
use xds::{Kind, Phase, ServerWords};

/// The exchange about one type.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// How long the server may take to answer for a name.
    patience: Duration,
    /// When the server was heard last on this stream.
    heard: Option<Instant>,
    /// Since when a question about something that nothing is known of waits.
    asked: Option<Instant>,
    /// SotW: the question that the server is made to answer.
    pressing: Option<Box<Pressing>>,
    /// SotW: the server has shown on this stream that it answers even if a name does not exist.
    answers_all: bool,
    /// What the changes are a part of.
    phase: Phase,
    /// When the first whole state is over at the latest, once the server has answered on this stream.
    first_until: Option<Instant>,
    /// The nonce of the last response, on whichever stream.
    nonce: String,
    /// What the server called itself in it.
    identifier: String,
}

/// A question that the server is made to answer.
#[derive(Debug)]
struct Pressing {
    since: Instant,
    /// When to look at it again.
    due: Instant,
    /// Whether the server was asked once more.
    again: bool,
    /// Whether an earlier list may still be answered instead.
    grown: bool,
}

/// What follows from silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Silence {
    /// The server is asked once more.
    First,
    /// E-27: the names silence it.
    Total,
}

/// E-25: a type counts as silent so long after the question and the last answer of any type, and so long after the question if there is
/// none, or if answers of other types do not end.
const SILENT: Duration = Duration::from_secs(10);
const UNHEARD: Duration = Duration::from_secs(30);

impl Pressing {
    fn new(again: bool, grown: bool, now: Instant) -> Self {
        Self {
            since: now,
            due: now + SILENT,
            again,
            grown,
        }
    }

    fn ends(&self, heard: Option<Instant>) -> Instant {
        let latest = self.since + UNHEARD;
        heard.map_or(latest, |heard| (heard.max(self.since) + SILENT).min(latest))
    }
}

/// D-10: how long after the first answer for a type the server's first whole state is over at the latest. A server is made to answer
/// (E-04, E-25), and some do half a minute after all else. If it does not answer at all, what comes after `UNANSWERED` is meant.
/// Endpoints change often, so their first state is the shorter one.
const FIRST_STATE: Duration = Duration::from_secs(30);
const FIRST_ENDPOINTS: Duration = Duration::from_secs(10);
pub(crate) const UNANSWERED: Duration = Duration::from_secs(5 * 60);

impl Exchange {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            phase: Phase::First,
            ..Self::default()
        }
    }

    /// A stream begins. `declares`: the server is sent the versions of what it gave.
    pub(super) const fn connected(&mut self, patience: Duration, declares: bool) {
        self.patience = patience;
        self.phase = if declares { Phase::First } else { Phase::Anew };
        self.first_until = None;
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        self.heard = None;
        self.asked = None;
        self.pressing = None;
        self.answers_all = false;
    }

    /// Returns until when a server that is asked now may take to answer for a name.
    pub(super) fn time_to_answer(&self, now: Instant) -> Instant {
        now + self.patience
    }

    /// The server was asked for something of which nothing is known.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    /// SotW: the server was asked for names that are new, or anew for what is held. `known`: it may say that it has nothing new, so it
    /// is asked once more before it counts as silenced. `first`: it was asked for nothing of the type before, on this stream.
    pub(super) fn press(&mut self, known: bool, first: bool, now: Instant) {
        match &mut self.pressing {
            Some(pressing) => pressing.grown = true,
            None if self.answers_all => {}
            None => self.pressing = Some(Box::new(Pressing::new(!known, !first, now))),
        }
    }

    /// The time of the pressing question may have come. `heard`: when the server has last answered for any type of this stream;
    /// `spread`: how much later this view asks than others.
    pub(super) fn take_silence(&mut self, heard: Option<Instant>, spread: Duration, now: Instant) -> Option<Silence> {
        let pressing = self.pressing.as_mut().filter(|pressing| pressing.due <= now)?;
        pressing.due = pressing.ends(heard) + spread;
        if pressing.due > now {
            return None;
        }
        if pressing.again {
            self.pressing = None;
            return Some(Silence::Total);
        }
        **pressing = Pressing::new(true, false, now);
        Some(Silence::First)
    }

    /// SotW: a response was read, after which perhaps some names are still unanswered. If it is `faulty`, or may be the answer to an earlier
    /// list, they may silence the server all the same. Else, had the server been asked for them before it was asked once more, it has shown
    /// that they do not.
    pub(super) fn relax(&mut self, faulty: bool, lacks: impl FnOnce() -> bool, now: Instant) {
        if let Some(pressing) = self.pressing.take().filter(|_| lacks()) {
            let open = (pressing.grown || faulty).then(|| Box::new(Pressing::new(false, false, now)));
            self.answers_all |= pressing.again && open.is_none();
            self.pressing = open;
        }
    }

    /// A response came.
    pub(super) fn hear(&mut self, message: &Message, kind: Kind, now: Instant) {
        if self.heard.replace(now).is_none() {
            let lasts = if kind.is_endpoints() {
                FIRST_ENDPOINTS
            } else {
                FIRST_STATE
            };
            self.first_until = Some(now + lasts);
        }
        self.asked = None;
        self.nonce.clone_from(&message.nonce);
        self.identifier.clone_from(&message.identifier);
        if message.is_relayed() {
            self.phase = Phase::Relayed;
        }
    }

    pub(super) const fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Returns what the server said last, about a resource with this version of its own.
    pub(super) fn words(&self, version: &str) -> ServerWords {
        ServerWords {
            version: version.into(),
            nonce: self.nonce.as_str().into(),
            identifier: self.identifier.as_str().into(),
        }
    }

    /// Returns when the server has passed over a question.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let asked = self.asked.map(|asked| self.time_to_answer(asked));
        let pressing = self.pressing.as_ref().map(|pressing| pressing.due);
        asked.into_iter().chain(pressing).min()
    }

    /// E-27: takes the last question, if the server has passed over it for as long as it may take for a name.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Option<Instant> {
        let patience = self.patience;
        self.asked.take_if(|asked| *asked + patience <= now)
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the first whole state is not over.
    pub(super) const fn is_first(&self) -> bool {
        matches!(self.phase, Phase::First | Phase::Anew)
    }

    /// D-10: the time of the first whole state may be over. The server was first asked for the type on this stream when that was `opened`.
    pub(super) fn pass(&mut self, opened: Option<Instant>, now: Instant) {
        let until = opened.map(|at| at + UNANSWERED).into_iter().chain(self.first_until);
        if self.is_first() && until.min().is_some_and(|until| until <= now) {
            self.phase = Phase::Steady;
        }
    }

    /// D-10: the first whole state ends with the changes that are told next.
    pub(super) const fn conclude(&mut self) {
        self.phase = Phase::Last;
    }

    /// The changes are told.
    pub(super) const fn settle(&mut self) {
        if matches!(self.phase, Phase::Last) {
            self.phase = Phase::Steady;
        }
    }
}
