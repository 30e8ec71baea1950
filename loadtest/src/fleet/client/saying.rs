// SPDX-License-Identifier: Apache-2.0
//! What a client sends on its streams: which names it asks for, and how it answers responses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use distributary::proto::google::rpc::Status;
use peers::request::{Request, framed};

use super::lane::Lane;
use super::transcript::What;
use super::{Client, Output, Reply};
use crate::wire::Reader;
use crate::wire::kind::{Dialect, Kind};

/// The error text of clients that reject correct responses.
pub(crate) const ON_PURPOSE: &str = "rejected on purpose by a load test";

impl Client {
    pub(super) fn reply(&mut self, reply: &Reply, now: Instant) {
        let Some((lane, _)) = self.lanes.get_mut(reply.lane) else {
            return;
        };
        let mut request = Request {
            type_url: reply.kind.type_url().to_owned(),
            nonce: reply.nonce.clone(),
            rejection: reply.rejects.then(rejection),
            ..Request::default()
        };
        // In delta an acknowledgement says no version, and nothing is repeated.
        if self.profile.dialect == Dialect::Sotw
            && let Some(last) = lane.last.get_mut(reply.kind as usize)
        {
            request.version = if reply.rejects {
                last.take().map(|last| last.1).unwrap_or_default()
            } else {
                if let Some(accepted) = self.accepted.get_mut(reply.kind as usize) {
                    *accepted = Some(reply.version.as_str().into());
                }
                reply.version.clone()
            };
            *last = Some(Box::new((reply.nonce.clone(), request.version.clone())));
            // E-02: it repeats all names.
            request.names = self.names_of(reply.kind);
        }
        self.say(reply.lane, reply.kind, request, now);
    }

    /// Returns all names that are asked for of a type.
    pub(super) fn names_of(&self, kind: Kind) -> Vec<String> {
        let subscription = self.subscriptions.iter().find(|it| it.kind() == kind);
        let names = subscription.and_then(|it| Some((it, it.names()?)));
        names.map_or_else(Vec::new, |(it, names)| {
            names.iter().map(|index| it.ledger.name(*index)).collect()
        })
    }

    /// Asks for names of a type, or for all, without answering a response.
    pub(super) fn ask(&mut self, kind: Kind, new: &[u32], gone: &[u32], first: bool, now: Instant) {
        let Some(lane) = self.lane_for(kind) else { return };
        let dialect = self.profile.dialect;
        let Some(subscription) = self.subscriptions.iter().find(|it| it.kind() == kind) else {
            return;
        };
        let ledger = Arc::clone(&subscription.ledger);
        let by_name = subscription.names().is_some();
        let returning = first && dialect == Dialect::Delta && self.profile.behaviour.remembers;
        let held = if returning { subscription.versions() } else { Vec::new() };
        let held: BTreeMap<_, _> = held
            .into_iter()
            .map(|(index, version)| (ledger.name(index), version))
            .collect();
        let texts = |indexes: &[u32]| indexes.iter().map(|it| ledger.name(*it)).collect::<Vec<_>>();
        let Some((stream, _)) = self.lanes.get_mut(lane) else {
            return;
        };
        if !(new.is_empty() && gone.is_empty()) {
            stream.forget_version(kind);
        }
        let first_of_stream = !std::mem::replace(&mut stream.asked, true);
        let node = first_of_stream.then(|| self.profile.identity.node(self.number));
        let last = stream.last.get(kind as usize).cloned().flatten();
        // C-04: a delta request without a nonce answers nothing.
        let (nonce, version) = *last.filter(|_| dialect == Dialect::Sotw).unwrap_or_default();
        let (names, dropped) = match dialect {
            // C-12, C-13: ztunnel takes `*` back at once, and names what it holds in its versions alone.
            Dialect::Delta if first && by_name && kind.asks_by_versions() => {
                let lacking = texts(new).into_iter().filter(|name| !held.contains_key(name));
                let all = || std::iter::once("*".to_owned());
                (all().chain(lacking).collect(), all().collect())
            }
            Dialect::Delta => (texts(new), texts(gone)),
            Dialect::Sotw => (self.names_of(kind), Vec::new()),
        };
        let request = Request {
            node,
            type_url: kind.type_url().to_owned(),
            nonce,
            version,
            names,
            dropped,
            held,
            rejection: None,
        };
        self.say(lane, kind, request, now);
    }

    fn say(&mut self, lane: usize, kind: Kind, request: Request, now: Instant) {
        let what = What::Said {
            kind,
            names: request.names.len(),
            dropped: request.dropped.len(),
            held: request.held.len(),
            nonce: request.nonce.as_str().into(),
            rejected: request.rejection.is_some(),
        };
        self.transcript.note(now, lane, what);
        let bytes = match self.profile.dialect {
            Dialect::Delta => framed(&request.delta()),
            Dialect::Sotw => framed(&request.sotw()),
        };
        self.outputs.push_back(Output::Send(lane, bytes));
    }

    pub(super) fn open(&mut self, kind: Option<Kind>, now: Instant) {
        let dialect = self.profile.dialect;
        let lane = self.lanes.len();
        let mut stream = Lane::new(dialect, kind);
        stream.bring(&self.accepted);
        self.lanes.push((stream, Reader::new(dialect)));
        let v2 = self.profile.interests.iter().any(|(kind, _)| kind.is_v2());
        let path = kind
            .and_then(|kind| kind.path(dialect))
            .unwrap_or_else(|| dialect.path(v2));
        self.transcript.note(now, lane, What::Opened);
        self.outputs.push_back(Output::Open(lane, path));
    }

    fn lane_for(&self, kind: Kind) -> Option<usize> {
        let of = |lane: &Lane| lane.kind.is_none_or(|it| it == kind);
        self.lanes.iter().position(|(lane, _)| of(lane))
    }
}

fn rejection() -> Status {
    Status {
        // INVALID_ARGUMENT
        code: 3,
        message: ON_PURPOSE.to_owned(),
        ..Status::default()
    }
}
