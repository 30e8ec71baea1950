// SPDX-License-Identifier: Apache-2.0
//! The effects of one response on all parts of a type.
//!
//! Owns the order in which a response is read. Does not know how it was encoded.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use arcstr::ArcStr;

use super::Feed;
use crate::client::coverage::Ends;
use crate::client::entry::{Entry, called};
use crate::client::ingest::Message;
use xds::{Changes, Dialect, Name, Reason, Update};

impl Feed {
    /// Takes a response, and adds its faults to it. Returns what has changed, and the longest pause within the server's answer, if the end of
    /// that was seen.
    pub(in crate::client) fn receive(
        &mut self,
        message: &mut Message,
        dialect: Dialect,
        now: Instant,
    ) -> (Option<Changes>, Option<Duration>) {
        self.exchange.hear(message, self.type_url.kind(), now);
        self.kept.answered(dialect);
        if !self.wanted() && !self.asks_wildcard() {
            return (None, None);
        }
        let (first, asked) = self.outbound.hear();
        self.exchange.pass(self.outbound.opened().map(|first| first.at), now);
        let mut updates = Vec::new();
        let mut mentioned = Vec::new();
        let mut aliases = BTreeSet::new();
        let mut beats = !message.entries.is_empty();
        for mut entry in std::mem::take(&mut message.entries) {
            beats &= entry.body.is_none();
            // E-06: content that nobody requested is ignored without a NACK.
            let collection = self.covering(entry.name.as_str());
            if collection.is_none() && self.names_asked(&entry).next().is_none() {
                continue;
            }
            let held = self.held(&mut entry, &message.version);
            self.take(&entry, held, collection.as_ref(), message, now, &mut updates);
            if dialect == Dialect::Delta {
                aliases.extend(entry.aliases);
            } else {
                mentioned.push(entry.name);
            }
        }
        // If the name of an entry is in doubt, a name that is not mentioned may be meant by it: then nothing is deleted.
        if !message.uncertain {
            self.remove(message, &aliases, &mut updates);
        }
        self.complain(message, &mut updates);
        // A SotW response with nothing but heartbeats says nothing about other resources (E-10).
        let beats = beats && message.version == *self.outbound.acks().version();
        let ends = if dialect == Dialect::Sotw && (message.uncertain || beats) {
            self.coverage.forget_mentioned();
            Ends::default()
        } else {
            // Without full states, a server may leave out resources or split its answer into several responses.
            let full = dialect == Dialect::Sotw && self.type_url.traits().full_state;
            if full {
                self.leave_out(mentioned, &asked, message, &mut updates);
            }
            // Another relay may say that this answer is finished, but that does not mean that it knows a whole collection.
            let ended = message.more == Some(false) && !message.uncertain && self.asks_wildcard();
            let whole = ended || dialect == Dialect::Sotw;
            let ends = self
                .coverage
                .heard((message.more, message.uncertain), (whole, full), now);
            self.kept.unsaid_mut().heard(now);
            if ended {
                self.end_silence(&mut updates);
            }
            ends
        };
        let (complete, pause) = self.settle(ends, now, &mut updates);
        if message.faults.none() {
            self.outbound.acks_mut().accept(message.version.clone());
        } else {
            self.kept.unsaid_mut().refuse();
        }
        if dialect == Dialect::Sotw {
            let (names, outbound) = (&self.names, &self.outbound);
            let lacks = || names.unheard().any(|name| outbound.stays(name));
            self.exchange.relax(!message.faults.none(), lacks, now);
        }
        self.conclude(dialect);
        let changes = self.changes(updates, complete, first.then_some(true));
        self.exchange.settle();
        (changes, pause)
    }

    /// A full state mentions only these names, and some with faults; `asked`: it is the first one on the stream, and answers for these.
    fn leave_out(&mut self, mentioned: Vec<Name>, asked: &[Name], message: &Message, updates: &mut Vec<Update>) {
        let mentioned: BTreeSet<Name> = mentioned.into_iter().chain(message.spoiled.clone()).collect();
        self.delete_others(&mentioned, updates);
        // K-16: another relay leaves out what it does not know.
        if !message.is_relayed() {
            self.lack(asked.iter().filter(|name| !mentioned.contains(*name)), updates);
        }
        let names = &self.names;
        self.errors
            .absolve_others(&mentioned, |name| names.contains(name), updates);
    }

