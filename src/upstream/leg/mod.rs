//! One of the two streams of a view: its machine, and its life from attempt to attempt.
//!
//! Owns when to connect, and what to report when that fails. Knows nothing of the other stream and the view.

mod begun;
mod ended;
mod heard;
mod reporting;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;

use super::access::Access;
use super::ads_stream::AdsStream;
use super::channel::Channel;
use super::clock::now;
use super::doors::Admission;
use super::failure::Failure;
use super::status::{Answers, Board, Phase};
use super::target::{Target, UpstreamSettings};
use super::writer::Talk;
use crate::proto::google::rpc;
use crate::protocol::{Backoff, Client, Cutter, Leg as Which, Pause, Received, Request, Suspects, Trial, Why};
use crate::telemetry::Arrival;
use crate::xds::{Changes, Dialect, Name, ServerState, ServerWords, Slot, Target as Wanted, TypeUrl, Want};

/// One stream of a view.
pub struct Leg {
    pub(super) client: Client,
    pub(super) board: Board,
    which: Which,
    target: Arc<Target>,
    access: Arc<Access>,
    settings: Arc<UpstreamSettings>,
    backoff: Backoff,
    trial: Trial,
    /// Why it uses its dialect.
    why: Why,
    stage: Stage,
    /// Whether another server has stood in since the last stream began.
    superseded: bool,
    /// Since when nothing is wanted from the open stream.
    idle: Option<Instant>,
    /// Its place among the opening streams, and when it gives the place up at the latest.
    place: Option<(Admission, Instant)>,
    /// Whether the server had no room for it at the last attempt.
    exhausted: bool,
    /// Whether the current attempt was made early because the server answered another stream.
    followed: bool,
    /// Whether it is a separate stream, for types that end the shared one.
    alone: bool,
    /// Finds out which of its types make the server end the stream.
    pub(super) suspects: Suspects,
    /// Newly suspected types that `take_suspected` has not returned yet, and how the stream ended.
    suspected: Vec<(TypeUrl, String)>,
    /// How the last stream ended, if a requested type may be the reason; `take_trouble` clears it.
    trouble: Option<String>,
    /// Types for which the server has no answer and that `take_unserved` has not returned yet.
    unserved: Vec<TypeUrl>,
    reports: reporting::Reports,
    /// Responses that `take_arrivals` has not returned yet, if changes are traced.
    arrivals: Vec<Arrival>,
}

enum Stage {
    /// There is no stream and no attempt.
    Rest,
    Opening(Opening),
    Live(Box<AdsStream>),
    /// The stream ended. The next attempt is made after the pause, or when the future shows that the server answered another
    /// stream.
    Waiting(Pause, Pin<Box<dyn Future<Output = ()> + Send>>),
}

type Opening = Pin<Box<dyn Future<Output = (Admission, Result<Channel, Failure>)> + Send>>;

/// How long an open stream without an answer keeps its place among the opening streams.
const OPENING: Duration = Duration::from_secs(1);
/// How many responses, and of how many bytes, are read at most before their changes are published and others have the thread.
const BURST: usize = 64;
const BURST_BYTES: usize = 4 * 1024 * 1024;

impl Leg {
    /// Creates the stream that all types share, except those that end it.
    pub(super) fn new(
        which: Which,
        client: Client,
        target: Arc<Target>,
        access: Arc<Access>,
        settings: Arc<UpstreamSettings>,
        answers: Answers,
    ) -> Self {
        Self {
            board: Board::new(client.dialect(), answers),
            client,
            which,
            target,
            access,
            backoff: Backoff::new(settings.reconnect_max),
            settings,
            trial: Trial::new(true),
            why: Why::Preferred,
            stage: Stage::Rest,
            superseded: false,
            idle: None,
            place: None,
            exhausted: false,
            followed: false,
            alone: false,
            suspects: Suspects::default(),
            suspected: Vec::new(),
            trouble: None,
            unserved: Vec::new(),
            reports: reporting::Reports::default(),
            arrivals: Vec::new(),
        }
    }

