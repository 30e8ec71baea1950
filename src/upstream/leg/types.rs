// SPDX-License-Identifier: Apache-2.0
//! The types of a leg: which the server ends streams for, passes over, or is not asked for.
//!
//! Owns what operators see of that. Does not decide which leg a type is on.

use super::Leg;
use crate::protocol::{Decided, Doubt};
use crate::upstream::clock::now;
use crate::xds::{Changes, TypeUrl};

impl Leg {
    /// Returns the types that are newly suspected of ending the stream that they share.
    pub(in crate::upstream) fn take_suspected(&mut self) -> Vec<TypeUrl> {
        let suspected = self.blame.take_suspected().into_iter().map(|(type_url, words)| {
            tracing::warn!(
                server = self.dialer.target().record.uri(), leg = ?self.dialer.which(), r#type = %type_url, reason = %words,
                "the server ends the stream when it is asked for this type; the type has a stream of its own from now on"
            );
            self.board.suspect(&type_url, &words);
            type_url
        });
        suspected.collect()
    }

    /// Returns how the last stream ended, once, if its types may be the reason. Those who wait for them get an error.
    pub(in crate::upstream) fn take_trouble(&mut self, changes: &mut Vec<Changes>) -> Option<String> {
        let words = self.blame.take_trouble()?;
        changes.extend(self.client.handle_refused(&words));
        Some(words)
    }

    /// A type that is suspected here has ended a stream of its own.
    pub(in crate::upstream) fn troubled(&mut self, type_url: &TypeUrl, words: &str) {
        self.blame.suspects_mut().handle_trouble(type_url, now());
        self.board.suspect(type_url, words);
    }

    /// Returns the types that are suspected no more.
    pub(in crate::upstream) fn take_rejoined(&mut self) -> Vec<TypeUrl> {
        let rejoined = self.blame.suspects_mut().handle_timeout(now());
        for type_url in &rejoined {
            tracing::info!(
                server = self.dialer.target().record.uri(), leg = ?self.dialer.which(), r#type = %type_url,
                "no trouble with this type for an hour; it shares a stream with the other types again"
            );
            self.board.rejoin(type_url);
        }
        rejoined
    }

    /// The server has passed over a question for the type. Returns whether to ask it anew.
    pub(in crate::upstream) fn asks_anew(&mut self, type_url: &TypeUrl) -> bool {
        self.blame.suspects_mut().handle_doubt(type_url, now())
    }

    /// Whether there is a stream.
    pub(in crate::upstream) const fn is_connected(&self) -> bool {
        self.client.connected()
    }

    /// A question on another stream has shown what was doubted, or has not. Returns the type, if it is suspected here from now on.
    pub(in crate::upstream) fn decide(
        &mut self,
        doubt: &Doubt,
        shown: bool,
        changes: &mut Vec<Changes>,
    ) -> Option<TypeUrl> {
        let (server, leg) = (self.dialer.target().record.uri(), self.dialer.which());
        match self.client.handle_outcome(doubt, shown)? {
            Decided::Gone(gone) => {
                tracing::info!(
                    server,
                    ?leg,
                    r#type = gone.type_url.word(),
                    "the server does not read the versions that it is sent: what it left out after the reconnect is gone"
                );
                changes.push(gone);
                None
            }
            Decided::Deaf(type_url) => {
                tracing::warn!(
                    server, ?leg, r#type = %type_url,
                    "the server answers for this type on another stream and not on the one that the types share; it has its own from now on"
                );
                self.blame.suspects_mut().handle_deaf(&type_url, now());
                self.board.suspect(
                    &type_url,
                    "it is answered on another stream, and not on the one that the types share",
                );
                Some(type_url)
            }
        }
    }

    /// Moves a type to another leg, if it is here.
    pub(in crate::upstream) fn hand_over(&mut self, type_url: &TypeUrl, to: &mut Self, changes: &mut Vec<Changes>) {
        if let Some((parted, lost)) = self.client.part(type_url) {
            changes.extend(lost);
            changes.extend(to.client.join(parted));
        }
    }

    /// Returns the types that the server is not asked for, if they have changed since the last call.
    pub(in crate::upstream) fn take_unserved(&mut self) -> Vec<TypeUrl> {
        self.dialer
            .target()
            .record
            .leave_out(self.client.unserved(), &self.board)
    }
}
