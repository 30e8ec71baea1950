// SPDX-License-Identifier: Apache-2.0
//! One stream of a view: its machine, and its life from attempt to attempt.
//!
//! Owns when to connect, and what to report when that fails. Knows nothing of the view's other streams and of the view.

mod attempts;
mod begun;
mod blame;
mod ended;
mod heard;
mod live;
mod looped;
mod reports;
mod types;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;

use super::clock::now;
use super::dialer::{Dialer, Dialing};
use super::overtime::{self, MANY, MANY_BYTES};
use super::status::{AnswerCount, Board};
use crate::proto::envoy::config::core::v3::Node;
use crate::proto::google::rpc;
use crate::protocol::{Client, Pause, Request, Trial, Why};
use crate::telemetry::TracedArrival;
use crate::xds::{Changes, Dialect, Name, ServerState, ServerWords, Slot, Target as Wanted, Twins, TypeUrl, Want};
use attempts::Attempts;
use blame::Blame;
use live::{HeardResponse, LiveStream};
use looped::Looped;
use reports::Reports;

/// One stream of a view.
pub struct Leg {
    client: Client,
    board: Board,
    dialer: Dialer,
    attempts: Attempts,
    trial: Trial,
    /// Why the client speaks its dialect.
    why: Why,
    stage: LegStage,
    blame: Blame,
    reports: Reports,
    looped: Option<Box<Looped>>,
    /// Responses that `take_arrivals` has not returned yet, if changes are traced.
    arrivals: Vec<TracedArrival>,
}

enum LegStage {
    /// There is no stream and no attempt.
    Rest,
    Opening(Dialing),
    Live(Box<LiveStream>),
    /// The stream ended. The next attempt is made after the pause, or when the future shows that the server answered another
    /// stream.
    Waiting(Pause, Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// How many responses, and of how many bytes, are read at most before their changes are published.
const BURST: usize = 64;
const BURST_BYTES: usize = 4 * 1024 * 1024;

impl Leg {
    /// Creates the stream that all types share, except those that end it. The relay presents itself as `node`.
    pub(super) fn new(dialer: Dialer, node: Arc<Node>, answers: AnswerCount) -> Self {
        let client = Client::new(dialer.settings().client.clone(), dialer.target().dialect().0, node);
        let board = Board::new(client.dialect(), answers);
        Self::of(dialer, client, board, false)
    }

    /// Creates another stream to the same server, for types that end this one. What it learns about the server's dialects counts for it
    /// alone.
    pub(super) fn beside(&self) -> Self {
        let client = self.client.beside();
        let mut dialer = self.dialer.clone();
        dialer.renew();
        let board = self.board.beside(client.dialect());
        Self::of(dialer, client, board, true)
    }

    fn of(dialer: Dialer, client: Client, board: Board, apart: bool) -> Self {
        Self {
            client,
            board,
            attempts: Attempts::new(dialer.settings().reconnect_max, apart),
            trial: Trial::new(!apart),
            why: Why::Preferred,
            stage: LegStage::Rest,
            blame: Blame::new(apart),
            reports: Reports::default(),
            looped: None,
            arrivals: Vec::new(),
            dialer,
        }
    }

    /// Returns the machine.
    pub(super) const fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// A want begins or ends.
    pub(super) fn want(&mut self, want: &Want) -> Vec<Changes> {
        self.client.handle_rhythm(self.dialer.target().rhythm());
        self.client.handle_want(want)
    }

    /// A want has begun for something that the relay knew before its restart.
    pub(super) fn restore(&mut self, type_url: &TypeUrl, wanted: &Wanted, slot: &Slot) -> Option<Changes> {
        self.client.handle_restored(type_url, wanted, slot)
    }

    /// Opens and closes the stream, sends requests, and adds the changes that follow from the time.
    pub(super) fn turn(&mut self, changes: &mut Vec<Changes>) {
        let patience = self.patience();
        if let LegStage::Live(live) = &mut self.stage {
            live.handle_timeout(patience, now());
            if let Some(at) = live.partial() {
                self.client.handle_bytes(at);
            }
        }
        changes.extend(self.client.handle_timeout(now()));
        if let Some(seen) = self.client.take_rhythm() {
            self.dialer.target().learn(&seen);
        }
        self.attempts.handle_timeout(now());
        if matches!(&self.stage, LegStage::Waiting(pause, _) if pause.due(self.client.lacks()) <= now()) {
            self.rest();
        }
        if matches!(&self.stage, LegStage::Rest) {
            self.choose(changes);
        }
        match (&mut self.stage, self.client.wanted()) {
            (LegStage::Rest, true) => self.open(),
            (LegStage::Opening(_), false) => self.rest(),
            // A stream from which nothing is wanted stays open for a while, so that the next want need not wait for a new one.
            (LegStage::Live(live), false) => {
                if live.is_idle(self.dialer.settings().idle, now()) {
                    self.close(changes);
                    self.attempts.leave();
                    self.rest();
                }
            }
            (LegStage::Live(live), true) => live.occupy(),
            (LegStage::Rest | LegStage::Waiting(..), false) | (LegStage::Opening(_) | LegStage::Waiting(..), true) => {}
        }
        self.feed();
    }

    /// When the next turn is due at the latest.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let stage = match &self.stage {
            LegStage::Live(live) => live.poll_timeout(self.dialer.settings().idle, self.patience()),
            LegStage::Waiting(pause, _) if self.client.wanted() => Some(pause.due(self.client.lacks())),
            LegStage::Rest | LegStage::Opening(_) | LegStage::Waiting(..) => None,
        };
        let all = [
            self.client.poll_timeout(),
            self.attempts.poll_timeout(),
            self.blame.suspects().poll_timeout(),
            stage,
        ];
        all.into_iter().flatten().min()
    }

