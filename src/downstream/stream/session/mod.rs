// SPDX-License-Identifier: Apache-2.0
//! One client stream: its machine, its seats at views, and what passes between them.
//!
//! Owns the order of work: the bell is cleared and subscriptions are passed on before the cut is read, and nothing is encoded
//! before the transport can take it. Knows nothing of the transport: requests come in as messages, responses go out as ropes,
//! and time is an argument.

mod answered;
mod called;
mod foreseen;
mod requests;
mod syncz;
mod traced;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Buf as _;
use tonic::Status;

use super::accounts::Accounts;
use super::ends::{no_place, status};
use super::large::Large;
use super::output::{NextOutput, rope};
use super::seats::Seats;
use crate::cache::Rejecter;
use crate::clock;
use crate::downstream::services::Method;
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::protocol::{Code, End, Response, Server};
use crate::wire::{Pieces, Rope, Share, acknowledgement};
use crate::xds::{self, Dialect, Sight};
use foreseen::foreseen;
use syncz::Syncz;

/// One client stream.
pub(in crate::downstream) struct Session {
    shared: Arc<Shared>,
    accounts: Accounts,
    method: Method,
    server: Server,
    /// From the first request on.
    seats: Option<Seats>,
    /// The rest of a large request. No response is made before all of it was handled.
    rest: Option<Box<Large>>,
    /// Hardly any stream has questions about others.
    syncz: Option<Box<Syncz>>,
    /// Whether the stream ends as soon as the client has got a response and there is nothing more to send (K-26).
    closing: bool,
    /// If set, the stream ends now with this status.
    end: Option<Status>,
    /// The number of responses so far.
    written: u32,
    /// Whether changes that had rung were still unhandled when `note_looked` was last called. Then an acknowledgement after which nothing is
    /// left to send is a reason to look again; any other is not.
    lags: bool,
    /// Whether versions are kept that the client brought.
    brings: bool,
    /// When the task's present turn began.
    now: Instant,
    /// Whether anything has happened since there was last nothing to send. Only then is it worth asking the machine again. What the machine
    /// says of itself (`is_short`, `is_done`) is about its last poll; this is about all that has come since: bells, timers, rules.
    stirred: bool,
}

impl Session {
    /// Creates the session of a stream of `method`.
    pub(in crate::downstream) fn new(shared: Arc<Shared>, accounts: Accounts, method: Method, now: Instant) -> Self {
        let opening = method.opening(accounts.identity());
        let server = Server::new(accounts.settings().protocol.clone(), opening);
        Self {
            shared,
            accounts,
            method,
            server,
            seats: None,
            rest: None,
            syncz: None,
            closing: false,
            end: None,
            written: 0,
            lags: false,
            brings: false,
            now,
            stirred: true,
        }
    }

