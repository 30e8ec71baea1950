// SPDX-License-Identifier: Apache-2.0
//! One of a view's two sets of polls to its server.
//!
//! Owns the polls under way and the JSON of answers. Knows nothing of the other leg and the view. The machine decides what to ask
//! for and what an answer changes.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;

use super::RestServer;
use super::exchange::{PollConnection, PollExchange, Reply};
use super::poller::{PollQuestion, Poller};
use crate::json::{Bounds, Secrets, Tree, Unknown};
use crate::proto::envoy::service::discovery::v3::DiscoveryResponse;
use crate::protocol::{Client, FIELD_BYTES_MIN, Received};
use crate::telemetry::{CountedStream, TracedArrival};
use crate::upstream::access::ServerAccess;
use crate::upstream::clock::{dice, now};
use crate::upstream::failure::Failure;
use crate::upstream::overtime::{self, MANY_BYTES};
use crate::upstream::status::{AnswerCount, Board, StreamPhase};
use crate::upstream::target::UpstreamSettings;
use crate::upstream::writer::Talk;
use crate::xds::{Changes, Dialect, Name, ServerState, ServerWords, Slot, Target as Wanted, TypeUrl, Want};

/// A value or key in a JSON answer counts as so many bytes of the limit: it takes more memory than its text.
const VALUE_BYTES_MIN: usize = 16;

type PollOutcome = (Result<Reply, Failure>, Option<PollConnection>);

/// One of a view's two sets of polls to its server.
pub struct PollLeg {
    poller: Poller,
    server: Arc<RestServer>,
    access: Arc<ServerAccess>,
    settings: Arc<UpstreamSettings>,
    polls: BTreeMap<TypeUrl, Pin<Box<dyn Future<Output = PollOutcome> + Send>>>,
    /// The connections of types without a poll under way.
    links: BTreeMap<TypeUrl, PollConnection>,
    board: Board,
    /// Counts the polls while the server answers them.
    counted: Option<CountedStream>,
    /// Answers that `take_arrivals` has not returned yet, if changes are traced.
    arrivals: Vec<TracedArrival>,
    /// The marks that `take_loops` has not returned yet.
    looped: Vec<String>,
}

impl PollLeg {
    pub(super) fn new(
        client: Client,
        server: Arc<RestServer>,
        access: Arc<ServerAccess>,
        settings: Arc<UpstreamSettings>,
    ) -> Self {
        Self {
            poller: Poller::new(client, settings.interval, settings.reconnect_max),
            server,
            access,
            settings,
            polls: BTreeMap::new(),
            links: BTreeMap::new(),
            board: Board::new(Dialect::Sotw, AnswerCount::default()),
            counted: None,
            arrivals: Vec::new(),
            looped: Vec::new(),
        }
    }

    /// Takes up newer settings, if there are any.
    fn renew(&mut self) {
        let newer = self.server.record.settings(&self.settings);
        if Arc::ptr_eq(&newer, &self.settings) {
            return;
        }
        self.poller
            .handle_settings(newer.client.clone(), newer.interval, newer.reconnect_max);
        self.settings = newer;
    }

    fn start(&mut self, question: PollQuestion) {
        let PollQuestion {
            type_url,
            path,
            request,
        } = question;
        let name = "envoy.service.discovery.v3.DiscoveryRequest";
        let written = self
            .server
            .schemas
            .decode(name, &request.encode_to_vec(), Secrets::Show);
        let (server, access, settings) = (self.server.clone(), self.access.clone(), self.settings.clone());
        let kept = self.links.remove(&type_url);
        let poll = Box::pin(async move {
            match written {
                Ok(json) => {
                    let (server, access, settings, path) = (&*server, &*access, &*settings, &*path);
                    let exchange = PollExchange {
                        server,
                        access,
                        settings,
                        path,
                    };
                    exchange.run(Bytes::from(json.text), kept).await
                }
                Err(fault) => {
                    let why = fault.to_string();
                    (Err(Failure::Response { path, why }), kept)
                }
            }
        });
        self.polls.insert(type_url, poll);
    }

    fn handle(&mut self, type_url: &TypeUrl, outcome: PollOutcome, changes: &mut Vec<Changes>) {
        let (result, link) = outcome;
        self.links.extend(link.map(|link| (type_url.clone(), link)));
        let received = now();
        let response = result.and_then(|reply| match reply {
            Reply::News(body) => {
                let response = self.read(type_url, &body)?;
                self.arrived(type_url, body.len(), received);
                Ok(Some(response))
            }
            Reply::Nothing => Ok(None),
        });
        match response {
            Ok(response) => self.answered(type_url, (response, received), changes),
            Err(failure) => self.failed(type_url, &failure, changes),
        }
        self.board.note(self.poller.trouble());
    }

    /// Notes an answer with content, if changes are traced.
    fn arrived(&mut self, type_url: &TypeUrl, bytes: usize, received: Instant) {
        if self.server.record.metrics.traces.is_on() {
            self.arrivals.push(TracedArrival {
                server: Arc::from(self.server.record.uri()),
                type_url: type_url.clone(),
                bytes,
                received,
                decoded: now(),
                parent: None,
                stream: None,
            });
        }
    }

    fn answered(
        &mut self,
        type_url: &TypeUrl,
        (response, received): (Option<DiscoveryResponse>, Instant),
        changes: &mut Vec<Changes>,
    ) {
        let news = response.is_some();
        changes.extend(self.poller.handle_answer(type_url, response, dice(), received));
        self.server.record.answered();
        if self.counted.is_none() {
            self.counted = Some(self.server.record.metrics.polls());
            self.board.enter(StreamPhase::Answering, Dialect::Sotw);
            if let Some(suppressed) = self.server.record.away.answered(now()) {
                tracing::info!(server = self.server.record.uri(), suppressed, "control plane answers");
            }
        }
        self.board.heard();
        self.server.record.metrics.heard();
        if news {
            self.server.record.metrics.responses.inc();
        }
    }

