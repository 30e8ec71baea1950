// SPDX-License-Identifier: Apache-2.0
//! Reads a request for one type on one client stream, in slices, so that other streams are served in between.
//!
//! Owns the kind of a request, which names it begins and ends, and what the client says that it holds. Does not build answers.

use std::collections::{BTreeSet, btree_map};
use std::time::Instant;
use std::vec;

use xxhash_rust::xxh3::xxh3_64;

use super::Subscription;
use crate::server::ledger::Entry;
use crate::server::name_faults::{NameBound, NameFault, NameFaults};
use crate::server::nonce::Nonces;
use crate::server::request::{ClientRequest, RequestLists};
use crate::server::response::ReceiptKind;
use crate::server::turn::Work;
use xds::xdstp::canonical;
use xds::{Answers, Dialect, Name, State, Version};

/// What is left of a request's lists: first all that begins is read, then what ends, then versions are noted.
#[derive(Debug, Default)]
pub(in crate::server) struct Entries {
    /// Names over this bound are not kept.
    bound: NameBound,
    /// What is wrong with names that were read.
    faults: NameFaults,
    begun: vec::IntoIter<String>,
    ended: vec::IntoIter<String>,
    versions: btree_map::IntoIter<String, String>,
    /// SotW: the names that were read of `begun`, and the last row that was compared with them.
    listed: BTreeSet<Name>,
    last_row: Option<Name>,
    /// SotW: how many names the client asked for before.
    before: usize,
    /// Whether the client has given up a name.
    gave_up: bool,
    /// A collection that has ended, and the first of its rows that were not let go.
    leaves: Option<(Name, Name)>,
    /// Whether the wildcard ends.
    ends_all: bool,
    /// Whether it is the first request of its type.
    first: bool,
    /// C-12: whether the versions name what the client subscribes to.
    adopts: bool,
    /// SotW: whether the first request has a version, so that the client may hold anything.
    remembers: bool,
    /// C-12: the versions that were read of what only the wildcard covers.
    covered: Option<Box<State>>,
}

/// More names over the limit than this are not answered: they are not bounded by anything else.
const LONG_MAX: usize = 64;

impl Entries {
    fn new(lists: RequestLists, first: bool) -> Self {
        Self {
            begun: lists.begun.into_iter(),
            ended: lists.ended.into_iter(),
            versions: lists.versions.into_iter(),
            first,
            ..Self::default()
        }
    }

    /// Names over this bound are not kept.
    pub(in crate::server) fn within(self, bound: NameBound) -> Self {
        Self { bound, ..self }
    }

    /// Returns what was wrong with the names that were read.
    pub(in crate::server) fn into_faults(self) -> NameFaults {
        self.faults
    }

    /// Returns how many names may still end: they make room for new ones.
    pub(in crate::server) fn spare(&self) -> usize {
        self.ended.len() + self.before
    }

    /// B-34: returns how many versions were read that count as names, and are in no book yet.
    pub(in crate::server) fn versions(&self) -> usize {
        self.covered.as_ref().map_or(0, |covered| covered.entries().len())
    }
}

impl Subscription {
    /// Takes everything of a request but its lists. Returns what must be read of these.
    pub(in crate::server) fn begin(
        &mut self,
        request: ClientRequest,
        answers: &impl Answers,
        nonces: Nonces,
        now: Instant,
    ) -> (ReceiptKind, Option<Entries>) {
        let first = self.want.start();
        // B-25: a nonce or version from another stream means nothing here.
        let kind = if first {
            ReceiptKind::First
        } else {
            self.settle(request.nonce(), request.error.as_ref(), nonces, answers, now)
        };
        // B-09, B-23, C-03: the names of every request count, in arrival order, whatever its nonce says.
        let lists = request.lists;
        let entries = match self.reader.dialect() {
            Dialect::Sotw => self.begin_sotw(lists, first, answers, now),
            Dialect::Delta => Some(self.begin_delta(lists, first, answers, now)),
        };
        (kind, entries)
    }

