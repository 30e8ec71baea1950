// SPDX-License-Identifier: Apache-2.0
//! One stream to the control plane: what the peer asked for, and what it was sent. Changes are never queued: each message holds
//! everything that changed since the last one.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use h2::SendStream;
use peers::request::prefix;
use prost::Message;

use super::Counts;
use super::answers::{Answers, Step};
use super::requests::Requests;
use crate::origin::ledger::Ledger;
use crate::wire::kind::{Dialect, Kind};

/// One stream, with a topic for each type in the order in which changes are safe.
pub(crate) struct Session<'a> {
    dialect: Dialect,
    answers: &'a Answers,
    counts: &'a Counts,
    stream: SendStream<Bytes>,
    topics: Vec<Topic>,
    responses: u64,
}

/// One type. Invariant: the peer was sent everything that it asks for as of generation `sent`, except `owed`.
struct Topic {
    ledger: Arc<Ledger>,
    requested: bool,
    wildcard: bool,
    names: BTreeSet<u32>,
    owed: BTreeSet<u32>,
    sent: Option<usize>,
    versions: u64,
}

/// Smaller messages are copied into one frame.
const COPIED_BYTES_MAX: usize = 16 * 1024;

impl<'a> Session<'a> {
    /// Creates a session for all types, or for one.
    pub(crate) fn new(
        dialect: Dialect,
        kind: Option<Kind>,
        answers: &'a Answers,
        counts: &'a Counts,
        stream: SendStream<Bytes>,
    ) -> Self {
        let ledgers = answers.world.ledgers().iter();
        let served = ledgers.filter(|ledger| kind.is_none_or(|kind| kind == ledger.kind()));
        Self {
            dialect,
            answers,
            counts,
            stream,
            topics: served.map(Topic::new).collect(),
            responses: 0,
        }
    }

    /// Serves the stream until it ends.
    pub(crate) async fn run(&mut self, mut requests: Requests) -> anyhow::Result<()> {
        let mut changes = self.answers.world.bell.watch();
        loop {
            while let Some(request) = requests.take() {
                self.handle(request)?;
            }
            changes.borrow_and_update();
            for at in 0..self.topics.len() {
                let (dialect, answers) = (self.dialect, self.answers);
                let due = self.topics.get_mut(at).map(|topic| topic.due(dialect, answers));
                for message in due.into_iter().flatten() {
                    self.write(message).await?;
                }
            }
            tokio::select! {
                read = requests.read() => read?,
                changed = changes.changed() => changed?,
            }
        }
    }

