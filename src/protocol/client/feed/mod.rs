//! One type on one upstream stream: the wanted names, the held content, and how responses change it.
//!
//! Owns its parts, and what a response and the end of a wait do to several of them. Knows nothing of the dialect's messages and the other
//! types.

mod absence;
mod clients;
mod errors;
mod exchange;
mod members;
mod name_errors;
mod requests;
mod restored;
mod streams;
mod times;
mod whole;
mod written;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use arcstr::ArcStr;

use super::awaited::{Awaited, Patience};
use super::collections::Collections;
use super::completeness::{Completeness, Heard, Settled};
use super::entry::{Entry, called};
use super::ingest::Message;
use super::kept::{Kept, Receipt};
use super::outbound::Outbound;
use exchange::Exchange;
use name_errors::NameErrors;
use whole::Wildcard;
use xds::{Changes, Dialect, Kind, Name, Reason, ServerFeatures, ServerWords, TypeUrl, Update};

/// One type on one stream.
///
/// Invariant: either a wildcard is wanted or names are, never both; everything in `kept` is wanted.
#[derive(Debug)]
pub(super) struct Feed {
    type_url: TypeUrl,
    outbound: Outbound,
    exchange: Exchange,
    wildcard: Wildcard,
    completeness: Completeness,
    names: Awaited,
    collections: Collections,
    kept: Kept,
    /// The errors of wanted names.
    errors: NameErrors,
}

/// What a response has changed.
pub(super) struct Taken {
    pub(super) changes: Option<Changes>,
    /// The response, with its faults.
    pub(super) message: Message,
    /// The longest pause within the server's answer, if its end was seen.
    pub(super) pause: Option<Duration>,
}

impl Feed {
    pub(super) fn new(type_url: TypeUrl, patience: Patience, features: ServerFeatures) -> Self {
        Self {
            type_url,
            outbound: Outbound::default(),
            exchange: Exchange::new(patience),
            wildcard: Wildcard::Unwanted,
            completeness: Completeness::new(),
            names: Awaited::default(),
            collections: Collections::default(),
            kept: Kept::default(),
            errors: NameErrors::new(features),
        }
    }

    pub(super) const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    pub(super) const fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// Returns the same, for what has nothing to do with content.
    pub(super) const fn outbound_mut(&mut self) -> &mut Outbound {
        &mut self.outbound
    }

    pub(super) const fn wanted(&self) -> bool {
        self.wildcard.is_wanted() || !self.names.is_empty()
    }

    /// Returns what the server said about the resource of this name, if it is held.
    pub(super) fn words(&self, name: &Name) -> Option<ServerWords> {
        let key = self.kept.canonical(name.as_str())?;
        let (_, version) = self.kept.held(key.as_str())?;
        Some(self.exchange.words(version))
    }

    /// Whether the server has said anything about the type since then, on this stream.
    pub(super) fn has_heard_since(&self, then: Instant) -> bool {
        self.exchange.has_heard_since(then)
    }

    /// Returns whether nothing is known yet of something that is wanted.
    pub(super) fn lacks(&self) -> bool {
        let wildcard = self.wildcard.is_wanted() && !self.completeness.complete();
        wildcard && self.kept.names().next().is_none() || self.names.lacks()
    }

    /// A name is wanted from now on. If it was wanted already, it is requested in one more spelling.
    pub(super) fn want(&mut self, name: &Name, written: Option<&Name>) -> Vec<Update> {
        let known = !self.names.insert(name);
        match self.write(name, written, known) {
            Some(updates) => return updates,
            None if known => return Vec::new(),
            None => {}
        }
        self.outbound.join(name.clone());
        if name.is_collection() {
            self.collections.insert(name);
        }
        self.expect(name);
        Vec::new()
    }

    /// A name is not wanted any more: its content is forgotten.
    pub(super) fn unwant(&mut self, name: &Name) -> Vec<Update> {
        if !self.names.remove(name) {
            return Vec::new();
        }
        self.outbound.leave(name);
        self.errors.forget(name);
        if !self.wanted() {
            self.outbound.forget_answer();
        }
        if name.is_collection() {
            return self.unwant_collection(name);
        }
        let Some(canonical) = self.kept.canonical(name.as_str()).cloned() else {
            return vec![Update::Forget(name.clone())];
        };
        let resource = self.kept.resource(canonical.as_str());
        let others = resource
            .is_some_and(|resource| self.names_of(resource.name(), resource.aliases()).next().is_some())
            || self.collections.covering(canonical.as_str()).is_some();
        match (others, canonical == *name) {
            // Another requested name still needs the resource.
            (true, true) => Vec::new(),
            (true, false) => vec![Update::Forget(name.clone())],
            (false, same) => {
                self.kept.remove(&canonical);
                let alias = (!same).then(|| Update::Forget(name.clone()));
                std::iter::once(Update::Forget(canonical)).chain(alias).collect()
            }
        }
    }

