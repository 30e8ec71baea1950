//! Reads a request for one type on one client stream.
//!
//! Owns the kind of a request and changes of interest. Does not build answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_64;

use super::flight::ReceiptKind;
use super::name_faults::{NameBound, NameFaults};
use super::nonce::Nonces;
use super::slices::{Changing, Listing, SLICE, listed, subscribed, unsubscribed};
use super::subscription::Subscription;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::{Answers, Dialect, Extra, Held, Kind, Name, Seen, Target, Version};

impl Subscription {
    /// Takes everything of a SotW request but its names. Returns the state for reading the names, if they must be read.
    pub(super) fn begin_sotw(
        &mut self,
        request: &DiscoveryRequest,
        bound: NameBound,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> (ReceiptKind, Option<Listing>) {
        let first = !std::mem::replace(&mut self.started, true);
        // B-25, K-10: a nonce or version from another stream means nothing here; the first request is always answered.
        let receipt = if first {
            self.first = self.full_state();
            ReceiptKind::First
        } else {
            self.settle(
                &request.response_nonce,
                request.error_detail.as_ref(),
                nonces,
                answers,
                now,
            )
        };
        // B-09, B-23: the names of every request count, in arrival order, whatever its nonce says.
        let remembers = first && !request.version_info.is_empty();
        if remembers && self.first {
            self.cold.note_brought(&request.version_info);
        }
        let listing = Listing {
            remembers,
            bound,
            ..Listing::default()
        };
        let begun = self.begin_names(request, listing, now);
        (receipt, begun)
    }

    fn begin_names(&mut self, request: &DiscoveryRequest, mut listing: Listing, now: Instant) -> Option<Listing> {
        // B-32: a name that is too long is not kept, but it is a name.
        let any = listed(request).next().is_some();
        let mut count = 0;
        let mut sum = 0_u64;
        let mut all = false;
        for text in listing.texts(request) {
            if text == Name::WILDCARD {
                all = true;
            } else {
                count += 1;
                sum = sum.wrapping_add(xxh3_64(text.as_bytes()));
            }
        }
        listing.all = all;
        // B-10, B-13: until a request names something, an empty list means everything, if the type allows that.
        if !any && !self.named {
            if self.traits().wildcard && !self.wildcard {
                self.set_wildcard(true);
                self.asked.more(now);
            }
            return None;
        }
        // B-11: one request with names ends that meaning for the rest of the stream. B-12: `*` is a wildcard for any type.
        self.named = true;
        // C-07: first what begins, then what ends: what the client held by a wildcard, it holds by name from now on.
        if all && !self.wildcard {
            self.set_wildcard(true);
            self.asked.more(now);
        }
        // Nearly every request has the same names as the one before it, in any order.
        if self.lists_the_same(count, sum) {
            self.set_wildcard(all);
            return None;
        }
        Some(listing)
    }

    /// Whether the client asks for exactly this many names with this sum of hashes.
    fn lists_the_same(&self, count: usize, sum: u64) -> bool {
        if !self.collections.is_empty() || !self.spellings.is_empty() || count != self.names.len() {
            return false;
        }
        let hashes = self.names.iter().map(|(name, _)| xxh3_64(name.as_str().as_bytes()));
        hashes.fold(0_u64, u64::wrapping_add) == sum
    }

    /// Takes the next slice of a SotW request's names. Returns whether there is more.
    pub(super) fn go_on_sotw(
        &mut self,
        request: &DiscoveryRequest,
        listing: &mut Listing,
        faults: &mut NameFaults,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let read = listing.read;
        for (at, text) in (read..).zip(listed(request).skip(read).take(SLICE)) {
            listing.read += 1;
            if text != Name::WILDCARD && listing.bound.admits(text) {
                listing.listed.entry(self.name(text, answers)).or_default().push(at);
            }
        }
        if listing.read < request.resource_names.len() + request.resource_locators.len() {
            return true;
        }
        let mut left = SLICE - (listing.read - read);
        // C-07: what the client held by a name that it gives up, it may hold by another one, or as a member, from now on.
        if listing.dropped.is_none() {
            listing.dropped = Some(self.left_out(&listing.listed).into_iter());
        }
        while left > 0
            && let Some((name, texts)) = listing.listed.pop_first()
        {
            left -= 1;
            if !self.is_served(&name) && !self.asks(&name) {
                let text = texts.first().and_then(|at| listing.text(request, *at));
                faults.note_unserved(&name, text.unwrap_or_default());
            }
            let texts: BTreeSet<&str> = texts.into_iter().filter_map(|at| listing.text(request, at)).collect();
            let texts: Vec<&str> = texts.into_iter().collect();
            self.list(name, &texts, listing.remembers, now);
        }
        let dropped = listing.dropped.get_or_insert_default();
        dropped.by_ref().take(left).for_each(|name| self.drop_asked(&name));
        let more = !listing.listed.is_empty() || dropped.len() > 0;
        if !more {
            self.set_wildcard(listing.all);
        }
        more
    }

    /// Returns the names that the client asked for and does not list any more.
    fn left_out<T>(&self, listed: &BTreeMap<Name, T>) -> Vec<Name> {
        fn of<'a, T>(asked: impl Iterator<Item = &'a Name>, listed: &BTreeMap<Name, T>) -> Vec<Name> {
            let mut listed = listed.keys().peekable();
            // Both are in order.
            let left_out = asked.filter(|name| {
                while listed.next_if(|listed| *listed < *name).is_some() {}
                listed.peek() != Some(name)
            });
            left_out.cloned().collect()
        }
        let single = self.single_names().map(|(name, _)| name);
        let mut left_out = of(single, listed);
        left_out.append(&mut of(self.collections.iter(), listed));
        left_out
    }