    fn begin_sotw(
        &mut self,
        lists: RequestLists,
        first: bool,
        answers: &impl Answers,
        now: Instant,
    ) -> Option<Entries> {
        if first && self.reader.full_state() {
            // B-25: the first request is always answered.
            self.want.set_hello(true);
            if !lists.version.is_empty() {
                self.want.set_version(&lists.version);
            }
        }
        // B-10, B-13: until a request names something, an empty list means everything, if the type allows that.
        if lists.begun.is_empty() && !self.want.is_named() {
            if self.reader.traits().wildcard && !self.want.wildcard() {
                self.subscribe_all(answers, now);
            }
            return None;
        }
        // B-11: one request with names ends that meaning for the rest of the stream. B-12: `*` is a wildcard for any type.
        self.want.name();
        let all = lists.begun.iter().any(|text| text == Name::WILDCARD);
        // C-07: first what begins, then what ends: what the client held by a wildcard, it holds by name from now on.
        if all && !self.want.wildcard() {
            self.subscribe_all(answers, now);
        }
        // Nearly every request has the same names as the one before it, in any order.
        if self.lists_the_same(&lists.begun) {
            if !all {
                self.unsubscribe_all();
            }
            return None;
        }
        let remembers = first && !lists.version.is_empty();
        Some(Entries {
            ends_all: !all,
            remembers,
            before: self.books.ledger().own().asked_len(),
            ..Entries::new(lists, first)
        })
    }

    fn begin_delta(&mut self, lists: RequestLists, first: bool, answers: &impl Answers, now: Instant) -> Entries {
        let has = |texts: &[String]| texts.iter().any(|text| text == Name::WILDCARD);
        // C-05: only a first request with both lists empty means everything.
        let empty = first && lists.begun.is_empty() && lists.ended.is_empty() && self.reader.traits().wildcard;
        // C-12: a client of Istio's addresses that loads on demand takes `*` back at once, and names what it had subscribed to in its
        // versions alone.
        let addresses = self.reader.traits().aliases && !self.kind().gated();
        let adopts = first && addresses && has(&lists.begun) && has(&lists.ended);
        if adopts {
            self.want.set_hello(true);
        } else if empty || has(&lists.begun) {
            self.subscribe_all(answers, now);
        }
        Entries {
            ends_all: has(&lists.ended) && !adopts,
            adopts,
            ..Entries::new(lists, first)
        }
    }

    /// Whether the client asks for exactly these names.
    fn lists_the_same(&self, texts: &[String]) -> bool {
        let sum = |texts: &mut dyn Iterator<Item = &str>| {
            texts.fold((0, 0_u64), |(count, sum), text| {
                (count + 1, sum.wrapping_add(xxh3_64(text.as_bytes())))
            })
        };
        let listed = texts.iter().map(String::as_str).filter(|text| *text != Name::WILDCARD);
        let mut asked = self.books.ledger().asked().map(Name::as_str);
        sum(&mut { listed }) == sum(&mut asked)
    }

    /// Returns the name with this text.
    fn name(&self, text: &str, answers: &impl Answers) -> Name {
        let known = self.books.ledger().own().get(text).map(Entry::name).cloned();
        known.unwrap_or_else(|| answers.name(text))
    }

    /// Takes the next slice of a request's lists. Returns whether there is more.
    pub(in crate::server) fn go_on(&mut self, entries: &mut Entries, answers: &impl Answers, now: Instant) -> bool {
        let mut work = Work::default();
        while work.left() > 0 {
            if let Some((all, from)) = entries.leaves.take() {
                let next = self.let_go_within(&all, from.as_str(), &mut work);
                entries.leaves = next.map(|next| (all, next));
                continue;
            }
            work.read();
            if let Some(text) = entries.begun.next() {
                self.read(&text, entries, answers, now);
            // C-07: what the client held by a name that it gives up, it may hold by another one, or as a member, from now on.
            } else if let Some(text) = entries.ended.next() {
                if text != Name::WILDCARD && entries.bound.admits(&text) {
                    let name = self.name(&text, answers);
                    self.end_name(&name, entries);
                }
            } else if let Some(name) = self.next_row(entries) {
                if !entries.listed.contains(&name) {
                    self.end_name(&name, entries);
                }
            } else if let Some((text, version)) = entries.versions.next().filter(|_| entries.first) {
                // C-12: the versions that the client declares count in its first request only.
                if entries.adopts {
                    self.read(&text, entries, answers, now);
                }
                if entries.bound.admits(&text) {
                    let name = self.name(&text, answers);
                    // C-14: endpoints are sent in any case, because a cluster may wait for them to finish warming.
                    let endpoints = self.kind().warms();
                    let version = Version::parse(&version)
                        .filter(|_| !endpoints)
                        .unwrap_or(Version::EMPTY);
                    self.remember(name, version, entries);
                } else if !entries.adopts {
                    entries.faults.note(NameFault::Long, &text);
                }
            } else {
                self.end_request(entries, answers);
                return false;
            }
        }
        true
    }

