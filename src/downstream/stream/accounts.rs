// SPDX-License-Identifier: Apache-2.0
//! The metrics and log lines of one client stream.
//!
//! Owns the look-up of each type's counters, once for each stream. Decides nothing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tonic::Status;

use super::deliveries::Deliveries;
use crate::cache::Claims;
use crate::census::Caller;
use crate::classes::Node;
use crate::clock;
use crate::downstream::admission::Stay;
use crate::downstream::full::LimitReached;
use crate::downstream::log::ClientLog;
use crate::downstream::returns::ClientVisit;
use crate::downstream::services::{ApiVersion, Method};
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::identity::Identity;
use crate::inquiry::StreamNumber;
use crate::protocol::{Nonce, Receipt, ReceiptKind};
use crate::telemetry::{Metrics, TracedChange, TypeMetrics};
use crate::wire::Peer;
use crate::xds::{Dialect, TypeUrl};

/// The counters of one stream. The stream counts as open as long as this value lives.
pub(in crate::downstream) struct Accounts {
    metrics: Arc<Metrics>,
    log: Arc<ClientLog>,
    /// In a box, because every stream has a driver, whose size is that of a class of the allocator.
    presence: Box<StreamPresence>,
    types: Vec<Account>,
}

/// One type of a stream.
struct Account {
    type_url: TypeUrl,
    counters: Arc<TypeMetrics>,
    /// When the client last accepted a response at the latest: milliseconds after the start of the stream, rounded up.
    accepted: Option<NonZeroU32>,
}

/// What is held as long as the stream is open.
struct StreamPresence {
    stay: Stay,
    identity: Identity,
    /// Those of its connection.
    claims: Arc<Claims>,
    /// Its number on the connection.
    stream: u32,
    dialect: Dialect,
    /// Whether the client has asked for something, and there may still be an answer to send.
    asks: bool,
    since: Instant,
    /// Those with which the stream began.
    settings: Arc<ConnectionSettings>,
    /// Set on an aggregated stream of a client with an id, after the first request.
    visit: Option<ClientVisit>,
    /// Since when the client has waited on earlier streams, if its last one ended unanswered.
    waits: Option<Instant>,
    /// The traced changes in responses on their way.
    traced: Deliveries,
    /// How many requests the client has sent, and how many bytes.
    requests: (u64, u64),
    /// How often its gates have opened by themselves, as far as that is counted.
    expired_gates: u64,
}

impl Accounts {
    pub(in crate::downstream) fn open(
        shared: &Shared,
        log: Arc<ClientLog>,
        (stay, identity): (Stay, Identity),
        settings: Arc<ConnectionSettings>,
        (claims, stream): (Arc<Claims>, u32),
        dialect: Dialect,
        now: Instant,
    ) -> Self {
        let accounts = Self {
            metrics: shared.metrics.clone(),
            log,
            presence: Box::new(StreamPresence {
                stay,
                identity,
                claims,
                stream,
                dialect,
                asks: false,
                since: now,
                settings,
                visit: None,
                waits: None,
                traced: Deliveries::default(),
                requests: (0, 0),
                expired_gates: 0,
            }),
            types: Vec::new(),
        };
        accounts.streams().inc();
        accounts
    }

    /// Returns the settings with which the stream began.
    pub(super) fn settings(&self) -> &ConnectionSettings {
        &self.presence.settings
    }

    /// Returns who the client of the stream is.
    pub(super) const fn identity(&self) -> &Identity {
        &self.presence.identity
    }

    /// The number of the stream.
    pub(super) fn number(&self) -> StreamNumber {
        StreamNumber {
            connection: self.presence.claims.number(),
            stream: self.presence.stream,
        }
    }

    /// What the connection of the stream takes of the limits.
    pub(super) const fn claims(&self) -> &Arc<Claims> {
        &self.presence.claims
    }

    /// Returns when the stream began.
    pub(super) const fn since(&self) -> Instant {
        self.presence.since
    }

    /// Returns when the client last accepted a response of a type.
    pub(super) fn accepted(&self, type_url: &TypeUrl) -> Option<Instant> {
        let account = self.types.iter().find(|account| account.type_url == *type_url)?;
        let after = Duration::from_millis(account.accepted?.get().into());
        self.since().checked_add(after)
    }

    /// Returns where the client comes from.
    pub(super) fn peer(&self) -> &Peer {
        self.presence.stay.peer()
    }

    /// Whether the client has asked for something, or has rejected something, and there may still be an answer to send.
    pub(super) fn asks(&self) -> bool {
        self.presence.asks
    }

