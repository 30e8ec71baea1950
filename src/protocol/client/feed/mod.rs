//! One type on one upstream stream: what is wanted of it, what is held, and how responses change that.
//!
//! Owns the state of every name. Refuses to know the dialect's messages and the other types.

mod absence;
mod errors;
mod members;
mod requests;
mod restored;
mod streams;
mod times;
mod variants;
mod whole;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::awaited::{Awaited, Patience};
use super::collections::Collections;
use super::completeness::{Completeness, Heard, Settled};
use super::entry::{Entry, called};
use super::ingest::Message;
use super::kept::{Kept, Receipt};
use super::outbound::Outbound;
use crate::xds::{Changes, Dialect, Kind, Name, Reason, ResourceError, ServerFeatures, TypeUrl, Update};

/// One type on one stream.
///
/// Invariant: either a wildcard is wanted or names are, never both; everything in `kept` is wanted.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) type_url: TypeUrl,
    pub(super) outbound: Outbound,
    wildcard: bool,
    /// SotW: nobody wants the wildcard any more, but on this stream the server goes on sending it.
    hidden: bool,
    names: Awaited,
    collections: Collections,
    kept: Kept,
    completeness: Completeness,
    /// Of names that were asked for and have variants (TP2), what is held since before this stream and not mentioned on it.
    doubted: BTreeSet<Name>,
    /// What is wrong with names that are wanted.
    errors: BTreeMap<Name, Arc<ResourceError>>,
    features: ServerFeatures,
    /// SotW: the version of the last response that was accepted as a whole.
    pub(super) accepted: Arc<str>,
    patience: Patience,
    /// How long the server paused within its answer, if its end was seen and nobody was told yet.
    pause: Option<Duration>,
}

/// What an entry is kept by.
struct Key {
    name: Name,
    /// Whether what is held by that has the same version.
    held: Option<bool>,
}

impl Feed {
    pub(super) fn new(type_url: TypeUrl, patience: Patience, features: ServerFeatures) -> Self {
        Self {
            type_url,
            outbound: Outbound::default(),
            wildcard: false,
            hidden: false,
            names: Awaited::default(),
            collections: Collections::default(),
            kept: Kept::default(),
            completeness: Completeness::new(),
            doubted: BTreeSet::new(),
            errors: BTreeMap::new(),
            features,
            accepted: Arc::from(""),
            patience,
            pause: None,
        }
    }

    pub(super) fn wanted(&self) -> bool {
        self.wildcard && !self.hidden || !self.names.is_empty()
    }

    /// Whether anything is wanted of which nothing is known.
    pub(super) fn lacks(&self) -> bool {
        let wildcard = self.wildcard && !self.hidden && !self.completeness.complete();
        wildcard && self.kept.names().next().is_none() || self.names.lacks()
    }

    /// A name is wanted from now on; one that was wanted already is wanted anew, or written in one more way.
    pub(super) fn want(&mut self, name: &Name, written: Option<&Name>) -> Vec<Update> {
        let known = !self.names.insert(name);
        match self.write(name, written, known) {
            Some(updates) => return updates,
            None if known => return self.want_anew(name),
            None => {}
        }
        self.outbound.join(name.clone());
        if name.is_collection() {
            self.collections.insert(name);
        }
        // E-08: what is held by another of its names is not waited for; a server may well pass over it (C-14).
        if let Some(canonical) = self.kept.canonical(name.as_str()) {
            self.names.known(name.as_str());
            if let Some(collection) = self.collections.covering(canonical.as_str()).cloned() {
                self.collections.asked(&collection, canonical);
            }
        } else if self.kept.has_variants(name.as_str()) {
            self.names.known(name.as_str());
        }
        Vec::new()
    }

    /// Nobody knows whether what is held of a name is current (E-17). Where nothing is, the answer is still to come.
    fn want_anew(&mut self, name: &Name) -> Vec<Update> {
        let mut held = self.variants_of(name.as_str());
        held.extend(self.kept.canonical(name.as_str()).cloned());
        if held.is_empty() {
            return Vec::new();
        }
        for key in &held {
            self.kept.remove(key);
        }
        self.names.remove(name);
        self.names.insert(name);
        self.outbound.leave(name);
        self.outbound.join(name.clone());
        vec![Update::Forget(name.clone())]
    }

