// SPDX-License-Identifier: Apache-2.0
//! The polls of a client that uses REST and has no streams: one poll of each type at a time, and reading of the answers. Knows
//! JSON, and what an answer must not contain. Knows nothing of HTTP.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::arrival::{Arrival, Eye};
use super::lane::subscription;
use super::transcript::What;
use super::{Client, Outcome, Output};
use crate::fleet::violation::Violation;
use crate::measure::loss::Status;
use crate::measure::tally::Tally;
use crate::origin::ledger::Mark;
use crate::origin::shape::canonical;
use crate::wire::http2::hpack::Head;
use crate::wire::kind::Kind;

/// The polls of one type. Invariant: `next` is set exactly while no poll is in flight.
#[derive(Debug)]
pub(super) struct Poll {
    kind: Kind,
    path: &'static str,
    next: Option<Instant>,
    /// The client's node.
    node: Arc<Value>,
    /// The version of the last answer.
    version: String,
    status: Option<u16>,
    body: Vec<u8>,
}

/// The JSON of an answer.
#[derive(Deserialize)]
struct Written {
    #[serde(default, alias = "versionInfo")]
    version_info: String,
    #[serde(default, alias = "typeUrl")]
    type_url: String,
    #[serde(default)]
    resources: Vec<Value>,
}

impl Poll {
    /// Returns when the next poll is due.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn handle_head(&mut self, head: &Head) -> Result<(), Violation> {
        self.status = head.status.or(self.status);
        match self.status {
            // H-02: 200 has news, 304 has none, and after 503 the poll is repeated.
            Some(200 | 304 | 503) | None => Ok(()),
            Some(other) => Err(Violation::Status(other)),
        }
    }

    pub(super) fn handle_data(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    /// Takes the answer; none if there is nothing to read.
    fn take(&mut self) -> Result<Option<Written>, Violation> {
        let body = std::mem::take(&mut self.body);
        match self.status.take() {
            Some(200) => {
                let read = serde_json::from_slice(&body);
                read.map(Some).map_err(|error| Violation::Unreadable(error.to_string()))
            }
            Some(_) => Ok(None),
            None => Err(Violation::Ended(Status::Missing, String::new())),
        }
    }
}

impl Client {
    /// Begins to poll each type, from the start or from the last version.
    pub(super) fn begin_polls(&mut self, now: Instant) {
        let before = std::mem::take(&mut self.polls);
        let remembers = self.profile.behaviour.remembers;
        let node = Arc::new(self.profile.identity.json(self.number));
        let kinds: Vec<Kind> = self.subscriptions.iter().map(|it| it.kind()).collect();
        for (kind, path) in kinds.into_iter().filter_map(|kind| Some((kind, kind.poll_path()?))) {
            let known = before.iter().find(|poll| poll.kind == kind && remembers);
            self.polls.push(Poll {
                kind,
                path,
                next: Some(now),
                node: Arc::clone(&node),
                version: known.map(|poll| poll.version.clone()).unwrap_or_default(),
                status: None,
                body: Vec::new(),
            });
        }
        self.poll_due(now);
    }

    /// To be called when more names are asked for: it does not have them, whatever the version of the last answer. A name may have
    /// gone and come back in the meantime, and then that version is the same.
    pub(super) fn forget_polled(&mut self, kind: Kind) {
        for poll in self.polls.iter_mut().filter(|poll| poll.kind == kind) {
            poll.version.clear();
        }
    }

    /// Sends the polls that are due, but none for a type of which the client wants no name yet.
    pub(super) fn poll_due(&mut self, now: Instant) {
        let Some(every) = self.profile.polls else { return };
        for lane in 0..self.polls.len() {
            let Some(poll) = self
                .polls
                .get_mut(lane)
                .filter(|poll| poll.next.is_some_and(|at| at <= now))
            else {
                continue;
            };
            let (kind, path, version) = (poll.kind, poll.path, poll.version.clone());
            let node = Arc::clone(&poll.node);
            let names = self.names_of(kind);
            let wants = names.len();
            // H-06: no names means all names, so a client that wants none must not poll.
            let all = self.subscription(kind).is_some_and(|it| it.names().is_none());
            let Some(poll) = self.polls.get_mut(lane) else { continue };
            if names.is_empty() && !all {
                poll.next = Some(now + every);
                continue;
            }
            poll.next = None;
            let asked = json!({
                "node": *node,
                "version_info": version,
                "resource_names": names,
                "type_url": kind.type_url(),
            });
            let what = What::Said {
                kind,
                names: wants,
                dropped: 0,
                held: 0,
                nonce: version.into(),
                rejected: false,
            };
            self.transcript.note(now, lane, what);
            self.outputs
                .push_back(Output::Post(lane, path, Bytes::from(asked.to_string())));
        }
    }

    /// The answer to a poll is complete.
    pub(super) fn handle_poll(&mut self, lane: usize, tally: &mut Tally, now: Instant) -> Result<Outcome, Violation> {
        let every = self.profile.polls.unwrap_or_default();
        let mut outcome = Outcome::default();
        let Some(poll) = self.polls.get_mut(lane) else {
            return Ok(outcome);
        };
        poll.next = Some(now + every);
        let (kind, bytes) = (poll.kind, poll.body.len());
        let Some(written) = poll.take()? else {
            return Ok(outcome);
        };
        let before = std::mem::replace(&mut poll.version, written.version_info.clone());
        let mut eye = Eye {
            now,
            tally,
            awaited: self.profile.behaviour.is_steady(),
            complete: self.complete,
            tried: &mut self.tried,
        };
        let subscription = subscription(&mut self.subscriptions, kind)?;
        if !(written.type_url.is_empty() || written.type_url == kind.type_url()) {
            return Err(Violation::WrongType(written.type_url));
        }
        for resource in &written.resources {
            let field = |name: &str| resource.get(name).and_then(Value::as_str).unwrap_or_default();
            // every resource is of the response's type.
            if field("@type") != kind.type_url() {
                return Err(Violation::WrongType(field("@type").to_owned()));
            }
            let body = canonical(resource);
            let name = resource.get(kind.name_field()).or_else(|| resource.get("clusterName"));
            subscription.handle(
                Arrival {
                    name: name.and_then(Value::as_str).unwrap_or_default().as_bytes(),
                    version: None,
                    mark: Mark::Json(xxh3_128(&body)),
                    body: &body,
                },
                &mut eye,
            )?;
        }
        if kind.full_state() {
            subscription.handle_full(&mut eye)?;
        }
        let named = subscription.count;
        let (changed, delivered) = subscription.finish();
        // B-04: a different content has a different version.
        if written.version_info.is_empty() {
            return Err(Violation::NoVersion);
        }
        if changed && before == written.version_info {
            return Err(Violation::SameVersion(before));
        }
        eye.tally.responses += 1;
        eye.tally.coalesced += delivered.saturating_sub(1);
        let what = What::Got {
            kind,
            nonce: "".into(),
            version: written.version_info.into(),
            named,
            bytes,
        };
        self.transcript.note(now, lane, what);
        let (came, went) = (
            std::mem::take(&mut subscription.came),
            std::mem::take(&mut subscription.went),
        );
        self.follow(kind, &came, &went, now);
        (outcome.messages, outcome.named) = (1, named);
        self.completed(&mut outcome);
        Ok(outcome)
    }
}
