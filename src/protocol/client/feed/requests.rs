// SPDX-License-Identifier: Apache-2.0
//! The requests of one type.
//!
//! Owns the order of answers and changes. Does not know when the transport takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use arcstr::ArcStr;

use super::Feed;
use crate::client::Request;
use crate::client::doubt::TOLD_MAX;
use crate::client::outbound::Opening;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::{Dialect, Name, Target, Want};

/// What stands for a version in the first request where an answer is needed.
const UNKNOWN: ArcStr = arcstr::literal!("unknown");

impl Feed {
    /// Returns the next request.
    pub(in crate::client) fn request(&mut self, dialect: Dialect, opening: Opening) -> Option<Request> {
        let request = match dialect {
            Dialect::Sotw => Request::Sotw(self.sotw_request(opening)?),
            Dialect::Delta => Request::Delta(self.delta_request(opening)?),
        };
        if self.outbound.acks().is_empty() {
            self.coverage.answered(opening.at);
        }
        Some(request)
    }

    /// Answers come first, then changes of the subscription.
    fn delta_request(&mut self, opening: Opening) -> Option<DeltaDiscoveryRequest> {
        let now = opening.at;
        if let Some(request) = self.outbound.delta_answer(&self.type_url, now) {
            return Some(request);
        }
        // F-07: in the server's spelling.
        let declare = |name: &Name| {
            let version = self.kept.declared(name.as_str())?.to_string();
            Some((self.kept.text(name).to_string(), version))
        };
        // C-13: a server may report a name as removed if it gets its version but no request for it. So only names in this request
        // count.
        let held = |names: &BTreeSet<Name>| {
            let whole = names.iter().filter(|name| self.coverage.whole(name.as_str()));
            let members = whole.flat_map(|whole| self.kept.within(whole));
            names.iter().chain(members).filter_map(declare).collect()
        };
        let first = !self.outbound.is_opened();
        let (mut request, joined) = self.outbound.delta_change(&self.type_url, opening, held)?;
        if first {
            if opening.urges {
                self.bring(&mut request.initial_resource_versions);
            }
            self.doubt_undeclared(&request, &joined, now);
        }
        self.asked(joined, now);
        Some(request)
    }

    /// E-25: while something is held and no response was accepted on this stream, the request has a version that no server gave, so that
    /// the server has something to say.
    fn sotw_request(&mut self, opening: Opening) -> Option<DiscoveryRequest> {
        let now = opening.at;
        let held = !self.kept.is_empty();
        if !self.outbound.is_opened() && held && opening.urges {
            self.outbound.acks_mut().accept(UNKNOWN);
        }
        let first = !self.outbound.is_opened();
        let (request, joined) = self.outbound.sotw(&self.type_url, opening)?;
        let grown = !joined.is_empty() && !self.asks_wildcard();
        if opening.urges && (grown || first && held) {
            let known = held || self.outbound.is_answered();
            self.exchange.press(known, first, now);
        }
        self.asked(joined, now);
        Some(request)
    }

    /// The server gets these versions. E-04: a server has nothing to say where nothing is new, and one that says nothing cannot be told
    /// from one that is not there. So the smallest resource is brought with a version that no server gave it: it is sent again, or
    /// reported as removed. That it is sent again says nothing of whether the server reads versions.
    fn bring(&mut self, versions: &mut BTreeMap<String, String>) {
        let brought = |name: &&Name| versions.contains_key(self.kept.text(name).as_str());
        let size = |name: &&Name| self.kept.resource(name.as_str()).map(|resource| resource.body().len());
        let smallest = self.kept.names().filter(brought).min_by_key(size);
        let Some(smallest) = smallest.cloned() else { return };
        let named = self.kept.names().filter(|name| self.names.contains(name.as_str()));
        for name in named.filter(brought).cloned().collect::<Vec<_>>() {
            self.kept.unsaid_mut().judge(&name, true);
        }
        versions.insert(self.kept.text(&smallest).to_string(), UNKNOWN.to_string());
        self.kept.unsaid_mut().judge(&smallest, false);
    }

    /// The first request was sent with these versions. E-08: where a version is missing, for the resource of an alias or for any
    /// member of a collection, the server sends the resource if it still exists, so the name waits. E-04: where all versions were
    /// sent, the server is silent about what has not changed, so the name does not wait, even if it was unanswered on an earlier
    /// stream.
    fn doubt_undeclared(&mut self, request: &DeltaDiscoveryRequest, joined: &[Name], now: Instant) {
        let declared = |held: &Name| {
            let text = self.kept.text(held);
            request.initial_resource_versions.contains_key(text.as_str())
        };
        for name in joined {
            let held = self.kept.canonical(name.as_str());
            let untold = name.is_collection() && {
                let mut members = self.members_alone(name).peekable();
                members.peek().is_none() || !members.all(declared)
            };
            if untold || held.is_some_and(|held| !declared(held)) {
                self.names.doubt(name, self.exchange.time_to_answer(now));
            } else if held.is_some() {
                self.names.rest(name.as_str());
            }
        }
    }

    /// E-27: returns the last question, once, if the server has passed over it for as long as it may take for a name: some of what was asked
    /// for and nothing is known of, and when.
    pub(in crate::client) fn take_passed_over(&mut self, now: Instant) -> Option<(Vec<Want>, Instant)> {
        let asked = self.exchange.take_overdue(now)?;
        Some((self.lacked(), asked))
    }

    /// Returns some of what was asked for and nothing is known of, as it was asked for.
    fn lacked(&self) -> Vec<Want> {
        if self.asks_wildcard() {
            let open = self.coverage.lacks_all().then(|| self.wanting(Target::Wildcard, None));
            return open.into_iter().collect();
        }
        let open = self.names.open();
        let texts = open.flat_map(|name| self.outbound.told_as(name.as_str()).map(move |text| (name, text)));
        let wants = texts.map(|(name, text)| self.wanting(Target::Name(name.clone()), name.written(text.as_str())));
        wants.take(TOLD_MAX).collect()
    }

    /// Returns a want of the type.
    pub(super) fn wanting(&self, target: Target, written: Option<Name>) -> Want {
        Want {
            type_url: self.type_url.clone(),
            target,
            wanted: true,
            written,
        }
    }

    fn asked(&mut self, names: Vec<Name>, now: Instant) {
        self.names.asked(names, self.exchange.time_to_answer(now));
        if self.lacks() {
            self.exchange.ask(now);
        }
    }
}