    /// The client lists a name, in these spellings.
    fn list(&mut self, name: Name, texts: &[&str], remembers: bool, now: Instant) {
        let asked = self.asks(&name);
        let new = self.spellings.set(&name, texts, asked);
        if !asked {
            // B-14: a newly listed name is sent even if the client had it before.
            let held = self.held_when_asked(&name, remembers);
            self.add(name, held);
            self.asked.more(now);
        } else if new {
            // F-09: a new spelling of a name is a new name to the client, and F-07 to some control planes.
            self.want(Target::Name(name.clone()), true);
            self.owe(name);
            self.asked.more(now);
        }
    }

    /// Takes everything of a delta request but its lists. Returns the state for reading the lists.
    pub(super) fn begin_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        bound: NameBound,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> (ReceiptKind, Changing) {
        let first = !std::mem::replace(&mut self.started, true);
        let receipt = if first {
            ReceiptKind::First
        } else {
            self.settle(
                &request.response_nonce,
                request.error_detail.as_ref(),
                nonces,
                answers,
                now,
            )
        };
        let any = subscribed(request).chain(unsubscribed(request)).next().is_some();
        // C-05: only a first request with both lists empty means everything.
        if first && !any && self.traits().wildcard {
            self.set_wildcard(true);
            self.asked.more(now);
        }
        let changing = Changing {
            first,
            bound,
            ..Changing::default()
        };
        (receipt, changing)
    }