    /// Sets the same.
    pub(super) fn set_asks(&mut self, asks: bool) {
        self.presence.asks = asks;
    }

    /// Notes which client this is, on a stream on which it may ask for any type.
    pub(super) fn enter(&mut self, shared: &Shared, node: &Node, method: &Method, now: Instant) {
        tracing::debug!(
            node = %node.id, peer = %self.peer(), identity = %self.identity(), stream = %self.number(),
            dialect = self.presence.dialect.word(), user_agent = %node.user_agent, "a stream begins"
        );
        let access = &self.presence.settings.protocol.access;
        if node.is_relay() && !access.is_empty() && !access.names_relays() {
            self.log.unnamed_relay(node, self.identity());
        }
        if !node.id.is_empty() && method.service.is_none() && self.presence.visit.is_none() {
            self.presence.visit = Some(shared.returns.enter(&node.id, method.transport == ApiVersion::V2, now));
        }
        let unserved = shared.status.census().unserved();
        self.presence.waits = unserved.come_back(self.caller(node, method), now);
    }

    /// Returns since when the client has waited on earlier streams, if its last one ended unanswered.
    pub(super) fn waits(&self) -> Option<Instant> {
        self.presence.waits
    }

    /// Notes that the stream ends unanswered, after the client has waited for the type since then.
    pub(super) fn unanswered(
        &self,
        shared: &Shared,
        (node, method): (&Node, &Method),
        (type_url, since): (&TypeUrl, Instant),
        now: Instant,
    ) {
        let unserved = shared.status.census().unserved();
        unserved.leave(self.caller(node, method), type_url, since, now);
    }

    fn caller(&self, node: &Node, method: &Method) -> Caller {
        let address = match self.peer() {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Unix => None,
        };
        Caller::new(&node.id, address, method.service.as_ref())
    }