    fn handle(&mut self, request: Bytes) -> anyhow::Result<()> {
        match self.dialect {
            Dialect::Delta => {
                let request = DeltaDiscoveryRequest::decode(request)?;
                self.count(
                    &request.response_nonce,
                    request.error_detail.map(|status| status.message),
                );
                if let Some(topic) = self.topic(&request.type_url) {
                    topic.handle_delta(&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                    topic.handle_versions(request.initial_resource_versions.into_keys().collect());
                }
            }
            Dialect::Sotw => {
                let request = DiscoveryRequest::decode(request)?;
                self.count(
                    &request.response_nonce,
                    request.error_detail.map(|status| status.message),
                );
                if let Some(topic) = self.topic(&request.type_url) {
                    topic.handle_state(&request.resource_names);
                }
            }
        }
        Ok(())
    }

    /// Returns the topic of a type, also of one without resources: whoever asks for all of it is told that there are none.
    fn topic(&mut self, type_url: &str) -> Option<&mut Topic> {
        // on a stream for one type, requests may omit the type.
        if type_url.is_empty() && self.topics.len() == 1 {
            return self.topics.first_mut();
        }
        let kind = Kind::of(type_url.as_bytes())?;
        let known = self.topics.iter().position(|topic| topic.ledger.kind() == kind);
        let at = known.unwrap_or(self.topics.len());
        if known.is_none() {
            self.topics.push(Topic::new(&Arc::new(Ledger::empty(kind))));
        }
        self.topics.get_mut(at)
    }

    fn count(&self, nonce: &str, rejection: Option<String>) {
        match rejection {
            Some(message) => self.counts.reject(message),
            None if !nonce.is_empty() => {
                self.counts.acknowledgements.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }

    /// Sends `message` with a new nonce. Waits for room in the window, so that a slow peer costs no memory.
    async fn write(&mut self, message: Bytes) -> anyhow::Result<()> {
        self.responses += 1;
        let mut tail = Vec::new();
        prost::encoding::string::encode(5, &format!("n{}", self.responses), &mut tail);
        let length = message.len() + tail.len();
        let prefix = prefix(length);
        self.counts.answered(prefix.len() + length);
        let parts = if message.len() <= COPIED_BYTES_MAX {
            vec![Bytes::from([&prefix, &*message, &tail].concat())]
        } else {
            vec![Bytes::copy_from_slice(&prefix), message, Bytes::from(tail)]
        };
        for mut part in parts {
            while !part.is_empty() {
                self.stream.reserve_capacity(part.len());
                let room = poll_fn(|context| self.stream.poll_capacity(context)).await;
                let room = room.context("the peer ended the stream")??;
                self.stream.send_data(part.split_to(room.min(part.len())), false)?;
            }
        }
        Ok(())
    }
}

impl Topic {
    fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            requested: false,
            wildcard: false,
            names: BTreeSet::new(),
            owed: BTreeSet::new(),
            sent: None,
            versions: 0,
        }
    }

    fn handle_delta(&mut self, added: &[String], removed: &[String]) {
        let (first, before) = (!std::mem::replace(&mut self.requested, true), self.wildcard);
        // C-05: a first request without names asks for everything, for types that allow it.
        let legacy = first && self.ledger.kind().wildcard();
        self.wildcard |= legacy && added.is_empty() && removed.is_empty();
        self.wildcard |= added.iter().any(|name| name == "*");
        self.wildcard &= !removed.iter().any(|name| name == "*");
        if self.wildcard && !before {
            // Who asked for names before has not had everything.
            self.sent = None;
        }
        // C-11: a resource that is asked for again is sent again.
        let added = self.indexes(added);
        self.owed.extend(&added);
        self.names.extend(added);
        for index in self.indexes(removed) {
            self.names.remove(&index);
            self.owed.remove(&index);
        }
    }

    /// C-13: of some types, what the peer holds is asked for, too.
    fn handle_versions(&mut self, held: Vec<String>) {
        if self.ledger.kind().asks_by_versions() {
            let held = self.indexes(&held);
            self.owed.extend(&held);
            self.names.extend(held);
        }
    }

    fn handle_state(&mut self, names: &[String]) {
        let names: BTreeSet<u32> = self.indexes(names).into_iter().collect();
        self.wildcard = names.is_empty() && self.ledger.kind().wildcard();
        self.owed.extend(names.difference(&self.names));
        self.names = names;
        self.requested = true;
    }

    fn indexes(&self, names: &[String]) -> Vec<u32> {
        let ledger = &self.ledger;
        names.iter().filter_map(|name| ledger.index(name.as_bytes())).collect()
    }

    /// Returns the messages, without nonces, that bring the peer up to date.
    fn due(&mut self, dialect: Dialect, answers: &Answers) -> Vec<Bytes> {
        if !self.requested {
            return Vec::new();
        }
        let (since, until) = (self.sent, self.ledger.generation());
        self.sent = Some(until);
        if self.wildcard {
            self.owed.clear();
            if since == Some(until) {
                return Vec::new();
            }
            let step = Step {
                kind: self.ledger.kind(),
                dialect,
                since,
                until,
            };
            return answers.wildcard(&self.ledger, step).to_vec();
        }
        if let Some(since) = since.filter(|since| *since < until) {
            let (changed, _) = self.ledger.changed_since(since);
            self.owed
                .extend(changed.iter().filter(|index| self.names.contains(index)));
        }
        let owed = std::mem::take(&mut self.owed);
        if owed.is_empty() {
            return Vec::new();
        }
        match dialect {
            Dialect::Delta => Answers::delta(&self.ledger, owed.into_iter().collect(), until),
            Dialect::Sotw => {
                self.versions += 1;
                let version = format!("{until}.{}", self.versions);
                vec![Answers::sotw(
                    &self.ledger,
                    self.names.iter().copied().collect(),
                    &version,
                )]
            }
        }
    }
}