    /// Takes the next slice of a delta request's lists. Returns whether there is more.
    pub(super) fn go_on_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        changing: &mut Changing,
        faults: &mut NameFaults,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let mut left = SLICE;
        // C-03: changes of the subscription count whatever the nonce is. C-07, C-10: first what begins, then what ends.
        for text in subscribed(request).skip(changing.subscribed).take(left) {
            changing.subscribed += 1;
            left -= 1;
            if changing.bound.admits(text) {
                self.subscribe(text, faults, answers);
                self.asked.more(now);
            }
        }
        for text in unsubscribed(request).skip(changing.unsubscribed).take(left) {
            changing.unsubscribed += 1;
            left -= 1;
            if text == Name::WILDCARD {
                self.set_wildcard(false);
            } else if changing.bound.admits(text) {
                self.unsubscribe(text, answers);
            }
        }
        if left == 0 {
            return true;
        }
        // C-12: the versions that the client declares count in its first request only.
        changing.first && self.remember(&request.initial_resource_versions, changing, left, answers)
    }

    fn subscribe(&mut self, text: &str, faults: &mut NameFaults, answers: &impl Answers) {
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
            if !self.is_served(&name) {
                faults.note_unserved(&name, text);
            }
        }
        let new = self.spellings.add(&name, text, asked);
        if asked {
            if new {
                self.want(Target::Name(name.clone()), true);
            }
            self.owe(name);
        } else {
            let held = self.held_when_asked(&name, false);
            self.add(name, held);
        }
    }

    fn unsubscribe(&mut self, text: &str, answers: &impl Answers) {
        let name = self.name(text, answers);
        if !self.asks(&name) || !self.spellings.remove(&name, text) {
            self.drop_asked(&name);
        } else if name.as_str() == text && self.collections.covers(&name) {
            // C-08, F-09: the client holds the name for its collection as well, and does not know that until it is sent it again.
            self.owe(name);
        }
    }

    /// C-13: resources that the client declares are compared like those that it was sent. They are what it holds, not what it
    /// wants. Takes at most `most` of them, and returns whether there are more.
    fn remember(
        &mut self,
        versions: &BTreeMap<String, String>,
        changing: &mut Changing,
        most: usize,
        answers: &impl Answers,
    ) -> bool {
        let endpoints = self.traits().kind == Kind::Eds;
        let from = changing.remembered.take().map_or(Bound::Unbounded, Bound::Excluded);
        for (text, version) in versions.range((from, Bound::Unbounded)).take(most) {
            changing.remembered = Some(text.clone());
            if !changing.bound.admits(text) {
                continue;
            }
            let name = self.name(text, answers);
            let told = Version::parse(version).map_or(Held::Unknown, Held::Version);
            // C-14: endpoints are sent in any case, because a cluster may wait for them to finish warming.
            let held = if endpoints { Held::Unknown } else { told.clone() };
            if self.collections.covers(&name) && !self.names.contains(&name) {
                self.names.set(name.clone(), held);
                self.names.mark(&name, true);
                self.look_at(name);
                continue;
            }
            if !self.names.contains(&name) {
                // F-09: a name that is not requested keeps the client's spelling.
                let own = name.as_str() == text;
                let name = if own { name } else { Name::from(text.as_str()) };
                changing.extra.insert(name, held);
                continue;
            }
            // F-09: the client must hold the name in every spelling in which it asks for it.
            let holds = |text: &Name| versions.contains_key(text.as_str());
            let own = holds(&name) || !self.collections.covers(&name);
            if !endpoints && own && self.spellings.all(&name, holds) {
                self.owed.remove(&name);
                self.look_at(name.clone());
            }
            // Endpoints are owed all the same.
            self.names.set(name, told);
        }
        let last = versions.last_key_value().map(|(text, _)| text);
        if last != changing.remembered.as_ref() {
            return true;
        }
        let extra = std::mem::take(&mut changing.extra);
        if !extra.is_empty() {
            self.covered.arrive(Seen {
                state: None,
                extra: Some(answers.remembered(Extra::new(extra))),
            });
        }
        false
    }

    /// Returns what a client holds of a name that it begins to ask for. K-16: what it holds by its wildcard, as a member or by an
    /// alias, it holds by name from now on. B-16: what is on its way may reach it after it asked.
    /// `remembers`: it may hold the name from an earlier stream.
    fn held_when_asked(&mut self, name: &Name, remembers: bool) -> Held {
        let held = self.held(name);
        if held.perhaps() {
            return held;
        }
        // Partial answers in SotW take nothing away.
        let counts = self.dialect == Dialect::Delta || self.full_state();
        if let Some(content) = self.names.by_alias(name).filter(|_| counts) {
            return Held::Content(content.clone());
        }
        // B-22: the client rejected content of this name, which it was sent by an alias; it may hold that content.
        if counts && self.cold.refusals().has_content(name) {
            return Held::Unknown;
        }
        if remembers || self.flights.carries(name, 0) {
            Held::Unknown
        } else {
            held
        }
    }

    pub(super) fn held(&self, name: &Name) -> Held {
        match self.names.get(name) {
            Some(entry) => entry.held(),
            None if self.dialect == Dialect::Sotw && self.covered.leaves_out(name) => Held::Nothing,
            None => self.covered.held(name),
        }
    }

    /// Returns whether any name must be compared again.
    pub(super) fn glances(&self) -> bool {
        !self.dirty.is_empty(&self.names)
    }
}