    /// A name is wanted no more: what was known of it is forgotten.
    pub(super) fn unwant(&mut self, name: &Name) -> Vec<Update> {
        if !self.names.remove(name) {
            return Vec::new();
        }
        self.outbound.leave(name);
        self.outbound.forget_written(name);
        self.errors.remove(name);
        self.outbound.answered &= self.wanted();
        if name.is_collection() {
            return self.unwant_collection(name);
        }
        let left = self.collections.covering(name.as_str()).is_some() && self.kept.has_variants(name.as_str());
        let dropped = self.drop_variants(name);
        let Some(canonical) = self.kept.canonical(name.as_str()).cloned() else {
            return if left {
                Vec::new()
            } else {
                vec![Update::Forget(name.clone())]
            };
        };
        let resource = self.kept.resource(canonical.as_str());
        let others = resource
            .is_some_and(|resource| self.names_of(resource.name(), resource.aliases()).next().is_some())
            || self.collections.covering(canonical.as_str()).is_some();
        match (others, canonical == *name) {
            // Somebody else asks for the same by another name.
            (true, true) => dropped,
            (true, false) => vec![Update::Forget(name.clone())],
            (false, same) => {
                self.kept.remove(&canonical);
                let alias = (!same).then(|| Update::Forget(name.clone()));
                std::iter::once(Update::Forget(canonical)).chain(alias).collect()
            }
        }
    }

