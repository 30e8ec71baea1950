//! The effects of one response on all parts of a type.
//!
//! Owns the order in which a response is read. Does not know how it was encoded.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use arcstr::ArcStr;

use super::Feed;
use crate::client::completeness::{Heard, Settled};
use crate::client::entry::{Entry, called};
use crate::client::ingest::Message;
use crate::client::kept::Receipt;
use xds::{Changes, Dialect, Kind, Name, Reason, Update};

/// What a response has changed.
pub(in crate::client) struct Taken {
    pub(in crate::client) changes: Option<Changes>,
    /// The response, with its faults.
    pub(in crate::client) message: Message,
    /// The longest pause within the server's answer, if its end was seen.
    pub(in crate::client) pause: Option<Duration>,
}

impl Feed {
    /// Takes a response.
    pub(in crate::client) fn receive(&mut self, mut message: Message, dialect: Dialect, now: Instant) -> Taken {
        self.exchange.hear(&message, now);
        if !self.wanted() && !self.wildcard.is_hidden() {
            return Taken {
                changes: None,
                message,
                pause: None,
            };
        }
        let first = self.outbound.hear();
        self.exchange.pass(now);
        let mut updates = Vec::new();
        let mut heard = Heard {
            news: false,
            more: message.more,
            uncertain: message.uncertain,
        };
        let mut mentioned = Vec::new();
        let mut aliases = BTreeSet::new();
        let mut beats = !message.entries.is_empty();
        for mut entry in std::mem::take(&mut message.entries) {
            beats &= entry.body.is_none();
            // E-06: content that nobody requested is ignored without a NACK.
            let collection = self.covering(entry.name.as_str());
            if !self.wildcard.is_asked() && collection.is_none() && self.names_asked(&entry).next().is_none() {
                continue;
            }
            let held = self.held(&mut entry, &message.version);
            heard.news |= self.take(&entry, held, collection.as_ref(), &mut message, now, &mut updates);
            if dialect == Dialect::Delta {
                aliases.extend(entry.aliases);
            } else {
                mentioned.push(entry.name);
            }
        }
        // If the name of an entry is in doubt, a name that is not mentioned may be meant by it: then nothing is deleted.
        if !message.uncertain {
            heard.news |= self.remove(&mut message, &aliases, &mut updates);
        }
        self.complain(&mut message, &mut updates);
        let (complete, pause) = match dialect {
            Dialect::Delta => self.end_delta(heard, now, &mut updates),
            // A response with nothing but heartbeats says nothing about other resources (E-10).
            Dialect::Sotw if message.uncertain || beats && message.version == *self.outbound.acks().version() => {
                self.collections.forget_mentioned();
                (None, None)
            }
            Dialect::Sotw => {
                let complete = self.end_sotw((mentioned, &message.spoiled), heard, now, &mut updates);
                (complete, None)
            }
        };
        if message.faults.none() {
            self.outbound.acks_mut().accept(message.version.clone());
        } else {
            self.completeness.refuse();
            self.collections.refuse();
        }
        self.relax(dialect);
        self.conclude(dialect);
        let changes = self.changes(updates, complete, first.then_some(true));
        self.exchange.settle();
        Taken {
            changes,
            message,
            pause,
        }
    }

    /// A delta response is read to its end. Returns whether the wildcard is newly complete, and the pause that shows.
    fn end_delta(&mut self, heard: Heard, now: Instant, updates: &mut Vec<Update>) -> (Option<bool>, Option<Duration>) {
        self.heard(heard, now, updates);
        // The end of another relay's answer says nothing of single names.
        let more = heard.more.filter(|_| self.wildcard.is_asked());
        let quiet = self.exchange.patience().wildcard();
        let settled = match self.wildcard.is_asked() || self.completeness.complete() {
            true => self.completeness.heard(Heard { more, ..heard }, quiet, now),
            false => return (None, None),
        };
        let pause = settled.pause;
        (self.settled(settled, updates), pause)
    }

    /// A SotW response that mentions these names, some with faults, is read to its end. Returns whether the wildcard is newly complete.
    fn end_sotw(
        &mut self,
        (mentioned, spoiled): (Vec<Name>, &BTreeSet<String>),
        heard: Heard,
        now: Instant,
        updates: &mut Vec<Update>,
    ) -> Option<bool> {
        if self.type_url.traits().full_state {
            let spoiled = spoiled.iter().map(|name| Name::from(name.as_str()));
            let mentioned = mentioned.into_iter().chain(spoiled).collect();
            self.delete_others(&mentioned, updates);
            let names = &self.names;
            self.errors
                .absolve_others(&mentioned, |name| names.contains(name), updates);
            updates.extend(self.collections.finish_mentioned().into_iter().map(Update::Whole));
        } else {
            // Without full states, a server may leave out resources or split its answer into several responses.
            self.heard(heard, now, updates);
        }
        (self.wildcard.is_asked() && self.completeness.finish()).then_some(true)
    }

    /// Takes one sound entry; `held`: whether the content under its name has the same version. Returns whether its name was new or
    /// unconfirmed.
    fn take(
        &mut self,
        entry: &Entry,
        held: Option<bool>,
        collection: Option<&Name>,
        message: &mut Message,
        now: Instant,
        updates: &mut Vec<Update>,
    ) -> bool {
        if !self.counts(entry, message) {
            return false;
        }
        let name = &entry.name;
        let version = entry.version.as_ref().unwrap_or(&message.version).clone();
        if entry.body.is_none() {
            // C-21: a virtual host without a body does not exist; it is never a heartbeat.
            if self.type_url.kind() == Kind::Vhds {
                return self.missing(entry, updates);
            }
            // E-10: without a body, the entry says that what is not held does not exist. It confirms content that is held if the version
            // is the same; in SotW, the response's version counts.
            if held.is_none() {
                return self.missing(entry, updates);
            }
            let confirms = match &entry.version {
                Some(_) => held == Some(true),
                None => message.version == *self.outbound.acks().version(),
            };
            if !confirms {
                message.faults.add(
                    &called(entry.name.as_str()),
                    "has no body and another version than what the relay holds",
                );
                return false;
            }
        }
        // In two cases the server resends held content although it did not forget that the relay holds it: to prolong a time to
        // live (E-11), and for a name that is requested by itself.
        let mut asked = self.names_of(name, &entry.aliases).peekable();
        let alone = asked.peek().is_some();
        // a resource without a name answers all requested names.
        let answered: Vec<Name> = asked.filter(|_| name.is_empty()).cloned().collect();
        let resent = held == Some(true) && entry.ttl.is_none();
        let news = held.is_none() | self.completeness.confirm(name, resent);
        if let Some(collection) = collection {
            self.names.known(collection.as_str());
            self.collections.mention(collection, name, resent && !alone, news);
        }
        for name in entry.names().chain(&answered) {
            self.names.known(name.as_str());
            self.errors.absolve(name.as_str(), updates);
        }
        match self.kept.receive(&self.type_url, entry, version, now) {
            Receipt::Same => {}
            Receipt::Put(resource, expiry, lost) => {
                updates.push(Update::Put(resource, expiry));
                for alias in lost {
                    self.names.doubt(&alias, self.exchange.time_to_answer(now));
                }
            }
            // E-11: the time to live is zero.
            Receipt::Dead => {
                self.absent(entry.name.as_str(), Reason::Expired, updates);
            }
        }
        news
    }

    pub(super) fn settled(&mut self, settled: Settled, updates: &mut Vec<Update>) -> Option<bool> {
        for name in settled.gone {
            self.gone(&name, Reason::Said, updates);
        }
        settled.complete.then_some(true)
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