    /// Begins a turn of the task. Everything in one turn happens at the same time.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.now = now;
    }

    /// Returns the settings of the operator with which the stream began.
    pub(super) fn settings(&self) -> &ConnectionSettings {
        self.accounts.settings()
    }

    /// Whether anything has happened after which there may be something to send.
    pub(super) const fn is_stirred(&self) -> bool {
        self.stirred && (self.rest.is_none() || self.end.is_some())
    }

    /// Whether the client has asked for something, or has rejected something, and there may still be an answer to send.
    pub(super) fn asks(&self) -> bool {
        self.accounts.asks()
    }

    /// Handles one request, unless it is large and waits for its turn, within the connection's `share` of memory. Returns how many names were handled.
    pub(super) fn handle_message(&mut self, message: Pieces, share: &Arc<Share>) -> usize {
        self.accounts.request(message.remaining());
        if self.end.is_some() || message.whole().is_some_and(|whole| self.handle_acknowledgement(whole)) {
            return 0;
        }
        self.stirred = true;
        let taken = self.try_handle(message, share);
        taken.unwrap_or_else(|end| {
            self.end = Some(end);
            0
        })
    }

    /// Handles a request that is only an acknowledgement, as nearly every request is. Returns whether it was one.
    fn handle_acknowledgement(&mut self, message: &[u8]) -> bool {
        let Some((type_url, nonce)) = acknowledgement(message).filter(|_| self.method.dialect == Dialect::Delta) else {
            return false;
        };
        let Some(receipt) = self.server.handle_acknowledgement(type_url, nonce) else {
            return false;
        };
        self.accounts.receipt(&receipt, self.server.node(), nonce, self.now);
        self.say_stances();
        if self.server.is_done() && self.seats.as_ref().is_some_and(Seats::is_at_rest) {
            if self.lags {
                self.note_looked(None);
            }
        } else {
            self.stirred = true;
        }
        true
    }

    /// Handles the timers of the machine, if the time of [`Self::poll_timeout`] has come.
    pub(super) fn handle_timeout(&mut self) {
        if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.stirred = true;
            self.server.handle_timeout(self.now);
        }
    }

    /// Ends the stream of a client that sends no more and got no answer within `bound`.
    pub(super) fn give_up(&mut self, bound: Duration) {
        let sight = self.sight();
        let cause = End::because(self.server.reason(&sight));
        self.end(Status::unavailable(format!(
            "no answer within {bound:?}, and the client has closed its side{cause}"
        )));
    }

    /// Lets the stream end in good order.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.stirred = true;
        if self.resumes().is_some() {
            // A request only waits on a stream that had a response.
            self.end(Status::ok(""));
        }
    }

    /// Ends the stream at once.
    pub(super) fn end(&mut self, status: Status) {
        self.stirred = true;
        self.end.get_or_insert(status);
    }

    /// Notes that the stream is ended because its client does not read this many bytes.
    pub(super) fn stalled(&self, bytes: u64, now: Instant) {
        self.accounts.stalled(self.server.node(), bytes, now);
        self.hung("it did not read", now);
    }

    /// Notes that the stream is ended because its client does not answer pings.
    pub(super) fn silent(&self, now: Instant) {
        self.accounts.silent(self.server.node(), now);
        self.hung("it answered no ping", now);
    }

    fn hung(&self, why: &'static str, now: Instant) {
        let node = self.server.node().filter(|node| !node.id.is_empty());
        let name = node.map_or_else(|| self.accounts.peer().to_string(), |node| node.id.to_string());
        self.shared.status.census().hung().note(name, why, now);
    }

    /// Whether the stream ends with the next output.
    pub(super) const fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// Whether any response was sent.
    pub(super) const fn answered(&self) -> bool {
        self.server.sent() > 0
    }

    /// Whether the client has accepted everything that was sent.
    pub(super) fn is_settled(&self) -> bool {
        let settled = |status| matches!(status, xds::Status::NotSent | xds::Status::Synced);
        self.server.status().all(|(_, status)| settled(status))
    }

    /// Whether there was any request.
    pub(super) const fn asked(&self) -> bool {
        self.server.node().is_some()
    }

    /// Returns the number of responses so far.
    pub(super) const fn written(&self) -> u32 {
        self.written
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let settles = self.seats.as_ref().and_then(Seats::poll_timeout);
        clock::earliest([self.server.poll_timeout(), settles])
    }

    /// Returns the next output. To be called when the transport can take it.
    pub(super) fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<NextOutput> {
        if !self.is_stirred() {
            return Poll::Pending;
        }
        self.stirred = false;
        let output = self.output(self.now, cx);
        match &output {
            // If there may be more to send or to do, the next call finds it.
            Poll::Ready(NextOutput::Response(_)) => {
                self.stirred = !self.server.is_done() || self.closing || self.end.is_some();
            }
            Poll::Ready(NextOutput::End(status)) => self.accounts.end(self.server.node(), status, self.now),
            Poll::Pending => self.stirred |= self.server.is_short(),
        }
        if !self.stirred {
            self.accounts.set_asks(false);
        }
        output
    }

    fn output(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<NextOutput> {
        if let Err(end) = self.end.take().map_or_else(|| self.say_wants(), Err) {
            return Poll::Ready(NextOutput::End(end));
        }
        if let Some(answer) = self.take_syncz() {
            self.written = self.written.wrapping_add(1);
            return Poll::Ready(NextOutput::Response(answer));
        }
        self.say_stances();
        let Some(sight) = self.told(cx) else {
            self.stirred = true;
            return Poll::Pending;
        };
        let mut response = self.server.poll_response(&sight, &*self.shared.library, now);
        // It may have found out what the client rejects, and older content may be there.
        if response.is_none() && self.say_stances() {
            response = self.server.poll_response(&sight, &*self.shared.library, now);
        }
        self.accounts.gates(self.server.expired_gates());
        if self.brings && self.server.brought() == 0 {
            self.brings = false;
            self.accounts.count_names(self.server.names());
        }
        self.note_looked(response.as_ref());
        if let Some(response) = response {
            self.written = self.written.wrapping_add(1);
            return Poll::Ready(NextOutput::Response(self.encode(&response)));
        }
        if let Some(end) = self.server.poll_end() {
            return Poll::Ready(NextOutput::End(self.ended(end)));
        }
        // K-26: a client that got a response can reconnect without an error; one that asked for nothing lacks nothing.
        if self.closing && !self.server.is_short() && (self.answered() || !self.asked()) {
            return Poll::Ready(NextOutput::End(Status::ok("")));
        }
        Poll::Pending
    }

    /// The machine ended the stream by itself.
    fn ended(&self, end: End) -> Status {
        if end.code == Code::Unavailable {
            self.shared.metrics.unanswered.inc();
            self.note_unanswered();
        }
        status(&self.shared, end)
    }

    /// Tells the views which types are up to date: those that get a response now, or need none and await no acknowledgement.
    /// Outdated content is kept only for the others.
    fn note_looked(&mut self, response: Option<&Response>) {
        let Some(seats) = &self.seats else { return };
        let unasked = self.server.is_short() || response.is_some() && !self.server.is_done();
        self.lags = seats.looked(|type_url| {
            let stale = |(known, status)| known == type_url && status == xds::Status::Stale;
            response.is_some_and(|response| response.type_url == *type_url)
                || !unasked && !self.server.status().any(stale)
        });
    }

    fn enter(&mut self) -> Result<(), Status> {
        let Some(node) = self.server.node() else { return Ok(()) };
        if let Some(seats) = &mut self.seats {
            let met = seats.meet(&self.shared.scopes, node);
            return met.map_err(|error| no_place(&self.shared, error));
        }
        self.accounts.enter(&self.shared, node, &self.method, self.now);
        let patience = self.settings().protocol.timers.move_after;
        let seats = Seats::enter(&self.shared.scopes, node, self.accounts.claims(), patience);
        let seats = seats.map_err(|error| no_place(&self.shared, error))?;
        self.seats = Some(seats);
        // The rules may have changed since the stream was opened; from now on the seats are called when they change.
        self.take_rules();
        Ok(())
    }

    fn say_wants(&mut self) -> Result<(), Status> {
        let Some(seats) = &mut self.seats else { return Ok(()) };
        let mut said = false;
        while let Some(want) = self.server.poll_want() {
            said = true;
            if let Err(error) = seats.want(&self.shared.scopes, &want) {
                return Err(no_place(&self.shared, error));
            }
            if let Some(next) = foreseen(&want, &self.method, &self.server) {
                seats.foresee(&next);
            }
        }
        if said {
            seats.rest();
        }
        Ok(())
    }

    /// Tells the views what the client rejects and what it uses, as it happens. If it holds nothing of what it rejects, older content is
    /// found for it (K-37). Returns whether there was anything to tell.
    fn say_stances(&mut self) -> bool {
        let Some(seats) = &self.seats else { return false };
        let mut any = false;
        // Nearly always there is nothing. Every acknowledgement and every response passes here.
        while let Some(told) = self.server.poll_stance()
            && let Some(node) = self.server.node().cloned()
        {
            any = true;
            let rejecter = told.stance.map(|stance| Rejecter {
                node,
                stream: self.accounts.number(),
                stance,
            });
            seats.tell((&told.type_url, told.name.as_ref()), rejecter, self.now);
            if let Some(name) = told.name.filter(|_| told.asks) {
                let contents = seats.older(&told.type_url, &name, self.now);
                self.server
                    .handle_older(&told.type_url, &name, contents, &seats.sight());
            }
        }
        if any {
            seats.rest_stances();
        }
        any
    }

    fn sight(&self) -> Sight {
        let seats = self.seats.as_ref();
        seats.map(Seats::sight).unwrap_or_default()
    }

    fn encode(&mut self, response: &Response) -> Rope {
        if let Some(traced) = self.traced(response) {
            return self.encode_traced(response, &traced);
        }
        let (rope, fresh) = rope(response, &self.method, &self.shared.identifier);
        self.accounts.response(&response.type_url, rope.remaining(), fresh);
        rope
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.accounts.leave(self.server.node(), self.server.subscribed());
    }
}