    /// Takes a response. What it changes, and what is wrong with it.
    pub(super) fn receive(
        &mut self,
        mut message: Message,
        dialect: Dialect,
        now: Instant,
    ) -> (Option<Changes>, Message) {
        if !self.wanted() && !self.hidden || self.outbound.is_leaving(Name::WILDCARD) {
            return (None, message);
        }
        let first = !std::mem::replace(&mut self.outbound.answered, true);
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
            // E-06: what nobody asked for is passed over in silence.
            let collection = self.covering(entry.name.as_str());
            if !self.wildcard && collection.is_none() && self.names_asked(&entry).next().is_none() {
                continue;
            }
            let key = self.key(&mut entry, &message.version);
            heard.news |= self.take(&entry, &key, collection.as_ref(), &mut message, now, &mut updates);
            if dialect == Dialect::Delta {
                aliases.extend(entry.aliases);
            }
            if message.whole || !self.doubted.is_empty() {
                mentioned.push(key.name);
            }
        }
        // What is not mentioned may be meant by an entry of which the name is in doubt: then nothing is deleted.
        if !message.uncertain {
            if dialect == Dialect::Delta || !beats || message.version != self.accepted {
                self.settle_variants(&mentioned, &message, &mut updates);
            }
            heard.news |= self.remove(&mut message, &aliases, &mut updates);
        }
        self.complain(&mut message, &mut updates);
        let complete = match dialect {
            Dialect::Delta => {
                self.heard(heard, now, &mut updates);
                let settled = if self.wildcard {
                    self.completeness.heard(heard, self.patience.wildcard(), now)
                } else {
                    Settled::default()
                };
                self.settled(settled, &mut updates)
            }
            // A response of heartbeats alone says nothing of the rest (E-10).
            Dialect::Sotw if message.uncertain || beats && message.version == self.accepted => {
                self.collections.forget_mentioned();
                None
            }
            Dialect::Sotw => {
                if self.type_url.traits().full_state {
                    let spoiled = message.spoiled.iter().map(|name| Name::from(name.as_str()));
                    let mentioned = mentioned.into_iter().chain(spoiled).collect();
                    self.delete_others(&mentioned, &mut updates);
                    self.absolve_others(&mentioned, &mut updates);
                    updates.extend(self.collections.finish_mentioned().into_iter().map(Update::Whole));
                } else {
                    // What a server without full states leaves out says nothing, and its answer may have several parts.
                    self.heard(heard, now, &mut updates);
                }
                (self.wildcard && self.completeness.finish()).then_some(true)
            }
        };
        if !message.faults.none() {
            self.completeness.refuse();
            self.collections.refuse();
        }
        if message.faults.none() {
            self.accepted = message.version.clone();
        }
        (self.changes(updates, complete, first.then_some(true)), message)
    }

    /// Takes one sound entry. Whether it was news.
    fn take(
        &mut self,
        entry: &Entry,
        key: &Key,
        collection: Option<&Name>,
        message: &mut Message,
        now: Instant,
        updates: &mut Vec<Update>,
    ) -> bool {
        if !self.counts(entry, message) {
            return false;
        }
        let (key, held) = (&key.name, key.held);
        let version = entry.version.as_ref().unwrap_or(&message.version).clone();
        if entry.body.is_none() {
            // C-21: a virtual host without a body does not exist; it never is a heartbeat.
            if self.type_url.kind() == Kind::Vhds {
                return self.missing(entry, updates);
            }
            // E-10: without a body it confirms what is held, if the version is the one held; in SotW the response's version counts.
            let confirms = match &entry.version {
                Some(_) => held == Some(true),
                None => held.is_some() && message.version == self.accepted,
            };
            if !confirms {
                message.faults.add(
                    &called(entry.name.as_str()),
                    "has no body and confirms nothing that is held",
                );
                return false;
            }
        }
        // A time to live is prolonged by sending again what we hold (E-11), what is asked for by a name of its own is sent although
        // we hold it, and so is what is for everybody with variants that are new (C-26): that does not show that the server forgot.
        let mut asked = self.names_of(&entry.name, &entry.aliases).peekable();
        let alone = asked.peek().is_some();
        // all of them, of what has no name.
        let answered: Vec<Name> = asked.filter(|_| entry.name.is_empty()).cloned().collect();
        let resent = held == Some(true) && entry.ttl.is_none() && !alone && !message.varies(&entry.name);
        let news = held.is_none() | self.completeness.confirm(key, resent);
        if let Some(collection) = collection {
            self.names.known(collection.as_str());
            self.collections.mention(collection, key, resent, news);
        }
        for name in entry.names().chain(&answered) {
            self.names.known(name.as_str());
            self.absolve(name.as_str(), updates);
        }
        match self.kept.receive(&self.type_url, key, entry, version, now) {
            Receipt::Same => {}
            Receipt::Put(resource, expiry, lost) => {
                updates.push(Update::Put(resource, expiry));
                for alias in lost {
                    self.names.doubt(&alias, now + self.patience.does_not_exist);
                }
            }
            Receipt::Dead => self.dead(entry, updates),
        }
        news
    }

    fn settled(&mut self, settled: Settled, updates: &mut Vec<Update>) -> Option<bool> {
        for name in settled.gone {
            self.gone(&name, Reason::Said, updates);
        }
        self.pause = self.pause.max(settled.pause);
        settled.complete.then_some(true)
    }

    /// What an entry is kept by. A name that is at hand already takes the place of the entry's own, so that equal names share
    /// their text.
    fn key(&self, entry: &mut Entry, version: &Arc<str>) -> Key {
        let text = entry.key();
        let kept = self.kept.held(text);
        let held = kept.map(|(_, held)| held == entry.version.as_ref().unwrap_or(version));
        let known = self.names.get(text).or_else(|| kept.map(|(key, _)| key)).cloned();
        let name = match (known, &entry.variant) {
            (Some(known), None) => {
                entry.name = known.clone();
                known
            }
            (None, None) => entry.name.clone(),
            (known, Some(_)) => known.unwrap_or_else(|| Name::from(text)),
        };
        Key { name, held }
    }

    /// The names by which this is asked for. A-09: what has no name is asked for by any that nothing else has.
    fn names_of<'a>(&'a self, canonical: &'a Name, aliases: &'a [Name]) -> impl Iterator<Item = &'a Name> {
        let any = canonical.is_empty().then(|| self.names.iter()).into_iter().flatten();
        let any = any.filter(|name| name.is_empty() || self.kept.key(name.as_str()).is_none());
        let own = std::iter::once(canonical).chain(aliases);
        own.filter(|name| !name.is_empty() && self.names.contains(name.as_str()))
            .chain(any)
    }

    fn names_asked<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Name> {
        // What was sent for a name before it was given up does not count when it is asked for anew.
        self.names_of(&entry.name, &entry.aliases)
            .filter(|name| !self.outbound.is_leaving(name.as_str()))
    }

    fn changes(&self, updates: Vec<Update>, complete: Option<bool>, answered: Option<bool>) -> Option<Changes> {
        let any = !updates.is_empty() || complete.is_some() || answered.is_some();
        (any && !self.hidden).then(|| Changes {
            type_url: self.type_url.clone(),
            wildcard: self.wildcard,
            updates,
            complete,
            answered,
        })
    }
}
