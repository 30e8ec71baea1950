// SPDX-License-Identifier: Apache-2.0
//! One simulated client as a machine: bytes of its streams in, streams to open and requests out. It asks, follows references,
//! acknowledges as its profile says, and checks everything. Knows nothing of sockets and clocks.
//!
//! - [`profile`]: what a client asks for, and how it behaves
//! - [`lane`]: one stream, and the response that is arriving on it
//! - [`subscription`], [`arrival`]: what it asks for and holds of one type, and one resource that arrives
//! - [`following`]: what it asks for because of references, and in which order resources may come
//! - [`polls`]: REST polls, in the place of streams
//! - [`served`]: whether another control plane serves it as it serves others
//! - [`saying`], [`transcript`]: what it sends, and the latest part of the conversation

mod arrival;
mod following;
pub(crate) mod lane;
mod polls;
pub(crate) mod profile;
pub(crate) mod saying;
mod served;
pub(crate) mod subscription;
mod transcript;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::fleet::violation::Violation;
use crate::measure::loss::Status;
use crate::measure::tally::Tally;
use crate::origin::world::World;
use crate::wire::Reader;
use crate::wire::http2::hpack::Head;
use crate::wire::kind::Kind;
use arrival::Eye;
use lane::{Answer, Lane};
use polls::Poll;
use profile::{Acks, Interest, Profile};
use subscription::Subscription;
use transcript::{Transcript, What};

/// One client. Inputs are `handle_*` and `begin`; `poll_output` returns what to do on its streams, in order.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) number: u32,
    pub(crate) profile: Arc<Profile>,
    world: Arc<World>,
    subscriptions: Vec<Subscription>,
    lanes: Vec<(Lane, Reader)>,
    /// SotW: the version of each type that it accepted last, which it brings to the next stream.
    accepted: [Option<Box<str>>; Kind::ALL.len()],
    /// The polls, if it polls; then it has no lanes.
    polls: Vec<Poll>,
    outputs: VecDeque<Output>,
    late: VecDeque<(Instant, Reply)>,
    demand: Option<Demand>,
    pub(crate) complete: bool,
    draws: u64,
    tried: u64,
    began: bool,
    /// If there was newer content right after its last response: how many responses the fleet had got then.
    behind_since: Option<u64>,
    transcript: Transcript,
}

/// What to do on the client's streams.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Open a stream to this method.
    Open(usize, &'static str),
    Send(usize, Bytes),
    /// Send one poll, on a stream of its own.
    Post(usize, &'static str, Bytes),
}

/// The answer to a response, now or later.
#[derive(Clone, Debug)]
struct Reply {
    lane: usize,
    kind: Kind,
    nonce: String,
    version: String,
    rejects: bool,
}

/// Names to be asked for, one after the other.
#[derive(Debug)]
struct Demand {
    kind: Kind,
    names: Vec<u32>,
    next: Instant,
    every: std::time::Duration,
}

/// The result of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) messages: u32,
    pub(crate) named: u32,
    /// Whether the client now holds everything that it wants, for the first time since it began or began anew.
    pub(crate) completed: bool,
}

impl Client {
    pub(crate) fn new(number: u32, profile: Arc<Profile>, world: Arc<World>) -> Self {
        let subscriptions = profile.interests.iter().filter_map(|(kind, interest)| {
            let ledger = Arc::clone(world.ledger(*kind)?);
            let names = match interest {
                Interest::All => None,
                Interest::Names(names) => Some(names.of(number, ledger.len())),
                Interest::Follow | Interest::Demand(..) => Some(Vec::new()),
            };
            Some(Subscription::new(ledger, names))
        });
        Self {
            number,
            subscriptions: subscriptions.collect(),
            profile,
            world,
            lanes: Vec::new(),
            accepted: [const { None }; Kind::ALL.len()],
            polls: Vec::new(),
            outputs: VecDeque::new(),
            late: VecDeque::new(),
            demand: None,
            complete: false,
            draws: 0,
            tried: 0,
            began: false,
            behind_since: None,
            transcript: Transcript::default(),
        }
    }