    fn failed(&mut self, type_url: &TypeUrl, failure: &Failure, changes: &mut Vec<Changes>) {
        self.looped.extend(failure.looped().map(str::to_owned));
        // A server that does not serve one type may well serve the others.
        let alone = matches!(failure, Failure::Refused { status: 400..=499, .. });
        let (wait, lost) = self
            .poller
            .handle_failure(type_url, failure.to_string(), alone, dice(), now());
        changes.extend(lost);
        self.server.record.metrics.failures.inc();
        if let Some(suppressed) = self.server.record.away.failed(alone, now()) {
            tracing::warn!(
                server = self.server.record.uri(), error = %failure, retry_in = ?wait, suppressed,
                "a poll failed; the known resources stay valid"
            );
        }
        if !alone {
            self.board.wait(now() + wait, None);
            if self.board.fail(false) {
                self.server.record.metrics.lost.inc();
            }
            self.counted = None;
        }
    }

    /// E-13: replaces a resource that cannot be read with an empty one, so that only this resource is rejected.
    fn read(&self, type_url: &TypeUrl, body: &[u8]) -> Result<DiscoveryResponse, Failure> {
        let failed = |fault: json::Fault| Failure::Response {
            path: type_url.path().unwrap_or_default(),
            why: fault.to_string(),
        };
        let limit = self.settings.upstream_message;
        let values = limit / VALUE_BYTES_MIN;
        let tree = Tree::json(body, Bounds { values }).map_err(failed)?;
        let resources = tree.get("resources").and_then(Tree::items).map_or(0, <[Tree]>::len);
        if resources > limit / FIELD_BYTES_MIN {
            return Err(Failure::Response {
                path: type_url.path().unwrap_or_default(),
                why: format!(
                    "the answer has {resources} resources, each of which counts as at least {FIELD_BYTES_MIN} bytes, and \
                     `limits.upstream_message` is {limit}"
                ),
            });
        }
        let said = self.server.schemas.response(&tree, Unknown::Ignore).map_err(failed)?;
        let resources = said.resources.into_iter().map(|read| match read {
            Ok(parsed) => parsed.value,
            Err(fault) => {
                tracing::warn!(server = self.server.record.uri(), r#type = %type_url, error = %fault, "a resource cannot be read");
                Default::default()
            }
        });
        Ok(DiscoveryResponse {
            version_info: said.version_info,
            resources: resources.collect(),
            ..Default::default()
        })
    }
}

impl Talk for PollLeg {
    fn want(&mut self, want: &Want) -> Vec<Changes> {
        let changes = self.poller.handle_want(want, now());
        // A poll under way that does not ask for everything now wanted is cancelled.
        let (poller, of) = (&self.poller, &want.type_url);
        self.polls.retain(|type_url, _| type_url != of || poller.awaits(of));
        self.links.retain(|type_url, _| type_url != of || poller.asks(of));
        self.board.wanted(poller.asks_anything(), Dialect::Sotw);
        changes
    }

    fn restore(&mut self, type_url: &TypeUrl, target: &Wanted, slot: &Slot) -> Option<Changes> {
        self.poller.handle_restored(type_url, target, slot)
    }

    fn turn(&mut self, changes: &mut Vec<Changes>) {
        let now = now();
        changes.extend(self.poller.handle_timeout(now));
        while let Some(received) = self.poller.take_received() {
            let Received {
                type_url,
                valid,
                invalid,
                ignored,
            } = received;
            self.server.record.metrics.resources(&type_url, valid, invalid, ignored);
        }
        while let Some((type_url, fault)) = self.poller.poll_refusal(now) {
            self.server.record.refuse(&type_url, &fault);
        }
        while let Some(question) = self.poller.poll_question(now) {
            self.renew();
            self.start(question);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let mut done = Vec::new();
        self.polls.retain(|type_url, poll| match poll.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                done.push((type_url.clone(), outcome));
                false
            }
            Poll::Pending => true,
        });
        if done.is_empty() {
            return Poll::Pending;
        }
        for (type_url, outcome) in done {
            let is_long = matches!(&outcome.0, Ok(Reply::News(body)) if body.len() > MANY_BYTES);
            overtime::work(is_long, || self.handle(&type_url, outcome, changes));
        }
        Poll::Ready(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poller.poll_timeout()
    }

    fn server_state(&self) -> Option<ServerState> {
        self.poller.server_state()
    }

    fn take_unserved(&mut self) -> Vec<TypeUrl> {
        self.server.record.leave_out(self.poller.unserved(), &self.board)
    }

    fn take_arrivals(&mut self) -> Vec<TracedArrival> {
        std::mem::take(&mut self.arrivals)
    }

    fn supersede(&mut self) {
        self.poller.handle_superseded();
    }

    fn come_through(&mut self, relays: &[String]) {
        self.poller.handle_relays(relays.to_vec());
    }

    fn take_loops(&mut self) -> Vec<String> {
        std::mem::take(&mut self.looped)
    }

    fn board(&self) -> &Board {
        &self.board
    }

    fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        self.poller.words(type_url, name)
    }

    fn removal_times(&self) -> (Duration, Duration) {
        (self.settings.removal_quiet, self.settings.order_gate)
    }
}
