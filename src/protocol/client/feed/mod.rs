//! One type on one upstream stream: the wanted names, the held content, and how responses change it.
//!
//! Owns the state of every name. Knows nothing of the dialect's messages and the other types.

mod absence;
mod clients;
mod errors;
mod members;
mod requests;
mod restored;
mod streams;
mod times;
mod whole;
mod words;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arcstr::ArcStr;

use super::awaited::{Awaited, Patience};
use super::collections::Collections;
use super::completeness::{Completeness, Heard, Settled};
use super::entry::{Entry, called};
use super::ingest::Message;
use super::kept::{Kept, Receipt};
use super::late::Late;
use super::outbound::Outbound;
use super::silence::Silence;
use words::LastWords;
use xds::{Changes, Dialect, Kind, Name, Phase, Reason, ResourceError, ServerFeatures, TypeUrl, Update};

/// One type on one stream.
///
/// Invariant: either a wildcard is wanted or names are, never both; everything in `kept` is wanted.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) type_url: TypeUrl,
    pub(super) outbound: Outbound,
    silence: Silence,
    wildcard: bool,
    /// Nobody wants the wildcard any more, but the server goes on sending it on this stream.
    hidden: bool,
    names: Awaited,
    collections: Collections,
    kept: Kept,
    completeness: Completeness,
    /// The errors of wanted names.
    errors: BTreeMap<Name, Arc<ResourceError>>,
    features: ServerFeatures,
    /// SotW: the version of the last response on this stream that was accepted as a whole.
    pub(super) accepted: ArcStr,
    last_words: LastWords,
    /// E-24: what clients reject, if any has rejected anything.
    late: Option<Box<Late>>,
    patience: Patience,
    /// The longest pause within the server's answer, if its end was seen and nobody has taken it yet.
    pause: Option<Duration>,
    /// What the changes are a part of.
    phase: Phase,
    /// When the first whole state is over at the latest; `None` before anything was asked for on this stream.
    first_until: Option<Instant>,
    /// Its place in the order in which types were first requested on this stream.
    place: u32,
}

/// D-10: how long after the first request of a type the server's first whole state is over at the latest. A server that has nothing new
/// may say nothing at all, and what it says much later is meant. Endpoints change so often that they get less.
const FIRST_STATE: Duration = Duration::from_secs(30);
const FIRST_ENDPOINTS: Duration = Duration::from_secs(10);

impl Feed {
    pub(super) fn new(type_url: TypeUrl, patience: Patience, features: ServerFeatures) -> Self {
        Self {
            type_url,
            outbound: Outbound::default(),
            silence: Silence::default(),
            wildcard: false,
            hidden: false,
            names: Awaited::default(),
            collections: Collections::default(),
            kept: Kept::default(),
            completeness: Completeness::new(),
            errors: BTreeMap::new(),
            features,
            accepted: ArcStr::new(),
            last_words: LastWords::default(),
            late: None,
            patience,
            pause: None,
            phase: Phase::First,
            first_until: None,
            place: 0,
        }
    }

    pub(super) fn wanted(&self) -> bool {
        self.wildcard && !self.hidden || !self.names.is_empty()
    }

    /// Returns whether nothing is known yet of something that is wanted.
    pub(super) fn lacks(&self) -> bool {
        let wildcard = self.wildcard && !self.hidden && !self.completeness.complete();
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
        self.outbound.forget_written(name);
        self.errors.remove(name);
        self.outbound.answered &= self.wanted();
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

    /// Takes a response. Returns what it changes, and the message with its faults.
    pub(super) fn receive(
        &mut self,
        mut message: Message,
        dialect: Dialect,
        now: Instant,
    ) -> (Option<Changes>, Message) {
        if !self.wanted() && !self.hidden {
            return (None, message);
        }
        let first = !std::mem::replace(&mut self.outbound.answered, true);
        self.pass(now);
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
            if !self.wildcard && collection.is_none() && self.names_asked(&entry).next().is_none() {
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
            // A response with nothing but heartbeats says nothing about other resources (E-10).
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
                    // Without full states, a server may leave out resources or split its answer into several responses.
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
        self.conclude(dialect);
        let changes = self.changes(updates, complete, first.then_some(true));
        self.settle();
        (changes, message)
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
                None => message.version == self.accepted,
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
            self.absolve(name.as_str(), updates);
        }
        match self.kept.receive(&self.type_url, entry, version, now) {
            Receipt::Same => {}
            Receipt::Put(resource, expiry, lost) => {
                updates.push(Update::Put(resource, expiry));
                for alias in lost {
                    self.names.doubt(&alias, now + self.patience.does_not_exist);
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
        self.pause = self.pause.max(settled.pause);
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
        (any && !self.hidden).then(|| Changes {
            type_url: self.type_url.clone(),
            wildcard: self.wildcard,
            updates,
            complete,
            answered,
            phase: self.phase,
        })
    }
}
