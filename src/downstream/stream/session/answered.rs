// SPDX-License-Identifier: Apache-2.0
//! What a session says of itself when an operator asks.
//!
//! Owns what is looked at for each depth of a question. Changes nothing.

use std::sync::Arc;
use std::time::Instant;

use super::Session;
use crate::inquiry::{ClientStream, ClientType, Depth, Inquiry};
use crate::wire::Peer;
use crate::xds::{Sight, TypeUrl};

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
        let types = self.server.portraits(sight, depth).map(|one| ClientType {
            server: self.seats.as_ref().and_then(|seats| seats.server_of(&one.type_url)),
            accepted: self.accounts.accepted(&one.type_url),
            waiting_since: one.waiting_since.map(|since| self.waits_since(since)),
            ..one
        });
        types.collect()
    }

    /// Returns since when the client waits, of which `since` is known on this stream. It may have waited on earlier ones, until one of them
    /// was answered.
    fn waits_since(&self, since: Instant) -> Instant {
        let before = self.accounts.waits().filter(|_| !self.answered());
        before.map_or(since, |before| before.min(since))
    }

    /// The stream ends unanswered: its client still waits.
    pub(super) fn note_unanswered(&self) {
        let Some(node) = self.server.node() else { return };
        let sight = self.sight();
        let waits = self.server.waiting(&sight);
        let waits = waits.map(|(type_url, since)| (type_url, self.waits_since(since)));
        if let Some(longest) = waits.min_by_key(|(_, since)| *since) {
            self.accounts
                .unanswered(&self.shared, (node, &self.method), longest, self.now);
        }
    }
}