    /// Makes it a separate stream, for types that end the shared one. What it learns about the server's dialects counts for it
    /// alone.
    pub(super) fn apart(mut self) -> Self {
        self.alone = true;
        self.trial = Trial::new(false);
        self
    }

    /// Returns the types suspected since the last call, and how the stream ended.
    pub(super) fn take_suspected(&mut self) -> Vec<(TypeUrl, String)> {
        std::mem::take(&mut self.suspected)
    }

    /// Returns, once, how the last stream ended if a requested type may be the reason.
    pub(super) const fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    fn poll_live(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let (mut any, mut bytes) = (false, 0);
        for _ in 0..BURST {
            let Stage::Live(live) = &mut self.stage else {
                break;
            };
            let Poll::Ready(response) = live.poll_response(cx) else {
                break;
            };
            any = true;
            bytes += response.as_ref().map_or(0, Cutter::length);
            if let Err(failure) = response.and_then(|message| self.received(message, changes)) {
                self.ended(failure, changes);
            }
            if bytes >= BURST_BYTES {
                break;
            }
        }
        if let Stage::Live(live) = &self.stage
            && live.outbox.poll_hungry(cx).is_ready()
        {
            any |= self.feed();
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Hands the next request to the transport if it takes one. Returns whether it did.
    fn feed(&mut self) -> bool {
        let Stage::Live(live) = &self.stage else {
            return false;
        };
        if !live.outbox.is_hungry() {
            return false;
        }
        let Some(request) = self.client.poll_request(now()) else {
            return false;
        };
        if let Some(asked) = self.client.take_asked() {
            self.suspects.handle_asked(asked, now());
        }
        let (bytes, type_url, refusal) = match &request {
            Request::Sotw(request) => (request.encode_to_vec(), &request.type_url, &request.error_detail),
            Request::Delta(request) => (request.encode_to_vec(), &request.type_url, &request.error_detail),
        };
        live.outbox.put(Bytes::from(bytes));
        if let Some(rpc::Status { message, .. }) = refusal {
            match self.client.take_reported() {
                Some(reported) => self.report(reported, message),
                None => self.target.refuse(type_url, message),
            }
        }
        true
    }

    fn received(&mut self, message: Cutter, changes: &mut Vec<Changes>) -> Result<(), Failure> {
        let Stage::Live(live) = &mut self.stage else {
            return Ok(());
        };
        let received = now();
        self.reports.tolerated();
        let first = !std::mem::replace(&mut live.answered, true);
        let size = message.length();
        let (dialect, stream) = (live.dialect, live.context());
        let (new, parent) = self.decode(message, dialect, received)?;
        self.target.metrics.responses.inc();
        if let Some(Received {
            type_url,
            valid,
            invalid,
            ignored,
        }) = self.client.take_received()
        {
            self.target.metrics.resources(&type_url, valid, invalid, ignored);
            self.suspects.handle_answer(&type_url);
            if self.target.metrics.traces.is_on() {
                self.arrivals.push(Arrival {
                    server: Arc::from(self.target.uri()),
                    type_url,
                    bytes: size,
                    received,
                    decoded: now(),
                    parent,
                    stream,
                });
            }
        }
        tracing::debug!(server = self.target.uri(), leg = ?self.which, size, "response");
        if first {
            self.answered(changes);
        }
        self.board.heard();
        self.target.metrics.heard();
        changes.extend(new);
        Ok(())
    }

    fn close(&mut self, changes: &mut Vec<Changes>) {
        self.idle = None;
        if let Stage::Live(live) = std::mem::replace(&mut self.stage, Stage::Rest) {
            if live.answered {
                self.target.metrics.stream_closed();
            }
            changes.extend(self.client.handle_disconnected());
        }
    }

    fn rest(&mut self) {
        self.stage = Stage::Rest;
        self.board.enter(Phase::Idle, self.client.dialect());
    }
}

impl Talk for Leg {
    fn want(&mut self, want: &Want) -> Vec<Changes> {
        self.client.handle_rhythm(self.target.rhythm());
        self.client.handle_want(want)
    }

    fn restore(&mut self, type_url: &TypeUrl, target: &Wanted, slot: &Slot) -> Option<Changes> {
        self.client.handle_restored(type_url, target, slot)
    }

    fn turn(&mut self, changes: &mut Vec<Changes>) {
        if let Stage::Live(live) = &mut self.stage
            && let Some(at) = live.partial()
        {
            self.client.handle_bytes(at);
        }
        changes.extend(self.client.handle_timeout(now()));
        if let Some(seen) = self.client.take_rhythm() {
            self.target.learn(&seen);
        }
        self.place.take_if(|(_, until)| *until <= now());
        if matches!(&self.stage, Stage::Waiting(pause, _) if pause.due(self.client.lacks()) <= now()) {
            self.rest();
        }
        if matches!(&self.stage, Stage::Rest) {
            self.choose(changes);
        }
        self.show_unserved();
        match (&self.stage, self.client.wanted()) {
            (Stage::Rest, true) => self.open(),
            (Stage::Opening(_), false) => self.rest(),
            // A stream from which nothing is wanted stays open for a while, so that the next want need not wait for a new one.
            (Stage::Live(_), false) => {
                if now() >= *self.idle.get_or_insert_with(now) + self.settings.idle {
                    self.close(changes);
                    self.place = None;
                    self.rest();
                }
            }
            (Stage::Live(_), true) => self.idle = None,
            (Stage::Rest | Stage::Waiting(..), false) | (Stage::Opening(_) | Stage::Waiting(..), true) => {}
        }
        self.feed();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let closes = self.idle.map(|since| since + self.settings.idle);
        let place = self.place.as_ref().map(|(_, until)| *until);
        let retry = match &self.stage {
            Stage::Waiting(pause, _) if self.client.wanted() => Some(pause.due(self.client.lacks())),
            Stage::Rest | Stage::Opening(_) | Stage::Live(_) | Stage::Waiting(..) => None,
        };
        let all = [self.client.poll_timeout(), closes, place, retry];
        all.into_iter().flatten().min()
    }

    fn take_unserved(&mut self) -> Vec<TypeUrl> {
        std::mem::take(&mut self.unserved)
    }

    fn take_arrivals(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.arrivals)
    }

    fn supersede(&mut self) {
        self.superseded = true;
        // The pauses of a separate stream are about its types, not about the server.
        if self.alone {
            return;
        }
        self.backoff.handle_superseded();
        if let Stage::Waiting(pause, _) = &mut self.stage {
            pause.shorten();
        }
    }

    fn come_through(&mut self, relays: &[String]) {
        self.client.handle_relays(relays.to_vec());
    }

    fn board(&self) -> &Board {
        &self.board
    }

    fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        self.client.words(type_url, name)
    }

