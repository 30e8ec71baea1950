//! What a view asks a polled server for, and what comes of it.
//!
//! Owns the machine and its polls. For the machine it is one stream: it begins with the first poll and ends with the first
//! failure, after which everything is asked for anew. Refuses to know the other leg and the view.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;

use super::exchange::{Reply, exchange};
use super::topic::{Outcome, Topic};
use super::{Polling, RestServer};
use crate::json::{Bounds, Secrets, Tree, Unknown};
use crate::proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use crate::proto::google::rpc;
use crate::protocol::{Client, Received, Request};
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::upstream::status::{Board, Phase};
use crate::upstream::writer::Talk;
use crate::xds::{Changes, Dialect, Slot, Standing, Target as Wanted, TypeUrl, Want};

/// One of the two ways on which a view's server is polled.
pub struct PollLeg {
    client: Client,
    server: Arc<RestServer>,
    polling: Arc<Polling>,
    topics: BTreeMap<TypeUrl, Topic>,
    /// Whether the server answered after its last failure.
    answers: bool,
    failing: bool,
    nonce: u64,
    board: Board,
}

impl PollLeg {
    pub(super) fn new(client: Client, server: Arc<RestServer>, polling: Arc<Polling>) -> Self {
        Self {
            client,
            server,
            polling,
            topics: BTreeMap::new(),
            answers: false,
            failing: false,
            nonce: 0,
            board: Board::new(Dialect::Sotw),
        }
    }

    /// What the machine says goes into the next poll of its type.
    fn listen(&mut self, now: Instant) {
        while let Some(request) = self.client.poll_request(now) {
            let Request::Sotw(request) = request else { continue };
            if let Some(rpc::Status { message, .. }) = &request.error_detail {
                self.server.metrics.nacks.inc();
                tracing::warn!(
                    server = self.server.uri,
                    type_url = request.type_url,
                    fault = message,
                    "response refused"
                );
            }
            let type_url = TypeUrl::new(&request.type_url);
            if let Some(topic) = self.topics.get_mut(&type_url) {
                topic.version = request.version_info;
                topic.fault = request.error_detail;
            }
        }
    }

    fn start(&mut self, now: Instant) {
        for (type_url, topic) in &mut self.topics {
            if topic.under_way.is_some() || topic.due > now {
                continue;
            }
            // H-03: a type without a path cannot be polled.
            let Some(path) = type_url.path() else { continue };
            let version = if topic.changed {
                String::new()
            } else {
                topic.version.clone()
            };
            let asked = DiscoveryRequest {
                version_info: version,
                node: Some(self.client.node().clone()),
                resource_names: topic.names(),
                type_url: type_url.url().to_owned(),
                error_detail: topic.fault.clone(),
                ..Default::default()
            };
            let name = "envoy.service.discovery.v3.DiscoveryRequest";
            let written = self.polling.schemas.decode(name, &asked.encode_to_vec(), Secrets::Show);
            let (server, polling, kept) = (self.server.clone(), self.polling.clone(), topic.link.take());
            topic.under_way = Some(Box::pin(async move {
                match written {
                    Ok(json) => exchange(&server, &polling, &path, Bytes::from(json.text), kept).await,
                    Err(fault) => {
                        let why = fault.to_string();
                        (Err(Failure::Response { path, why }), kept)
                    }
                }
            }));
        }
    }

    fn handle(&mut self, type_url: &TypeUrl, outcome: Outcome, changes: &mut Vec<Changes>) {
        let (now, (result, link)) = (now(), outcome);
        let response = result.and_then(|reply| match reply {
            Reply::News(body) => self.read(type_url, &body).map(Some),
            Reply::Nothing => Ok(None),
        });
        let Some(topic) = self.topics.get_mut(type_url) else {
            return;
        };
        topic.link = link;
        match response {
            Ok(response) => {
                topic.answered(self.polling.interval, now);
                if !std::mem::replace(&mut self.answers, true) {
                    self.server.metrics.stream_opened();
                    self.board.enter(Phase::Answering, Dialect::Sotw);
                    tracing::info!(server = self.server.uri, "control plane answers");
                }
                self.board.heard();
                self.failing = false;
                if !self.client.connected() {
                    // Another poll failed in the meantime: this answer is to a question that is not open any more.
                    topic.due = now;
                } else if let Some(response) = response {
                    topic.changed = false;
                    self.server.metrics.responses.inc();
                    changes.extend(self.client.handle_sotw(response, now));
                    if let Some(Received {
                        type_url,
                        valid,
                        invalid,
                    }) = self.client.take_received()
                    {
                        self.server.metrics.resources(&type_url, valid, invalid);
                    }
                }
            }
            Err(failure) => {
                let wait = topic.failed(&failure, now);
                self.server.metrics.failures.inc();
                tracing::warn!(
                    server = self.server.uri, error = %failure, retry_in = ?wait, "a poll failed; what is known stays"
                );
                // A server that does not have one type may well have the others.
                if !matches!(failure, Failure::Refused { status: 400..=499, .. }) {
                    self.board.wait(now + wait, None);
                    self.fail(changes);
                }
            }
        }
        self.board.note(self.topics.values().find_map(Topic::trouble));
    }