    /// Notes to what the client was subscribed when the stream ended, for whatever reason.
    pub(super) fn leave<'a>(&mut self, node: Option<&Arc<Node>>, types: impl Iterator<Item = &'a TypeUrl>) {
        if let Some(node) = node {
            let lived = clock::now().saturating_duration_since(self.since());
            tracing::debug!(node = %node.id, peer = %self.peer(), stream = %self.number(), ?lived, "a stream is over");
        }
        if let Some(visit) = self.presence.visit.take() {
            visit.leave(types, clock::now());
        }
    }

    /// Notes that a response with these traced changes is sent.
    pub(super) fn deliver(&mut self, nonce: Nonce, changes: &[Arc<TracedChange>], now: Instant) {
        self.presence.traced.add(nonce, changes, now);
    }

    /// Counts a request that came, of so many bytes.
    pub(super) fn request(&mut self, bytes: usize) {
        let (requests, all) = &mut self.presence.requests;
        *requests += 1;
        *all += bytes as u64;
    }

    /// Returns how many requests the client has sent, and how many bytes.
    pub(super) const fn requests(&self) -> (u64, u64) {
        self.presence.requests
    }

    /// Counts a request that was handled.
    pub(super) fn receipt(&mut self, receipt: &Receipt, node: Option<&Arc<Node>>, nonce: &[u8], now: Instant) {
        for (fault, count, first) in receipt.faults.iter() {
            self.metrics.name_fault(fault.word(), count);
            let node = node.map_or("", |node| &*node.id);
            self.log.name_fault(node, &receipt.type_url, fault, first, now);
        }
        let traced = if self.presence.traced.is_empty() {
            None
        } else {
            self.presence.traced.settle(&receipt.kind, nonce, now)
        };
        if let ReceiptKind::Ack(_) = &receipt.kind {
            self.presence.stay.acknowledged();
        } else {
            self.presence.asks = true;
        }
        let began = self.since();
        let after = now.saturating_duration_since(began).as_millis();
        let account = self.of(&receipt.type_url);
        let counters = &account.counters;
        counters.requests.inc();
        if receipt.type_url.is_health_report() {
            self.metrics.health_reports.inc();
            return node.map_or((), |node| self.log.health_report(node, now));
        }
        match &receipt.kind {
            ReceiptKind::First => {
                if let Some(visit) = &self.presence.visit {
                    visit.ask(&receipt.type_url);
                }
            }
            ReceiptKind::Update => {}
            ReceiptKind::Ack(changed) => {
                account.accepted = NonZeroU32::new(u32::try_from(after + 1).unwrap_or(u32::MAX));
                counters.acks.inc();
                if let Some(changed) = changed {
                    if changed.news {
                        let waited = now.saturating_duration_since(changed.since);
                        counters.convergence.observe(waited.as_secs_f64(), traced.as_ref());
                    }
                    if let Some(node) = node {
                        let brought = changed.since..=changed.until;
                        counters
                            .adoptions
                            .accept(&brought, changed.news, &node.class, began, now);
                    }
                }
            }
            ReceiptKind::Nack {
                response,
                objection,
                given_up,
            } => {
                counters.nacks.inc();
                counters.given_up.inc_by(u64::try_from(*given_up).unwrap_or(u64::MAX));
                if let Some(node) = node {
                    let who = (&**node, self.presence.stay.peer());
                    self.log
                        .nack(who, (&receipt.type_url, nonce), (response, &**objection), now);
                    if *given_up > 0 {
                        self.log.given_up(node, &receipt.type_url, *given_up, now);
                    }
                }
            }
            ReceiptKind::Stale => drop(counters.stale_nonces.inc()),
        }
    }

    /// Counts the names that the stream subscribes to now, however many.
    pub(super) fn count_names(&mut self, names: usize) {
        self.presence.stay.count_names(names);
    }

    /// Counts the names that the stream subscribes to now, if there may be so many.
    pub(super) fn subscribe(&mut self, names: usize) -> Result<(), LimitReached> {
        self.presence.stay.subscribe(names)
    }

    /// Ready when the stream must end, because memory is short and it holds much.
    pub(super) fn poll_end(&self, cx: &Context<'_>) -> Poll<Status> {
        let ended = self.presence.stay.poll_end(cx);
        ended.map(|()| {
            self.metrics.refused("memory");
            Status::unavailable(
                "the relay's memory is short (`limits.memory`): this stream holds many names or versions, and its client has \
                 acknowledged nothing; try another relay, or later",
            )
        })
    }

    /// Counts and logs a request whose names were too many.
    pub(super) fn not_grown(&self, node: Option<&Arc<Node>>, full: &LimitReached, now: Instant) {
        self.metrics.refused(full.limit);
        let node = node.map_or("", |node| &*node.id);
        self.log.not_grown(node, self.presence.stay.peer(), full, now);
    }

    /// Counts a response; `fresh` if its shared part was encoded for it.
    pub(super) fn response(&mut self, type_url: &TypeUrl, bytes: usize, fresh: bool) {
        let counters = &self.of(type_url).counters;
        counters.responses.inc();
        counters.response_bytes.inc_by(bytes as u64);
        counters.encoded_bodies.inc_by(u64::from(fresh));
    }

    /// Logs that the relay ends the stream.
    pub(super) fn end(&self, node: Option<&Arc<Node>>, status: &Status, now: Instant) {
        self.log.end(node.map(|node| &**node), status, now);
    }

    /// Counts and logs that the stream is ended because its client does not read this many bytes.
    pub(super) fn stalled(&self, node: Option<&Arc<Node>>, bytes: u64, now: Instant) {
        self.metrics.send_stalls.inc();
        let node = node.map_or("", |node| &*node.id);
        self.log.stalled(node, self.peer(), bytes, now);
    }

    /// Counts and logs that the stream is ended because its client does not answer pings.
    pub(super) fn silent(&self, node: Option<&Arc<Node>>, now: Instant) {
        self.metrics.unanswered_pings.inc();
        let node = node.map_or("", |node| &*node.id);
        self.log.silent(node, self.peer(), now);
    }

    /// Counts new expired gates; `expired` is the stream's total.
    pub(super) fn gates(&mut self, expired: u64) {
        if expired > self.presence.expired_gates {
            self.metrics.gates_expired.inc_by(expired - self.presence.expired_gates);
            self.presence.expired_gates = expired;
        }
    }

    /// Returns the counters of a type. Inlined, because every delivery passes through it twice.
    #[inline(always)]
    fn of(&mut self, type_url: &TypeUrl) -> &mut Account {
        let found = self.types.iter().position(|account| account.type_url == *type_url);
        let at = found.unwrap_or_else(|| self.add(type_url));
        #[expect(clippy::indexing_slicing, reason = "the position was found or made just now")]
        &mut self.types[at]
    }

    /// Adds a type, and returns its position.
    #[cold]
    fn add(&mut self, type_url: &TypeUrl) -> usize {
        self.types.reserve_exact(1);
        self.types.push(Account {
            type_url: type_url.clone(),
            counters: self.metrics.of(type_url),
            accepted: None,
        });
        self.types.len() - 1
    }

    fn streams(&self) -> &prometheus_client::metrics::gauge::Gauge {
        match self.presence.dialect {
            Dialect::Sotw => &self.metrics.streams_sotw,
            Dialect::Delta => &self.metrics.streams_delta,
        }
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        self.streams().dec();
    }
}
