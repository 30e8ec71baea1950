// SPDX-License-Identifier: Apache-2.0
//! What a session says of itself when an operator asks.
//!
//! Owns what is looked at for each depth of a question. Changes nothing.

use std::sync::Arc;
use std::time::Instant;

use super::Session;
use crate::inquiry::{ClientResource, ClientStream, ClientType, Depth, Inquiry};
use crate::protocol::{HeldResource, Portrait};
use crate::wire::Peer;
use crate::xds::{Sight, TypeUrl};

/// So many resources are told that the client rejects, where each type is a line.
const REJECTED_MAX: usize = 64;

impl Session {
    /// Answers a question, if it is asked.
    pub(super) fn answer(&self, inquiry: &Arc<Inquiry>) {
        let question = inquiry.question();
        let Some(node) = self.server.node() else { return };
        if !question.whom.is_about(self.accounts.number(), node) {
            return;
        }
        let sight = self.sight();
        let types = self.types(&sight, &question.depth);
        let asked = |type_url: &TypeUrl| types.iter().any(|one| one.type_url == *type_url);
        let concerned = match &question.depth {
            Depth::Types | Depth::Resources => true,
            Depth::Resource(..) => types.iter().any(|one| !one.resources.is_empty()),
        };
        if !concerned || !question.whom.type_url.as_ref().is_none_or(asked) {
            return;
        }
        inquiry.answer(ClientStream {
            number: self.accounts.number(),
            node: node.clone(),
            identity: self.accounts.identity().clone(),
            peer: match *self.accounts.peer() {
                Peer::Tcp(address) => Some(address),
                Peer::Unix => None,
            },
            dialect: self.method.dialect,
            service: self.method.service.clone(),
            since: self.accounts.since(),
            requests: self.accounts.requests().0,
            request_bytes: self.accounts.requests().1,
            types,
        });
    }

    fn types(&self, sight: &Sight, depth: &Depth) -> Vec<ClientType> {
        let types = self.server.portraits(sight, depth.type_url()).map(|portrait| {
            let accepted = self.accounts.accepted(portrait.type_url());
            let seats = self.seats.as_ref();
            ClientType {
                server: seats.and_then(|seats| seats.server_of(portrait.type_url())),
                ..client_type(portrait, (accepted, self.waits_since(portrait)), depth)
            }
        });
        types.collect()
    }

    /// Returns since when the client waits for something of the type: on earlier streams too, until one of them was answered.
    fn waits_since(&self, portrait: Portrait<'_>) -> Option<Instant> {
        let before = self.accounts.waits().filter(|_| !self.answered());
        portrait
            .waiting_since()
            .map(|since| before.map_or(since, |before| before.min(since)))
    }

    /// The stream ends unanswered: its client still waits.
    pub(super) fn note_unanswered(&self) {
        let Some(node) = self.server.node() else { return };
        let sight = self.sight();
        let portraits = self.server.portraits(&sight, None);
        let waits = portraits.filter_map(|portrait| Some((portrait.type_url(), self.waits_since(portrait)?)));
        if let Some(longest) = waits.min_by_key(|(_, since)| *since) {
            self.accounts
                .unanswered(&self.shared, (node, &self.method), longest, self.now);
        }
    }
}

fn client_type(
    portrait: Portrait<'_>,
    (accepted, waiting_since): (Option<Instant>, Option<Instant>),
    depth: &Depth,
) -> ClientType {
    let resources: Vec<ClientResource> = match depth {
        Depth::Types => Vec::new(),
        Depth::Resources => portrait.stands().map(resource).collect(),
        Depth::Resource(_, name) => portrait.stand(name).map(resource).into_iter().collect(),
    };
    let settled = resources.iter().all(|resource| resource.standing.is_settled());
    ClientType {
        type_url: portrait.type_url().clone(),
        status: portrait.status(),
        wildcard: portrait.wildcard(),
        names: portrait.names(),
        sent: portrait.sent(),
        accepted,
        unanswered_since: portrait.unanswered_since(),
        waiting_since,
        server: None,
        objections: portrait.objections().cloned().collect(),
        rejected: portrait.rejections().take(REJECTED_MAX).map(resource).collect(),
        ready: (*depth == Depth::Resources).then_some(portrait.is_quiet() && settled),
        resources,
    }
}

fn resource(stand: HeldResource<'_>) -> ClientResource {
    ClientResource {
        name: stand.name.clone(),
        standing: stand.standing,
        resource: stand.resource.cloned(),
        objection: stand.objection.cloned(),
        since: stand.since,
        older: stand.older,
    }
}
