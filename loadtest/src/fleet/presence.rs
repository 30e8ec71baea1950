// SPDX-License-Identifier: Apache-2.0
//! Whether the clients of one connection have a stream, and why not. Owns what counts as having one. Knows nothing of sockets and
//! scenarios.
//!
//! A client has a stream from the first message that comes on it, or once the server has left it open for half a second: some servers
//! say nothing to a client that holds everything already. A stream that is refused is therefore no stream.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fleet::client::profile::Profile;
use crate::fleet::progress::Progress;
use crate::fleet::violation::Violation;
use crate::measure::loss::{Failure, Loss, Status};
use crate::wire::http2::Event;

/// The clients of one connection, which get their streams and lose them together.
pub(crate) struct Presence {
    progress: Arc<Progress>,
    clients: u32,
    demands: Demands,
    state: Cell<State>,
    /// When the connection was made, if there is one.
    connected: Cell<Option<Instant>>,
    /// Whether the server has said that the connection takes no new streams, without naming an error.
    retires: Cell<bool>,
    heard: Cell<Instant>,
    question: Cell<Question>,
    /// How many questions may still be asked until the next message comes.
    questions_left: Cell<u8>,
    why: RefCell<Option<Box<Why>>>,
}

/// What can be demanded of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demands {
    /// They poll.
    Nothing,
    /// They come and go on their own.
    NoStream,
    /// A stream, but they do not read what comes.
    Stream,
    /// A stream, and an answer when they ask the server for one.
    Answers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// They connect for the first time, or after they left.
    Coming,
    /// They left because they were told to.
    Away,
    Here,
    /// They lost their streams, or could not get any.
    Lost {
        at: Instant,
        /// Whether the server ended them as servers do that spread their clients anew.
        recycled: bool,
    },
}

/// A question to the server whether it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    None,
    Wanted,
    Asked(Instant),
}

/// Why clients have no stream.
#[derive(Clone, Debug)]
struct Why {
    loss: Option<Loss>,
    text: String,
}

/// How many clients must have a stream, and how many have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Clients of which a stream is demanded.
    pub(crate) demanded: u32,
    /// Those that have none, and did not lose it lately as servers do that spread their clients anew.
    pub(crate) without: u32,
    /// For how long some have been without one that they had.
    pub(crate) gap: Duration,
    /// Those of them that may have one soon: their connection is open, and the server has not answered.
    pending: u32,
    /// How many for which reason, with an example of its text.
    reasons: BTreeMap<Option<Loss>, (u32, String)>,
}

/// How long a server leaves a stream open that it does not refuse.
const LEFT_OPEN: Duration = Duration::from_millis(500);
/// For how long after such an end a client may have no stream.
pub(crate) const RECYCLED_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer to the question whether the server is there may take.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// Of a connection on which something came within this time, nobody asks whether the server is there.
const HEARD_LATELY: Duration = Duration::from_secs(1);
/// gRPC servers close a connection at the fourth ping without a message between.
const QUESTIONS_MAX: u8 = 3;
const REASONS_TOLD_MAX: usize = 5;

impl Presence {
    /// Clients of one profile that are about to connect.
    pub(crate) fn new(progress: Arc<Progress>, clients: u32, profile: Option<&Profile>, now: Instant) -> Self {
        let demands = match profile
            .filter(|profile| profile.polls.is_none())
            .map(|it| &it.behaviour)
        {
            None => Demands::Nothing,
            Some(behaviour) if behaviour.flaps.is_some() => Demands::NoStream,
            Some(behaviour) if behaviour.stalls => Demands::Stream,
            Some(_) => Demands::Answers,
        };
        if demands != Demands::Nothing {
            progress.admit_streams(clients);
        }
        Self {
            progress,
            clients,
            demands,
            state: Cell::new(State::Coming),
            connected: Cell::new(None),
            retires: Cell::new(false),
            heard: Cell::new(now),
            question: Cell::new(Question::None),
            questions_left: Cell::new(QUESTIONS_MAX),
            why: RefCell::new(None),
        }
    }

    /// The connection is made, and the streams are asked for.
    pub(crate) fn connect(&self, now: Instant) {
        self.connected.set(Some(now));
        self.retires.set(false);
        self.questions_left.set(QUESTIONS_MAX);
        self.heard.set(now);
    }

    /// Returns when there is something to look at although nothing comes.
    pub(crate) fn due(&self) -> Option<Instant> {
        let answer = match self.question.get() {
            Question::Asked(at) => Some(at + ANSWERED_WITHIN),
            Question::None | Question::Wanted => None,
        };
        answer.into_iter().chain(self.left_open()).min()
    }

    /// Returns when the server has left the streams open for long enough, if that matters.
    fn left_open(&self) -> Option<Instant> {
        let waits = self.demands != Demands::Nothing && self.state.get() != State::Here;
        Some(self.connected.get().filter(|_| waits)? + LEFT_OPEN)
    }

    /// The streams are still open. `greeted`: whether the server has said anything on the connection. Fails if the server was asked
    /// whether it is there, and does not answer.
    pub(crate) fn look(&self, greeted: bool, now: Instant) -> Result<(), Violation> {
        if self.left_open().is_some_and(|due| due <= now) {
            match greeted {
                true => self.arrive(now),
                false => self.connected.set(Some(now)),
            }
        }
        match self.question.get() {
            Question::Asked(at) if at + ANSWERED_WITHIN <= now => {
                let text = format!("the server did not answer a ping within {ANSWERED_WITHIN:?}");
                Err(Violation::Connection(Failure::Silent, text))
            }
            Question::Asked(_) | Question::None | Question::Wanted => Ok(()),
        }
    }