    /// Begins anew, with all streams still to be opened.
    pub(crate) fn begin(&mut self, now: Instant) {
        let back = std::mem::replace(&mut self.began, true);
        if back && !self.profile.behaviour.remembers {
            self.forget();
        }
        self.lanes.clear();
        self.outputs.clear();
        self.late.clear();
        self.subscriptions.iter_mut().for_each(Subscription::begin);
        if self.profile.polls.is_some() {
            self.begin_polls(now);
            return;
        }
        if self.profile.aggregated {
            self.open(None, now);
        }
        for kind in Kind::ALL {
            let Some(names) = self.subscription(kind).map(|it| it.names().map(<[u32]>::to_vec)) else {
                continue;
            };
            if !self.profile.aggregated {
                self.open(Some(kind), now);
            }
            // Who asks by versions begins without any name.
            if kind.asks_by_versions() || names.as_ref().is_none_or(|names| !names.is_empty()) {
                self.ask(kind, &names.unwrap_or_default(), &[], true, now);
            }
        }
        self.demand = self
            .profile
            .interests
            .iter()
            .find_map(|(kind, interest)| match interest {
                Interest::Demand(names, every) => Some(Demand {
                    kind: *kind,
                    names: names.of(self.number, self.world.ledger(*kind)?.len()),
                    next: now,
                    every: *every,
                }),
                Interest::All | Interest::Names(_) | Interest::Follow => None,
            });
    }

    /// Forgets everything, as a client that starts anew: also the names that others referred to.
    fn forget(&mut self) {
        self.accepted = [const { None }; Kind::ALL.len()];
        for subscription in &mut self.subscriptions {
            subscription.forget();
            let follows = (subscription.kind(), Interest::Follow);
            if self.profile.interests.contains(&follows) {
                subscription.forget_names();
            }
        }
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when it has something to do even if nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let late = self.late.front().map(|(due, _)| *due);
        let polls = self.polls.iter().filter_map(Poll::due);
        late.into_iter()
            .chain(self.demand.as_ref().map(|it| it.next))
            .chain(polls)
            .min()
    }