    /// H-07: what was good stays; what is waited for is not waited for while nobody is there to answer.
    fn fail(&mut self, changes: &mut Vec<Changes>) {
        self.board.fail();
        if !std::mem::replace(&mut self.failing, true) {
            self.server.metrics.lost.inc();
        }
        if std::mem::take(&mut self.answers) {
            self.server.metrics.stream_closed();
        }
        if self.client.connected() {
            changes.extend(self.client.handle_disconnected());
        }
        for topic in self.topics.values_mut() {
            topic.changed = true;
        }
    }

    /// E-13: a resource that cannot be read stands in it as an empty one, so that it alone is refused.
    fn read(&mut self, type_url: &TypeUrl, body: &[u8]) -> Result<DiscoveryResponse, Failure> {
        let failed = |fault: crate::json::Fault| Failure::Response {
            path: type_url.path().unwrap_or_default(),
            why: fault.to_string(),
        };
        let tree = Tree::json(body, Bounds::FILE).map_err(failed)?;
        let said = self.polling.schemas.response(&tree, Unknown::Ignore).map_err(failed)?;
        let resources = said.resources.into_iter().map(|read| match read {
            Ok(parsed) => parsed.value,
            Err(fault) => {
                tracing::warn!(server = self.server.uri, %type_url, %fault, "a resource cannot be read");
                Default::default()
            }
        });
        self.nonce += 1;
        Ok(DiscoveryResponse {
            version_info: said.version_info,
            resources: resources.collect(),
            type_url: type_url.url().to_owned(),
            nonce: self.nonce.to_string(),
            ..Default::default()
        })
    }
}

impl Talk for PollLeg {
    fn want(&mut self, want: &Want) -> Vec<Changes> {
        if want.wanted && want.type_url.path().is_none() {
            tracing::warn!(server = self.server.uri, type_url = %want.type_url, "this type cannot be asked for over REST");
        }
        let now = now();
        let topic = self.topics.entry(want.type_url.clone());
        let topic = topic.or_insert_with(|| Topic::new(now));
        topic.want(want, now);
        if !topic.is_wanted() {
            self.topics.remove(&want.type_url);
        }
        self.board.wanted(!self.topics.is_empty(), Dialect::Sotw);
        self.client.handle_want(want)
    }

    fn restore(&mut self, type_url: &TypeUrl, target: &Wanted, slot: &Slot) -> Option<Changes> {
        self.client.handle_restored(type_url, target, slot)
    }

    fn turn(&mut self, changes: &mut Vec<Changes>) {
        let now = now();
        changes.extend(self.client.handle_timeout(now));
        let due = self.topics.values().any(|topic| topic.due <= now);
        if due && self.client.wanted() && !self.client.connected() {
            // After a failure everything is asked for anew.
            self.client.handle_superseded();
            self.client.handle_connected(Duration::ZERO);
        }
        self.listen(now);
        if self.client.connected() {
            self.start(now);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let mut done = Vec::new();
        for (type_url, topic) in &mut self.topics {
            if let Some(poll) = &mut topic.under_way
                && let Poll::Ready(outcome) = poll.as_mut().poll(cx)
            {
                topic.under_way = None;
                done.push((type_url.clone(), outcome));
            }
        }
        if done.is_empty() {
            return Poll::Pending;
        }
        for (type_url, outcome) in done {
            self.handle(&type_url, outcome, changes);
        }
        Poll::Ready(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let idle = self.topics.iter().filter(|(_, topic)| topic.under_way.is_none());
        let due = idle.filter(|(type_url, _)| type_url.path().is_some());
        due.map(|(_, topic)| topic.due).chain(self.client.poll_timeout()).min()
    }

    /// G-08: what failed has to answer before it counts again.
    fn standing(&self) -> Option<Standing> {
        let standing = match (self.failing, self.answers) {
            (true, _) => Standing::Failing,
            (false, true) => Standing::Up,
            (false, false) => Standing::Trying,
        };
        self.client.wanted().then_some(standing)
    }

    fn supersede(&mut self) {
        // G-12: it is not told what it said before.
        self.topics.values_mut().for_each(|topic| topic.changed = true);
    }

    fn board(&self) -> &Board {
        &self.board
    }
}

impl Drop for PollLeg {
    fn drop(&mut self) {
        if self.answers {
            self.server.metrics.stream_closed();
        }
    }
}