    /// Bytes came; `message`: also of a message.
    pub(crate) fn hear(&self, message: bool, now: Instant) {
        self.heard.set(now);
        if message {
            self.questions_left.set(QUESTIONS_MAX);
            self.arrive(now);
        }
    }

    /// The server says something about the connection: that it takes no new streams, or that it is there.
    pub(crate) fn note(&self, event: &Event<'_>) {
        match event {
            Event::GoAway(_, code) => self.retires.set(*code == 0),
            Event::Pong => self.question.set(Question::None),
            Event::Data(..) | Event::Head(..) | Event::End(_) | Event::Reset(..) => {}
        }
    }

    /// Whether the server is to be asked now.
    pub(crate) fn take_question(&self, now: Instant) -> bool {
        let wanted = self.question.get() == Question::Wanted;
        if wanted {
            self.question.set(Question::Asked(now));
        }
        wanted
    }

    fn arrive(&self, now: Instant) {
        if self.demands != Demands::Nothing && self.state.get() != State::Here {
            self.progress.note_gap(self.gap(now));
            self.state.set(State::Here);
            self.why.replace(None);
            self.progress.gain_streams(self.clients);
        }
    }

    /// For how long the clients have been without a stream that they had, if one is demanded of them.
    fn gap(&self, now: Instant) -> Duration {
        match self.state.get() {
            State::Lost { at, .. } if self.demands != Demands::NoStream => now.saturating_duration_since(at),
            State::Lost { .. } | State::Coming | State::Away | State::Here => Duration::ZERO,
        }
    }

    fn part(&self) {
        if self.state.get() == State::Here {
            self.progress.lose_streams(self.clients);
        }
        self.connected.set(None);
        self.question.set(Question::None);
    }

    /// The connection or one of its streams has ended, or none could be had.
    pub(crate) fn lose(&self, violation: &Violation, now: Instant) {
        self.part();
        let loss = violation.loss();
        let recycled = loss == Some(Loss::Stream(Status::OK)) || (loss.is_some() && self.retires.get());
        match self.state.get() {
            State::Here => self.state.set(State::Lost { at: now, recycled }),
            State::Coming | State::Away => self.state.set(State::Lost {
                at: now,
                recycled: false,
            }),
            // What was lost before counts from then.
            State::Lost { .. } => {}
        }
        let text = violation.to_string();
        self.why.replace(Some(Box::new(Why { loss, text })));
    }

    /// The clients leave because they were told to.
    pub(crate) fn leave(&self) {
        self.part();
        self.state.set(State::Away);
    }

    /// The clients may connect again.
    pub(crate) fn come_back(&self) {
        if self.state.get() == State::Away {
            self.state.set(State::Coming);
        }
    }

    /// Wants an answer from the server, unless it said something lately or was asked too often. Returns whether it is to be asked.
    pub(crate) fn question(&self, now: Instant) -> bool {
        let quiet = now.saturating_duration_since(self.heard.get()) >= HEARD_LATELY;
        let asks = self.demands == Demands::Answers && self.state.get() == State::Here && quiet;
        let Some(left) = self.questions_left.get().checked_sub(1).filter(|_| asks) else {
            return false;
        };
        self.questions_left.set(left);
        self.question.set(Question::Wanted);
        true
    }

    /// Adds these clients to a standing.
    pub(crate) fn stand(&self, standing: &mut Standing, now: Instant) {
        let state = self.state.get();
        if matches!(self.demands, Demands::Nothing | Demands::NoStream) || state == State::Away {
            return;
        }
        standing.demanded += self.clients;
        standing.gap = standing.gap.max(self.gap(now));
        let pending = match state {
            State::Here if self.question.get() == Question::None => return,
            State::Lost { at, recycled: true } if now.saturating_duration_since(at) < RECYCLED_WITHIN => return,
            State::Here | State::Coming => true,
            State::Away | State::Lost { .. } => self.connected.get().is_some(),
        };
        standing.without += self.clients;
        standing.pending += if pending { self.clients } else { 0 };
        let silent = || Why {
            loss: None,
            text: "the server does not answer".to_owned(),
        };
        let why = self.why.borrow().as_deref().cloned().unwrap_or_else(silent);
        standing.add_reason(why.loss, self.clients, &why.text);
    }
}

impl Standing {
    fn add_reason(&mut self, loss: Option<Loss>, clients: u32, text: &str) {
        let (count, _) = self.reasons.entry(loss).or_insert_with(|| (0, text.to_owned()));
        *count += clients;
    }

    /// Whether it cannot change soon.
    pub(crate) const fn is_final(&self) -> bool {
        self.pending == 0
    }
}

/// Why clients have no stream: the most frequent reasons, each with its number of clients.
impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<_> = self.reasons.values().collect();
        reasons.sort_unstable_by_key(|(clients, _)| std::cmp::Reverse(*clients));
        let told = reasons.iter().take(REASONS_TOLD_MAX);
        let all = self.demanded;
        let told: Vec<_> = told
            .map(|(clients, text)| format!("{clients} of {all} clients: {text}"))
            .collect();
        out.write_str(&told.join("; "))
    }
}