    /// Takes one sound entry; `held`: whether the content under its name has the same version.
    fn take(
        &mut self,
        entry: &Entry,
        held: Option<bool>,
        collection: Option<&Name>,
        message: &mut Message,
        now: Instant,
        updates: &mut Vec<Update>,
    ) {
        if !self.counts(entry, message) {
            return;
        }
        let name = &entry.name;
        let version = entry.version.as_ref().unwrap_or(&message.version).clone();
        if entry.body.is_none() {
            // E-10: without a body, the entry says that what is not held does not exist. C-21: a virtual host without a body never exists. Else
            // it confirms what is held if the version is the same; in SotW, the response's version counts.
            if held.is_none() || self.type_url.kind().is_void_without_body() {
                return self.missing(entry, updates);
            }
            let confirms = match &entry.version {
                Some(_) => held == Some(true),
                None => message.version == *self.outbound.acks().version(),
            };
            if !confirms {
                message.faults.add(
                    called(entry.name.as_str()),
                    "has no body and another version than what the relay holds",
                );
                return;
            }
        }
        // In two cases the server resends held content although it did not forget that the relay holds it: to prolong a time to
        // live (E-11), and for a name that is requested by itself. Another relay never forgets it.
        let mut asked = self.names_of(name, &entry.aliases).peekable();
        let alone = collection.is_some() && asked.peek().is_some();
        let resent = held == Some(true) && entry.ttl.is_none() && !alone && !message.is_relayed();
        // a resource without a name answers all requested names.
        let answered: Vec<Name> = asked.filter(|_| name.is_empty()).cloned().collect();
        let news = self.kept.unsaid_mut().mention(name, held.is_none(), resent);
        if let Some(collection) = collection {
            self.coverage.mention(collection, news);
            self.names.known(collection.as_str());
        }
        for name in entry.names().chain(&answered) {
            self.names.known(name.as_str());
            self.errors.absolve(name.as_str(), updates);
        }
        if entry.ttl.is_some_and(|ttl| ttl.is_zero()) {
            // E-11: the resource is gone at once.
            self.absent(entry.name.as_str(), Reason::Expired, updates);
        } else if let Some((put, lost)) = self.kept.receive(&self.type_url, entry, version, now) {
            updates.push(put);
            for alias in lost {
                self.names.doubt(&alias, self.exchange.time_to_answer(now));
            }
        }
    }

    /// F-07: whether an entry counts. It does not if the name is held under another spelling that stays valid.
    fn counts(&mut self, entry: &Entry, message: &Message) -> bool {
        if self.outbound.ways().is_empty() {
            return true;
        }
        // A server may use its own spelling, whatever it was asked for.
        let held = self.kept.key(entry.name.as_str()).map(|name| self.kept.text(name));
        let left_out = entry.version.is_none() && self.type_url.traits().full_state;
        let stays = |text: &Name| !left_out && !message.removes(&entry.name, text);
        let other = held.is_some_and(|text| text != entry.text() && stays(text));
        let ways = self.outbound.ways_mut();
        ways.heard(&entry.name, entry.written.as_ref(), other)
    }

    /// Returns whether the content under the name of an entry has the same version; `None` without content. If the name is already
    /// stored, here or in another view, the entry takes that copy, so that equal names share their text.
    fn held(&self, entry: &mut Entry, version: &ArcStr) -> Option<bool> {
        let text = entry.name.as_str();
        let kept = self.kept.held(text);
        let held = kept.map(|(_, held)| held == entry.version.as_ref().unwrap_or(version));
        let twin = || {
            entry
                .twin
                .as_ref()
                .map(|twin| twin.name())
                .filter(|name| name.as_str() == text)
        };
        let stored = self.names.get(text).or_else(|| kept.map(|(name, _)| name));
        if let Some(known) = stored.or_else(twin).cloned() {
            entry.name = known;
        }
        held
    }
}