    /// Takes a response.
    pub(super) fn receive(&mut self, mut message: Message, dialect: Dialect, now: Instant) -> Taken {
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
        let mut pause = None;
        let complete = match dialect {
            Dialect::Delta => {
                self.heard(heard, now, &mut updates);
                if self.wildcard.is_asked() {
                    let quiet = self.exchange.patience().wildcard();
                    let settled = self.completeness.heard(heard, quiet, now);
                    pause = settled.pause;
                    self.settled(settled, &mut updates)
                } else {
                    None
                }
            }
            // A response with nothing but heartbeats says nothing about other resources (E-10).
            Dialect::Sotw if message.uncertain || beats && message.version == *self.outbound.acks().version() => {
                self.collections.forget_mentioned();
                None
            }
            Dialect::Sotw => {
                if self.type_url.traits().full_state {
                    let spoiled = message.spoiled.iter().map(|name| Name::from(name.as_str()));
                    let mentioned = mentioned.into_iter().chain(spoiled).collect();
                    self.delete_others(&mentioned, &mut updates);
                    let names = &self.names;
                    self.errors
                        .absolve_others(&mentioned, |name| names.contains(name), &mut updates);
                    updates.extend(self.collections.finish_mentioned().into_iter().map(Update::Whole));
                } else {
                    // Without full states, a server may leave out resources or split its answer into several responses.
                    self.heard(heard, now, &mut updates);
                }
                (self.wildcard.is_asked() && self.completeness.finish()).then_some(true)
            }
        };
        if message.faults.none() {
            self.outbound.acks_mut().accept(message.version.clone());
        } else {
            self.completeness.refuse();
            self.collections.refuse();
        }
        self.conclude(dialect);
        let changes = self.changes(updates, complete, first.then_some(true));
        self.exchange.settle();
        Taken {
            changes,
            message,
            pause,
        }
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
        let resent = held == Some(true) && entry.ttl.is_none() && !alone;
        let news = held.is_none() | self.completeness.confirm(name, resent);
        if let Some(collection) = collection {
            self.names.known(collection.as_str());
            self.collections.mention(collection, name, resent, news);
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

    fn settled(&mut self, settled: Settled, updates: &mut Vec<Update>) -> Option<bool> {
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

    /// Returns the requested names that this resource answers. A-09: a resource without a name answers all names that no other
    /// resource has.
    fn names_of<'a>(&'a self, canonical: &'a Name, aliases: &'a [Name]) -> impl Iterator<Item = &'a Name> {
        let any = canonical.is_empty().then(|| self.names.iter()).into_iter().flatten();
        let any = any.filter(|name| name.is_empty() || self.kept.key(name.as_str()).is_none());
        // Names mostly end in order: then the last ones are still requested.
        let own = std::iter::once(canonical).chain(aliases.iter().rev());
        own.filter(|name| !name.is_empty() && self.names.contains(name.as_str()))
            .chain(any)
    }

    fn names_asked<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Name> {
        // A name that was given up and then requested again ignores what was sent before that.
        self.names_of(&entry.name, &entry.aliases)
            .filter(|name| !self.outbound.is_leaving(name.as_str()))
    }

    fn changes(&self, updates: Vec<Update>, complete: Option<bool>, answered: Option<bool>) -> Option<Changes> {
        let any = !updates.is_empty() || complete.is_some() || answered.is_some();
        (any && !self.wildcard.is_hidden()).then(|| Changes {
            type_url: self.type_url.clone(),
            wildcard: self.wildcard.is_asked(),
            updates,
            complete,
            answered,
            phase: self.exchange.phase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each view has one for each of its types, and there may be very many views.
    #[test]
    fn what_every_type_of_every_view_takes() {
        assert!(size_of::<Feed>() <= 976, "{}", size_of::<Feed>());
    }
}
