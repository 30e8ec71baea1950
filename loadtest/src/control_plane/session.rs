//! One stream to the control plane: what the peer asked for, and what it was sent. Changes are never queued: whatever
//! changed since the last message goes into the next one.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use bytes::{Buf, Bytes, BytesMut};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::proto::google::rpc::Status;
use h2::{RecvStream, SendStream};
use prost::Message;

use super::Counts;
use super::answers::{Answers, Step};
use crate::arguments::Dialect;
use crate::wire;

/// One stream. Invariant: the peer was sent everything that it asks for as of generation `sent`, but for `owed`.
pub(crate) struct Session<'a> {
    dialect: Dialect,
    answers: &'a Answers,
    counts: &'a Counts,
    stream: SendStream<Bytes>,
    requested: bool,
    wildcard: bool,
    names: BTreeSet<u32>,
    owed: BTreeSet<u32>,
    sent: Option<usize>,
    responses: u64,
}

/// Smaller messages are copied into one frame.
const COPIED_BYTES_MAX: usize = 16 * 1024;
const PREFIX_BYTES: usize = 5;

impl<'a> Session<'a> {
    pub(crate) const fn new(
        dialect: Dialect,
        answers: &'a Answers,
        counts: &'a Counts,
        stream: SendStream<Bytes>,
    ) -> Self {
        Self {
            dialect,
            answers,
            counts,
            stream,
            requested: false,
            wildcard: false,
            names: BTreeSet::new(),
            owed: BTreeSet::new(),
            sent: None,
            responses: 0,
        }
    }

    /// Serves the stream until it ends.
    pub(crate) async fn run(&mut self, mut body: RecvStream) -> anyhow::Result<()> {
        let mut generation = self.answers.ledger.watch();
        let mut received = BytesMut::new();
        loop {
            tokio::select! {
                data = body.data() => {
                    let data = data.context("the peer ended the stream")??;
                    body.flow_control().release_capacity(data.len())?;
                    received.extend_from_slice(&data);
                    while let Some(request) = message(&mut received) {
                        self.handle(request)?;
                    }
                }
                changed = generation.changed() => changed?,
            }
            let until = *generation.borrow_and_update();
            for message in self.due(until) {
                self.write(message).await?;
            }
        }
    }

    fn handle(&mut self, request: Bytes) -> anyhow::Result<()> {
        match self.dialect {
            Dialect::Delta => {
                let request = DeltaDiscoveryRequest::decode(request)?;
                if !self.is_asked(&request.type_url, &request.response_nonce, request.error_detail) {
                    return Ok(());
                }
                let first = !std::mem::replace(&mut self.requested, true);
                let (added, removed) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                // C-05: a first request without any name asks for everything, where the type has that.
                let legacy = first && self.answers.ledger.kind().wildcard();
                self.wildcard |= legacy && added.is_empty() && removed.is_empty();
                self.wildcard |= added.iter().any(|name| name == "*");
                self.wildcard &= !removed.iter().any(|name| name == "*");
                // C-11: what is asked for again is sent again.
                let added = self.indexes(added);
                self.owed.extend(&added);
                self.names.extend(added);
                for index in self.indexes(removed) {
                    self.names.remove(&index);
                    self.owed.remove(&index);
                }
            }
            Dialect::Sotw => {
                let request = DiscoveryRequest::decode(request)?;
                if !self.is_asked(&request.type_url, &request.response_nonce, request.error_detail) {
                    return Ok(());
                }
                let names: BTreeSet<u32> = self.indexes(&request.resource_names).into_iter().collect();
                self.wildcard = names.is_empty() && self.answers.ledger.kind().wildcard();
                self.owed.extend(names.difference(&self.names));
                self.names = names;
                self.requested = true;
            }
        }
        Ok(())
    }

    /// Counts a request, and says whether it is about the type that is served here.
    fn is_asked(&self, type_url: &str, nonce: &str, rejection: Option<Status>) -> bool {
        match rejection {
            Some(status) => self.counts.reject(status.message),
            None if !nonce.is_empty() => {
                self.counts.acknowledgements.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
        type_url == self.answers.ledger.kind().type_url()
    }

    fn indexes(&self, names: &[String]) -> Vec<u32> {
        let ledger = &self.answers.ledger;
        names.iter().filter_map(|name| ledger.index(name.as_bytes())).collect()
    }

    /// The messages, but for their nonces, that bring the peer to generation `until`.
    fn due(&mut self, until: usize) -> Vec<Bytes> {
        if !self.requested {
            return Vec::new();
        }
        let since = self.sent;
        if self.wildcard {
            self.owed.clear();
            self.sent = Some(until);
            if since == Some(until) {
                return Vec::new();
            }
            let step = Step {
                dialect: self.dialect,
                since,
                until,
            };
            return self.answers.wildcard(step).to_vec();
        }
        if let Some(since) = since {
            let (changed, _) = self.answers.ledger.changed_since(since);
            self.owed
                .extend(changed.iter().filter(|index| self.names.contains(index)));
        }
        self.sent = Some(until);
        let owed = std::mem::take(&mut self.owed);
        if owed.is_empty() {
            return Vec::new();
        }
        match self.dialect {
            Dialect::Delta => self.answers.delta(owed.into_iter().collect(), until),
            Dialect::Sotw => {
                let version = format!("{until}.{}", self.responses);
                vec![self.answers.sotw(self.names.iter().copied().collect(), &version)]
            }
        }
    }

    /// Sends `message` with a new nonce. It waits for room, so that a slow peer costs no memory.
    async fn write(&mut self, message: Bytes) -> anyhow::Result<()> {
        self.responses += 1;
        self.counts.responses.fetch_add(1, Ordering::Relaxed);
        let mut tail = Vec::new();
        prost::encoding::string::encode(5, &format!("n{}", self.responses), &mut tail);
        let prefix = wire::prefix(message.len() + tail.len());
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

/// Takes the next complete gRPC message off `received`.
fn message(received: &mut BytesMut) -> Option<Bytes> {
    let [_, length @ ..] = *received.first_chunk::<PREFIX_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    if received.len() < PREFIX_BYTES + length {
        return None;
    }
    received.advance(PREFIX_BYTES);
    Some(received.split_to(length).freeze())
}