    fn removal_times(&self) -> (Duration, Duration) {
        (self.settings.removal_quiet, self.settings.order_gate)
    }

    fn server_state(&self) -> Option<ServerState> {
        let server_state = match &self.stage {
            Stage::Live(live) if live.answered => ServerState::Up,
            _ if self.board.failing() => ServerState::Failing,
            Stage::Live(_) => ServerState::Open,
            Stage::Rest | Stage::Opening(_) | Stage::Waiting(..) => ServerState::Trying,
        };
        // Types that only delta can ask for do not count if the server does not support delta.
        let counts = self.client.wanted_in(Dialect::Sotw) || self.client.wanted() && !self.trial.is_without_delta();
        counts.then_some(server_state)
    }

    fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        match &mut self.stage {
            Stage::Rest => return Poll::Pending,
            Stage::Waiting(_, returned) => {
                ready!(returned.as_mut().poll(cx));
                self.followed = true;
                self.rest();
            }
            Stage::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                (place, Ok(channel)) => {
                    self.place = Some((place, now() + OPENING));
                    self.opened(channel);
                }
                (_, Err(failure)) => self.failed(&failure),
            },
            Stage::Live(_) => return self.poll_live(cx, changes),
        }
        Poll::Ready(())
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        self.close(&mut Vec::new());
    }
}