    /// The client does not ask for a name any more.
    fn end_name(&mut self, name: &Name, entries: &mut Entries) {
        entries.gave_up |= self.books.ledger().asks(name);
        entries.leaves = self.unsubscribe(name).map(|all| (all, Name::from("")));
    }

    fn end_request(&mut self, entries: &mut Entries, answers: &impl Answers) {
        if entries.ends_all {
            let hello = self.want.wildcard() && entries.first && self.reader.dialect() == Dialect::Delta;
            self.unsubscribe_all();
            if hello {
                // C-05: the client asked for everything and gave it up at once: it is answered all the same.
                self.want.set_hello(true);
            }
        }
        if entries.gave_up {
            self.unsubscribed();
        }
        if let Some(covered) = entries.covered.take() {
            self.books.bring_table(answers.remembered(*covered));
        }
    }

    /// C-12, C-13: the client says that it holds this version of a name; none: any version. They are what it holds, not what it asks
    /// for. What only the wildcard covers is noted until all of it was read.
    fn remember(&mut self, name: Name, version: Version, entries: &mut Entries) {
        let unasked = self.want.wildcard() && !self.books.ledger().asks(&name);
        if unasked && !name.is_new_style() {
            let new = || Box::new(State::new(self.type_url().clone()));
            entries.covered.get_or_insert_with(new).hold(name, version.into());
        } else {
            self.books.bring(name, version, unasked);
        }
    }

    /// Reads a text of a name, for which the client asks from now on.
    fn read(&mut self, text: &str, entries: &mut Entries, answers: &impl Answers, now: Instant) {
        let delta = self.reader.dialect() == Dialect::Delta;
        if text == Name::WILDCARD {
            return;
        }
        if !entries.bound.admits(text) {
            // B-32: a name that is too long is not kept, but it is a name.
            entries.faults.note(NameFault::Long, text);
            if delta && self.want.long().len() < LONG_MAX {
                self.want.add_long(Name::from(text));
            }
            return;
        }
        let name = self.name(text, answers);
        let new = !self.books.ledger().asks(&name);
        // B-14: a newly listed name is sent even if the client had it before.
        if new || delta {
            self.subscribe(&name);
            self.asked.more(now);
        }
        if new && entries.remembers {
            self.books.doubt(&name);
        }
        if let Some(fault) = self.fault(&name).filter(|_| new) {
            entries.faults.note(fault, text);
        }
        if !delta {
            entries.listed.insert(name);
        }
    }

    /// Returns the next row that a list of all names may end.
    fn next_row(&self, entries: &mut Entries) -> Option<Name> {
        if self.reader.dialect() == Dialect::Delta {
            return None;
        }
        let last = entries.last_row.as_ref();
        let mut rows = self.books.ledger().own().from(last.map_or("", Name::as_str));
        let next = rows.find(|entry| Some(entry.name()) != last)?.name().clone();
        drop(rows);
        entries.last_row = Some(next.clone());
        Some(next)
    }

    /// Returns what is wrong with a name that the client asks for.
    fn fault(&self, text: &Name) -> Option<NameFault> {
        let name = self.want.meaning(text);
        if name.is_blank() {
            Some(NameFault::Empty)
        } else if !self.reader.is_served(name) {
            Some(NameFault::Denied)
        } else {
            // F-02: it is asked for all the same.
            let malformed = name.is_new_style() && canonical(name.as_str(), self.reader.type_url()).is_none();
            malformed.then_some(NameFault::Malformed)
        }
    }
}