    /// Waits for the next event.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        match &mut self.stage {
            LegStage::Rest => return Poll::Pending,
            LegStage::Waiting(_, returned) => {
                ready!(returned.as_mut().poll(cx));
                self.attempts.hurry();
                self.rest();
            }
            LegStage::Opening(dialing) => match ready!(dialing.as_mut().poll(cx)) {
                (place, Ok(channel)) => self.opened(place, channel),
                (_, Err(failure)) => self.failed(&failure),
            },
            LegStage::Live(_) => return self.poll_live(cx, changes),
        }
        Poll::Ready(())
    }

    fn poll_live(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let (mut any, mut bytes, mut weight) = (false, 0, 0);
        for _ in 0..BURST {
            let LegStage::Live(live) = &mut self.stage else {
                break;
            };
            let Poll::Ready(response) = live.poll_response(cx) else {
                break;
            };
            any = true;
            let mut left_out = 0;
            if let Ok(HeardResponse { message, .. }) = &response {
                bytes += message.length();
                weight += message.weight();
                left_out = message.type_url().map_or(0, |of| self.client.left_out(of));
            }
            overtime::work(weight > MANY_BYTES || left_out > MANY, || {
                if let Err(failure) = response.and_then(|heard| self.received(heard, changes)) {
                    self.ended(failure, changes);
                }
            });
            if bytes >= BURST_BYTES {
                break;
            }
        }
        if let LegStage::Live(live) = &self.stage
            && live.outbox().poll_hungry(cx).is_ready()
        {
            any |= self.feed();
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Hands the next request to the transport if it takes one. Returns whether it did.
    fn feed(&mut self) -> bool {
        let LegStage::Live(live) = &self.stage else {
            return false;
        };
        if !live.outbox().is_hungry() {
            return false;
        }
        let Some(request) = self.client.poll_request(now()) else {
            return false;
        };
        let (bytes, type_url, refusal) = match &request {
            Request::Sotw(request) => (request.encode_to_vec(), &request.type_url, &request.error_detail),
            Request::Delta(request) => (request.encode_to_vec(), &request.type_url, &request.error_detail),
        };
        live.outbox()
            .put([Bytes::from(bytes), self.client.take_node().unwrap_or_default()]);
        if let Some(rpc::Status { message, .. }) = refusal {
            match self.client.take_reported() {
                Some(reported) => self.report(reported, message),
                None => self.dialer.target().record.refuse(type_url, message),
            }
        }
        true
    }

    /// Another server has stood in for this one.
    pub(super) fn supersede(&mut self) {
        if self.attempts.supersede()
            && let LegStage::Waiting(pause, _) = &mut self.stage
        {
            pause.shorten();
        }
    }

    /// Returns the server's state, if anything is wanted from it. After a failure, a stream that is open again and silent for long says
    /// nothing of the server: it may have nothing to say there for ever (G-08).
    pub(super) fn server_state(&self) -> Option<ServerState> {
        let server_state = match &self.stage {
            LegStage::Live(live) if live.is_answered() => ServerState::Up,
            LegStage::Live(live) if live.is_silent() && self.board.failing() => return None,
            _ if self.board.failing() => ServerState::Failing,
            LegStage::Live(_) => ServerState::Open,
            LegStage::Rest | LegStage::Opening(_) | LegStage::Waiting(..) => ServerState::Trying,
        };
        // Types that only delta can ask for do not count if the server does not support delta.
        let counts = self.client.wanted_in(Dialect::Sotw) || self.client.wanted() && !self.trial.is_without_delta();
        counts.then_some(server_state)
    }

    /// D-03: returns how long nothing that directs traffic must have come before a removal counts, and how long that waits at most.
    pub(super) fn removal_times(&self) -> (Duration, Duration) {
        let settings = self.dialer.settings();
        (settings.removal_quiet, settings.order_gate)
    }

    /// Returns how long the server may take to send a name that it was asked for.
    pub(super) fn patience(&self) -> Duration {
        self.dialer.settings().client.does_not_exist
    }

    /// Bytes that other views have as well are kept once.
    pub(super) fn share(&mut self, twins: &Twins) {
        self.client.share(twins.clone());
    }

    /// The requests come through these relays as well.
    pub(super) fn come_through(&mut self, relays: &[String]) {
        self.client.handle_relays(relays.to_vec());
    }

    /// Returns what the server said about a resource, if it is held.
    pub(super) fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        self.client.words(type_url, name)
    }

    /// Returns the place where its status is written.
    pub(super) const fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the responses since the last call, if changes are traced.
    pub(super) fn take_arrivals(&mut self) -> Vec<TracedArrival> {
        std::mem::take(&mut self.arrivals)
    }
}
