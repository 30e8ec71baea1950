//! Reads a request for one type on one client stream.
//!
//! Owns the kind of a request and which names it begins and ends. Does not build answers.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_64;

use super::Subscription;
use crate::server::ledger::{Entry, Row};
use crate::server::name_faults::{NameBound, NameFaults};
use crate::server::nonce::Nonces;
use crate::server::response::ReceiptKind;
use crate::server::slices::{Changing, Listing, SLICE, listed, subscribed, unsubscribed};
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::{Answers, Name, Version};

impl Subscription {
    /// Takes everything of a SotW request but its names. Returns the state for reading the names, if they must be read.
    pub(in crate::server) fn begin_sotw(
        &mut self,
        request: &DiscoveryRequest,
        bound: NameBound,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> (ReceiptKind, Option<Listing>) {
        let first = self.want.start();
        // B-25: a nonce or version from another stream means nothing here; the first request is always answered.
        let receipt = if first {
            self.agenda.set_hello(self.reader.full_state());
            ReceiptKind::First
        } else {
            let error = request.error_detail.as_ref();
            self.settle(&request.response_nonce, error, nonces, answers, now)
        };
        // B-09, B-23: the names of every request count, in arrival order, whatever its nonce says.
        let remembers = first && !request.version_info.is_empty();
        if remembers && self.reader.full_state() {
            self.rare.note_brought(Some(&request.version_info));
        }
        let listing = Listing {
            remembers,
            bound,
            ..Listing::default()
        };
        let begun = self.begin_names(request, listing, answers, now);
        (receipt, begun)
    }

    fn begin_names(
        &mut self,
        request: &DiscoveryRequest,
        mut listing: Listing,
        answers: &impl Answers,
        now: Instant,
    ) -> Option<Listing> {
        // B-32: a name that is too long is not kept, but it is a name.
        let any = listed(request, 0).next().is_some();
        let mut count = 0;
        let mut sum = 0_u64;
        let mut all = false;
        for text in listed(request, 0).filter(|text| listing.bound.admits(text)) {
            if text == Name::WILDCARD {
                all = true;
            } else {
                count += 1;
                sum = sum.wrapping_add(xxh3_64(text.as_bytes()));
            }
        }
        listing.all = all;
        // B-10, B-13: until a request names something, an empty list means everything, if the type allows that.
        if !any && !self.want.is_named() {
            if self.reader.traits().wildcard && !self.want.wildcard() {
                self.subscribe_to_all(answers, now);
            }
            return None;
        }
        // B-11: one request with names ends that meaning for the rest of the stream. B-12: `*` is a wildcard for any type.
        self.want.name();
        // C-07: first what begins, then what ends: what the client held by a wildcard, it holds by name from now on.
        if all && !self.want.wildcard() {
            self.subscribe_to_all(answers, now);
        }
        // Nearly every request has the same names as the one before it, in any order.
        if self.lists_the_same(count, sum) {
            self.end_wildcard(all);
            return None;
        }
        Some(listing)
    }

    fn subscribe_to_all(&mut self, answers: &impl Answers, now: Instant) {
        self.subscribe(&Name::from(Name::WILDCARD), answers);
        self.asked.more(now);
    }

    fn end_wildcard(&mut self, all: bool) {
        if !all {
            self.unsubscribe(&Name::from(Name::WILDCARD));
        }
    }

    /// Whether the client asks for exactly this many names with this sum of hashes.
    fn lists_the_same(&self, count: usize, sum: u64) -> bool {
        let mut hashes = (0, 0_u64);
        for name in self.ledger.asked() {
            hashes = (hashes.0 + 1, hashes.1.wrapping_add(xxh3_64(name.as_str().as_bytes())));
        }
        hashes == (count, sum)
    }

    /// Returns the name with this text.
    fn name(&self, text: &str, answers: &impl Answers) -> Name {
        let known = self.ledger.own(text).map(Entry::name).cloned();
        known.unwrap_or_else(|| answers.name(text))
    }

    /// Takes the next slice of a SotW request's names. Returns whether there is more.
    pub(in crate::server) fn go_on_sotw(
        &mut self,
        request: &DiscoveryRequest,
        listing: &mut Listing,
        faults: &mut NameFaults,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let read = listing.read;
        let mut texts = listed(request, read);
        for text in texts.by_ref().take(SLICE) {
            listing.read += 1;
            if text != Name::WILDCARD && listing.bound.admits(text) {
                listing.listed.insert(self.name(text, answers));
            }
        }
        if texts.next().is_some() {
            return true;
        }
        let mut left = SLICE - (listing.read - read);
        // C-07: what the client held by a name that it gives up, it may hold by another one, or as a member, from now on.
        if listing.dropped.is_none() {
            listing.dropped = Some(self.left_out(&listing.listed).into_iter());
        }
        while left > 0
            && let Some(name) = listing.listed.pop_first()
        {
            left -= 1;
            // B-14: a newly listed name is sent even if the client had it before.
            if !self.ledger.asks(&name) {
                self.begin_name(&name, faults, answers, now);
                if listing.remembers {
                    self.ledger.put(&name, Row::Perhaps);
                }
            }
        }
        let dropped = listing.dropped.get_or_insert_default();
        dropped.by_ref().take(left).for_each(|name| self.unsubscribe(&name));
        let more = !listing.listed.is_empty() || dropped.len() > 0;
        if !more {
            self.end_wildcard(listing.all);
        }
        more
    }

    /// Returns the names that the client asked for and does not list any more.
    fn left_out(&self, listed: &BTreeSet<Name>) -> Vec<Name> {
        let mut listed = listed.iter().peekable();
        // Both are in order.
        let left_out = self.ledger.asked().filter(|name| {
            while listed.next_if(|listed| *listed < *name).is_some() {}
            listed.peek() != Some(name)
        });
        left_out.cloned().collect()
    }

    fn begin_name(&mut self, name: &Name, faults: &mut NameFaults, answers: &impl Answers, now: Instant) {
        let new = !self.ledger.asks(name);
        self.subscribe(name, answers);
        self.asked.more(now);
        let meant = self.want.meaning(name);
        if new && !self.reader.is_served(meant) {
            faults.note_unserved(meant, name.as_str());
        }
    }

    /// Takes everything of a delta request but its lists. Returns the state for reading the lists.
    pub(in crate::server) fn begin_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        bound: NameBound,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> (ReceiptKind, Changing) {
        let first = self.want.start();
        let receipt = if first {
            ReceiptKind::First
        } else {
            let error = request.error_detail.as_ref();
            self.settle(&request.response_nonce, error, nonces, answers, now)
        };
        // C-05: only a first request with both lists empty means everything.
        let empty = subscribed(request, 0).chain(unsubscribed(request, 0)).next().is_none();
        if first && empty && self.reader.traits().wildcard {
            self.subscribe_to_all(answers, now);
        }
        let changing = Changing {
            first,
            bound,
            ..Changing::default()
        };
        (receipt, changing)
    }

    /// Takes the next slice of a delta request's lists. Returns whether there is more.
    pub(in crate::server) fn go_on_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        changing: &mut Changing,
        faults: &mut NameFaults,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let mut left = SLICE;
        // C-03: changes of the subscription count whatever the nonce is. C-07, C-10: first what begins, then what ends.
        for text in subscribed(request, changing.subscribed).take(left) {
            changing.subscribed += 1;
            left -= 1;
            if text == Name::WILDCARD {
                self.subscribe_to_all(answers, now);
            } else if changing.bound.admits(text) {
                self.begin_name(&self.name(text, answers), faults, answers, now);
            } else {
                self.rare.note_long(Name::from(text.as_str()));
            }
        }
        for text in unsubscribed(request, changing.unsubscribed).take(left) {
            changing.unsubscribed += 1;
            left -= 1;
            if text == Name::WILDCARD && self.want.wildcard() && changing.first {
                // C-05: the client asked for everything and gave it up at once: it is answered all the same.
                self.unsubscribe(&Name::from(Name::WILDCARD));
                self.agenda.set_hello(true);
            } else if text == Name::WILDCARD || changing.bound.admits(text) {
                self.unsubscribe(&self.name(text, answers));
            }
        }
        if left == 0 {
            return true;
        }
        // C-12: the versions that the client declares count in its first request only.
        changing.first && self.go_on_versions(request, changing, left, answers, now)
    }

    /// Takes at most `most` of the declared versions. Returns whether there are more.
    fn go_on_versions(
        &mut self,
        request: &DeltaDiscoveryRequest,
        changing: &mut Changing,
        most: usize,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let versions = &request.initial_resource_versions;
        let from = changing.remembered.take().map_or(Bound::Unbounded, Bound::Excluded);
        for (text, version) in versions.range((from, Bound::Unbounded)).take(most) {
            changing.remembered = Some(text.clone());
            if !changing.bound.admits(text) {
                continue;
            }
            let name = self.name(text, answers);
            let version = Version::parse(version).unwrap_or(Version::EMPTY);
            if !self.remember(&name, version) {
                changing.held.insert(name, version);
            }
        }
        let last = versions.last_key_value().map(|(text, _)| text);
        if last != changing.remembered.as_ref() {
            return true;
        }
        self.remember_all(std::mem::take(&mut changing.held), answers, now);
        false
    }
}