    /// Does what is due.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        while self.late.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, reply)) = self.late.pop_front() {
                self.reply(&reply, now);
            }
        }
        self.poll_due(now);
        if let Some(demand) = &mut self.demand
            && demand.next <= now
        {
            let (kind, name) = (demand.kind, demand.names.pop());
            demand.next += demand.every;
            // Only the answer to the last name is still to come; with it the client is complete.
            if demand.names.is_empty() {
                self.demand = None;
            }
            if let Some(name) = name {
                self.handle_wish(kind, name, now);
            }
        }
    }

    /// Asks for one more name.
    pub(crate) fn handle_wish(&mut self, kind: Kind, index: u32, now: Instant) {
        let new = self
            .subscription(kind)
            .map_or_else(Vec::new, |subscription| subscription.ask(&[index]));
        if !new.is_empty() {
            self.ask(kind, &new, &[], false, now);
        }
    }

    /// Takes bytes of a stream.
    pub(crate) fn handle_data(
        &mut self,
        lane: usize,
        bytes: &[u8],
        tally: &mut Tally,
        now: Instant,
    ) -> Result<Outcome, Violation> {
        if let Some(poll) = self.polls.get_mut(lane) {
            poll.handle_data(bytes);
            return Ok(Outcome::default());
        }
        let mut answers = Vec::new();
        let mut eye = Eye {
            now,
            tally,
            awaited: self.profile.behaviour.is_steady(),
            complete: self.complete,
            tried: &mut self.tried,
        };
        let Some((stream, reader)) = self.lanes.get_mut(lane) else {
            return Ok(Outcome::default());
        };
        let subscriptions = &mut self.subscriptions;
        reader.feed(bytes, |unit| {
            answers.extend(stream.handle(&unit, subscriptions, &mut eye)?);
            Ok::<(), Violation>(())
        })?;
        let mut outcome = Outcome::default();
        for answer in answers {
            outcome.messages += 1;
            outcome.named += answer.named;
            self.handle_answer(lane, answer, now)?;
        }
        self.completed(&mut outcome);
        Ok(outcome)
    }

    fn completed(&mut self, outcome: &mut Outcome) {
        if outcome.messages > 0 && !self.complete && self.is_complete() {
            self.complete = true;
            outcome.completed = true;
        }
    }

    /// To be called after each response, with the number of responses that the fleet has got. Returns how many came while this
    /// client waited for its own; none unless there was something for it all the time.
    pub(crate) fn waited(&mut self, responses: u64) -> Option<u64> {
        let behind = self.subscriptions.iter().any(Subscription::is_behind);
        let since = std::mem::replace(&mut self.behind_since, behind.then_some(responses));
        since.map(|since| responses.saturating_sub(since))
    }

    /// Takes the headers or the trailers of an answer, which may end the stream.
    pub(crate) fn handle_head(&mut self, lane: usize, head: Head, now: Instant) -> Result<(), Violation> {
        if let Some(poll) = self.polls.get_mut(lane) {
            return poll.handle_head(&head);
        }
        let fault = match (head.status, head.grpc_status) {
            (_, Some(code)) => Violation::Ended(Status::read(&code), head.grpc_message),
            (Some(status), None) if status != 200 => Violation::Status(status),
            (Some(_) | None, None) => return Ok(()),
        };
        self.transcript.note(now, lane, What::Ended);
        Err(fault)
    }

    fn handle_answer(&mut self, lane: usize, answer: Answer, now: Instant) -> Result<(), Violation> {
        let kind = answer.kind;
        let what = What::Got {
            kind,
            nonce: answer.nonce.as_str().into(),
            version: answer.version.as_str().into(),
            named: answer.named,
            bytes: answer.bytes,
        };
        self.transcript.note(now, lane, what);
        let (came, went) = match self.subscription(kind) {
            Some(subscription) => (
                std::mem::take(&mut subscription.came),
                std::mem::take(&mut subscription.went),
            ),
            None => return Ok(()),
        };
        self.check_order(kind, &came, &went)?;
        self.draws += 1;
        let rejects = match self.profile.behaviour.acks {
            Acks::Rejects(every) => self.complete && self.draws.is_multiple_of(u64::from(every.max(1))),
            Acks::Yes | Acks::Late(_) | Acks::Never => false,
        };
        let reply = Reply {
            lane,
            kind,
            nonce: answer.nonce,
            version: answer.version,
            rejects,
        };
        match self.profile.behaviour.acks {
            Acks::Yes | Acks::Rejects(_) => self.reply(&reply, now),
            Acks::Late(delay) => {
                let mut due = now + delay.draw(self.number, self.draws);
                // A later answer must not overtake an earlier one.
                if let Some((last, _)) = self.late.back() {
                    due = due.max(*last);
                }
                self.late.push_back((due, reply));
            }
            Acks::Never if self.complete => {}
            Acks::Never => self.reply(&reply, now),
        }
        self.follow(kind, &came, &went, now);
        Ok(())
    }

    fn subscription(&mut self, kind: Kind) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|it| it.kind() == kind)
    }

    fn is_complete(&self) -> bool {
        self.demand.is_none() && self.subscriptions.iter().all(Subscription::is_complete)
    }

    /// Fails unless it holds the newest content of everything it wants.
    pub(crate) fn check_final(&self) -> Result<(), Violation> {
        self.subscriptions.iter().try_for_each(Subscription::check_final)
    }

    /// Takes the end of a stream, with a code if it was reset. For a poll, this completes the answer.
    pub(crate) fn handle_end(
        &mut self,
        lane: usize,
        reset: Option<u32>,
        tally: &mut Tally,
        now: Instant,
    ) -> Result<Outcome, Violation> {
        if reset.is_none() && lane < self.polls.len() {
            return self.handle_poll(lane, tally, now);
        }
        self.transcript.note(now, lane, What::Ended);
        Err(match reset {
            None => Violation::Ended(Status::Missing, String::new()),
            Some(code) => Violation::Ended(Status::Reset, format!("HTTP/2 code {code}")),
        })
    }

    /// Returns its latest requests and responses.
    pub(crate) fn transcript(&self, now: Instant) -> Vec<String> {
        self.transcript.lines(now)
    }
}
