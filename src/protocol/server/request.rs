//! What a request means for one type on one client stream.
//!
//! Owns classification, settling and the change of interest. Refuses to build answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::flight::{Flight, ReceiptKind};
use super::held_names::Entry;
use super::nonce::Nonces;
use super::subscription::Subscription;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
use crate::proto::google::rpc::Status as Detail;
use crate::xds::{Answers, Extra, Held, Kind, Name, Seen, Target, Version};

impl Subscription {
    pub(super) fn handle_sotw(
        &mut self,
        request: &DiscoveryRequest,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> ReceiptKind {
        let first = !std::mem::replace(&mut self.started, true);
        // B-25, K-10: a nonce or version from another stream says nothing here; the first request is always answered.
        let receipt = if first {
            self.first = self.full_state();
            ReceiptKind::First
        } else {
            self.settle(&request.response_nonce, request.error_detail.as_ref(), nonces)
        };
        // B-09, B-23: the names of every request count, in arrival order, whatever its nonce says.
        let remembers = first && !request.version_info.is_empty();
        if remembers && self.first {
            self.rare.note_brought(&request.version_info);
        }
        let located = self.handle_locators(&request.resource_locators, answers);
        let listed: Vec<&str> = request
            .resource_names
            .iter()
            .chain(&located)
            .map(String::as_str)
            .collect();
        self.apply_names(&listed, remembers, answers, now);
        receipt
    }

    fn apply_names(&mut self, listed: &[&str], remembers: bool, answers: &impl Answers, now: Instant) {
        let mut names: BTreeSet<&str> = listed.iter().copied().collect();
        let asked_for_all = names.remove(Name::WILDCARD);
        // B-10, B-13: as long as no request names anything, an empty list means everything, where the type allows that.
        if listed.is_empty() && !self.named {
            if self.traits().wildcard && !self.wildcard {
                self.set_wildcard(true);
                self.asked.more(now);
            }
            return;
        }
        // B-11: one named request ends that meaning for the rest of the stream. B-12: `*` is a wildcard for any type.
        self.named = true;
        // C-07: first what begins, then what ends: what it held by a wildcard it holds by name from now on.
        if asked_for_all && !self.wildcard {
            self.set_wildcard(true);
            self.asked.more(now);
        }
        self.apply_single_names(&names, remembers, answers, now);
        self.set_wildcard(asked_for_all);
    }

    fn apply_single_names(&mut self, names: &BTreeSet<&str>, remembers: bool, answers: &impl Answers, now: Instant) {
        let simple = self.globs.is_empty() && self.spellings.is_empty();
        let same = || {
            names
                .iter()
                .copied()
                .eq(self.names.iter().map(|(name, _)| name.as_str()))
        };
        if simple && same() {
            return;
        }
        let mut listed: BTreeMap<Name, Vec<&str>> = BTreeMap::new();
        for text in names {
            listed.entry(self.name(text, answers)).or_default().push(text);
        }
        let dropped = self.asked_names().filter(|name| !listed.contains_key(*name));
        let dropped: Vec<Name> = dropped.cloned().collect();
        dropped.iter().for_each(|name| self.drop_asked(name));
        for (name, texts) in listed {
            let asked = self.asks(&name);
            let new = self.spellings.set(&name, &texts, asked);
            if !asked {
                // B-14: what is newly named is sent, even if the client had it before.
                let mut held = self.held(&name);
                if !held.perhaps() && (remembers || self.flights.carries(&name)) {
                    held = Held::Unknown;
                }
                self.add(name, held);
                self.asked.more(now);
            } else if new {
                // F-09: a new way of writing a name is a new name to the client, and F-07 to some control planes.
                self.want(Target::Name(name.clone()), true);
                self.owe(name);
                self.asked.more(now);
            }
        }
    }

    pub(super) fn handle_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> ReceiptKind {
        let first = !std::mem::replace(&mut self.started, true);
        let receipt = if first {
            ReceiptKind::First
        } else {
            self.settle(&request.response_nonce, request.error_detail.as_ref(), nonces)
        };
        let located = self.handle_locators(&request.resource_locators_subscribe, answers);
        let lost = request
            .resource_locators_unsubscribe
            .iter()
            .map(|locator| &locator.name);
        let subscribe: Vec<&String> = request.resource_names_subscribe.iter().chain(&located).collect();
        let unsubscribe: Vec<&String> = request.resource_names_unsubscribe.iter().chain(lost).collect();
        // C-05: only a first request with both lists empty means everything.
        if first && subscribe.is_empty() && unsubscribe.is_empty() && self.traits().wildcard {
            self.set_wildcard(true);
            self.asked.more(now);
        }
        // C-03: subscription changes count whatever the nonce says. C-07, C-10: first what begins, then what ends.
        for text in subscribe {
            self.subscribe(text, answers);
            self.asked.more(now);
        }
        for text in unsubscribe {
            if text == Name::WILDCARD {
                self.set_wildcard(false);
            } else {
                self.unsubscribe(text, answers);
            }
        }
        // C-12: what the client remembers counts in its first request only.
        if first && !request.initial_resource_versions.is_empty() {
            self.remember(&request.initial_resource_versions, answers);
        }
        receipt
    }

    fn subscribe(&mut self, text: &str, answers: &impl Answers) {
        if text == Name::WILDCARD {
            if self.wildcard {
                self.covered.repeat();
            }
            return self.set_wildcard(true);
        }
        let name = self.name(text, answers);
        let asked = self.asks(&name);
        if !asked {
            self.spellings.forget(&name);
        }
        let new = self.spellings.add(&name, text, asked);
        if asked {
            if new {
                self.want(Target::Name(name.clone()), true);
            }
            self.owe(name);
        } else {
            // K-16: what it holds by its wildcard, or as a member, it holds by name from now on.
            let held = self.held(&name);
            self.add(name, held);
        }
    }

    fn unsubscribe(&mut self, text: &str, answers: &impl Answers) {
        let name = self.name(text, answers);
        if !self.asks(&name) || !self.spellings.remove(&name, text) {
            self.drop_asked(&name);
        }
    }

    /// C-13: what the client says it holds is compared like anything that it was sent; it is knowledge, not interest.
    fn remember(&mut self, versions: &BTreeMap<String, String>, answers: &impl Answers) {
        let endpoints = self.traits().kind == Kind::Eds;
        let mut besides = BTreeMap::new();
        for (text, version) in versions {
            let name = self.name(text, answers);
            // C-14: endpoints are sent in any case, because a cluster may be warming for want of them.
            let held = match Version::parse(version) {
                Some(version) if !endpoints => Held::Version(version),
                Some(_) | None => Held::Unknown,
            };
            if self.globs.covers(&name) && !self.names.contains(&name) {
                self.names.set(name.clone(), held);
                self.names.mark(&name, true);
                self.look_at(name);
                continue;
            }
            if !self.names.contains(&name) {
                // F-09: what is not asked for is called what the client calls it.
                let own = name.as_str() == text;
                besides.insert(if own { name } else { Name::from(text.as_str()) }, held);
                continue;
            }
            // F-09: by every text that it asks for the name by, it must have it.
            let told = |text: &Name| versions.contains_key(text.as_str());
            let own = told(&name) || !self.globs.covers(&name);
            if !endpoints && own && self.spellings.all(&name, told) {
                self.owed.remove(&name);
                self.look_at(name.clone());
            }
            self.names.set(name, held);
        }
        if !besides.is_empty() {
            self.covered.arrive(Seen {
                state: None,
                extra: Some(answers.remembered(Extra::new(besides))),
            });
        }
    }

    /// B-05, C-02: the nonce says which response is meant, and only `error_detail` says that it was rejected (B-06, B-07).
    fn settle(&mut self, nonce: &str, error: Option<&Detail>, nonces: Nonces) -> ReceiptKind {
        if nonce.is_empty() {
            return ReceiptKind::Update;
        }
        let Some(number) = nonces.number(nonce.as_bytes()) else {
            return ReceiptKind::Stale;
        };
        let Some(flight) = self.flights.settle(number) else {
            // B-08: neither ACK nor NACK, and no answer of its own.
            let again = self.flights.is_last(number) && error.is_none();
            return if again { ReceiptKind::Update } else { ReceiptKind::Stale };
        };
        match error {
            None => ReceiptKind::Ack {
                since: self.accept(&flight),
            },
            Some(detail) => {
                self.park(flight);
                ReceiptKind::Nack {
                    message: detail.message.clone(),
                }
            }
        }
    }

    /// The client has accepted a response. Gives the age of the oldest change in it.
    pub(super) fn accept(&mut self, flight: &Flight) -> Option<Instant> {
        self.absolve(flight);
        if flight.set.is_some() {
            self.rare.forget_refused_set();
        }
        flight.since
    }

    /// B-22, C-25: what was in a rejected response is unknown at the client, and is not sent again as it is.
    fn park(&mut self, flight: Flight) {
        if let Some(set) = flight.set {
            self.rare.refuse_set(set);
            let held = self.names.iter().filter(|(_, held)| held.perhaps());
            let unsure: Vec<Name> = held.map(|(name, _)| name.clone()).collect();
            unsure.into_iter().for_each(|name| self.names.set(name, Held::Unknown));
            return;
        }
        self.refuse(&flight);
    }

    pub(super) fn held(&self, name: &Name) -> Held {
        self.names
            .get(name)
            .map_or_else(|| self.covered.held(name), Entry::held)
    }

    /// Whether any name must be looked at again.
    pub(super) fn glances(&self) -> bool {
        !self.dirty.is_empty(&self.names)
    }
}

/// The names in locators, and what else in them is kept, so that it is bounded like names.
pub(super) fn located(locators: &[ResourceLocator]) -> impl Iterator<Item = &String> {
    locators.iter().flat_map(|locator| {
        let kept = locator.dynamic_parameters.iter().flat_map(|(key, value)| [key, value]);
        std::iter::once(&locator.name).chain(kept.filter(|text| !text.is_empty()))
    })
}
