//! One of the two streams of a view: its machine, and its life from attempt to attempt.
//!
//! Owns when to connect, and what to say when that fails. Refuses to know the other stream and the view.

mod begun;
mod ended;

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
use super::status::{Board, Phase};
use super::target::{Target, UpstreamSettings};
use super::writer::Talk;
use crate::proto::google::rpc;
use crate::protocol::{Backoff, Client, Cutter, Leg as Which, Pause, Received, Request, Suspects, Trial, Why};
use crate::xds::{Changes, Dialect, ServerState, Slot, Target as Wanted, TypeUrl, Want};

/// One stream of a view.
pub(super) struct Leg {
    pub(super) client: Client,
    pub(super) board: Board,
    which: Which,
    target: Arc<Target>,
    access: Arc<Access>,
    settings: Arc<UpstreamSettings>,
    backoff: Backoff,
    trial: Trial,
    /// Why it speaks its dialect.
    why: Why,
    stage: Stage,
    /// Whether another server has stood in since the last stream began.
    superseded: bool,
    /// Since when nothing is wanted of the open stream.
    idle: Option<Instant>,
    /// Its place among the streams that are in their opening, and until when it keeps that at the latest.
    place: Option<(Admission, Instant)>,
    /// The server had no room for it the last time.
    exhausted: bool,
    /// The present attempt is made early, because the server answered another stream.
    followed: bool,
    /// It is for types that end the stream which the others share.
    alone: bool,
    /// Which of its types may be the end of its streams.
    pub(super) suspects: Suspects,
    /// Those that were found out and that `take_suspected` has not returned yet, and how the stream ended.
    suspected: Vec<(TypeUrl, String)>,
    /// How the last stream ended, if that may be because of what was asked for; `take_trouble` clears it.
    trouble: Option<String>,
    /// The types for which the server was found to have no answer and that `take_unserved` has not returned yet.
    unserved: Vec<TypeUrl>,
}

enum Stage {
    /// Nothing is under way.
    Rest,
    Opening(Opening),
    Live(Box<AdsStream>),
    /// It ended. No attempt is made before the pause is over, unless the server answers another stream.
    Waiting(Pause, Pin<Box<dyn Future<Output = ()> + Send>>),
}

type Opening = Pin<Box<dyn Future<Output = (Admission, Result<Channel, Failure>)> + Send>>;

/// A stream that is not answered for so long does not count as in its opening any more.
const OPENING: Duration = Duration::from_secs(1);
/// So many responses are taken before what they change is published.
const BURST: usize = 64;

impl Leg {
    /// A stream that all types share, except those that end it.
    pub(super) fn new(
        which: Which,
        client: Client,
        target: Arc<Target>,
        access: Arc<Access>,
        settings: Arc<UpstreamSettings>,
    ) -> Self {
        Self {
            board: Board::new(client.dialect()),
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
        }
    }

    /// The same stream for types that end the one that the others share: what is learned on it of the server's dialects holds for it
    /// alone.
    pub(super) fn apart(mut self) -> Self {
        self.alone = true;
        self.trial = Trial::new(false);
        self
    }

    /// Returns the types that were found to end the stream since the last call, and how it ended.
    pub(super) fn take_suspected(&mut self) -> Vec<(TypeUrl, String)> {
        std::mem::take(&mut self.suspected)
    }

    /// Returns how the last stream ended, once, if that may be because of what was asked for.
    pub(super) const fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    fn poll_live(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let mut any = false;
        for _ in 0..BURST {
            let Stage::Live(live) = &mut self.stage else {
                break;
            };
            let Poll::Ready(response) = live.poll_response(cx) else {
                break;
            };
            any = true;
            if let Err(failure) = response.and_then(|message| self.received(message, changes)) {
                self.ended(failure, changes);
            }
        }
        if let Stage::Live(live) = &self.stage
            && live.outbox.poll_hungry(cx).is_ready()
        {
            any |= self.feed();
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Hands the next request to the transport, if that takes one. Whether it did.
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
        if let Some(rpc::Status { message, .. }) = refusal {
            self.target.refuse(type_url, message);
        }
        live.outbox.put(Bytes::from(bytes));
        true
    }

    fn received(&mut self, message: Cutter, changes: &mut Vec<Changes>) -> Result<(), Failure> {
        let Stage::Live(live) = &mut self.stage else {
            return Ok(());
        };
        let received = now();
        let first = !std::mem::replace(&mut live.answered, true);
        let size = message.length();
        let new = match live.dialect {
            Dialect::Sotw => self.client.handle_sotw(message.sotw()?, received),
            Dialect::Delta => self.client.handle_delta(message.delta()?, received),
        };
        self.target.metrics.responses.inc();
        if let Some(Received {
            type_url,
            valid,
            invalid,
        }) = self.client.take_received()
        {
            self.target.metrics.resources(&type_url, valid, invalid);
            self.suspects.handle_answer(&type_url);
        }
        tracing::debug!(server = self.target.uri(), leg = ?self.which, size, "response");
        if first {
            self.answered(changes);
        }
        self.board.heard();
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
            // A stream of which nothing is wanted is kept for a while: what is wanted next need not wait for another one.
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

    fn supersede(&mut self) {
        self.superseded = true;
    }

    fn come_through(&mut self, relays: &[String]) {
        self.client.handle_relays(relays.to_vec());
    }

    fn board(&self) -> &Board {
        &self.board
    }

    fn server_state(&self) -> Option<ServerState> {
        let server_state = match &self.stage {
            Stage::Live(live) if live.answered => ServerState::Up,
            _ if self.board.failing() => ServerState::Failing,
            Stage::Live(_) => ServerState::Open,
            Stage::Rest | Stage::Opening(_) | Stage::Waiting(..) => ServerState::Trying,
        };
        // What only delta has says nothing of a server that does not speak it.
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
