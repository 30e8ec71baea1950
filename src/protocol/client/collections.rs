//! The wanted collections of one type (C-22), and when each is complete.
//!
//! Owns what each collection still waits for. Knows nothing of the content of members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::completeness::{Completeness, Heard, Quiet, Settled};
use xds::Name;

/// The collections. Each is complete under the same conditions as a wildcard.
#[derive(Debug, Default)]
pub(super) struct Collections {
    all: BTreeMap<Name, Completeness>,
    /// The collections that still wait for something.
    busy: BTreeSet<Name>,
    /// The collections that the present response mentions, and whether it has news of them.
    mentioned: BTreeMap<Name, bool>,
}

impl Collections {
    pub(super) fn insert(&mut self, name: &Name) {
        self.all.entry(name.clone()).or_insert_with(Completeness::new);
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.all.remove(name);
        self.busy.remove(name);
    }

    pub(super) fn get(&self, text: &str) -> Option<&Name> {
        self.all.get_key_value(text).map(|(name, _)| name)
    }

    /// Returns the wanted collection that a name belongs to (F-10).
    pub(super) fn covering(&self, name: &str) -> Option<&Name> {
        if self.all.is_empty() {
            return None;
        }
        self.get(Name::from(name).collection()?.as_str())
    }

    /// Returns whether every member of the collection is known.
    pub(super) fn whole(&self, name: &Name) -> bool {
        self.all.get(name).is_some_and(Completeness::complete)
    }

    /// A stream begins. `held` returns the held members of a collection, and for each whether the server is told of its version.
    pub(super) fn connected(&mut self, held: impl Fn(&Name) -> Vec<(Name, bool)>) {
        for (name, completeness) in &mut self.all {
            let complete = completeness.complete();
            let held = held(name).into_iter();
            completeness.connected(held.map(|(name, declared)| (name, complete && declared)).collect());
        }
    }

    /// Returns whether this member is from before the stream, the server was not sent its version, and has not mentioned it.
    pub(super) fn undeclared(&self, collection: &Name, member: &Name) -> bool {
        let completeness = self.all.get(collection);
        completeness.is_some_and(|completeness| completeness.undeclared(member))
    }

    /// E-04: the server is sent another version of the name than its own.
    pub(super) fn undeclare(&mut self, name: &Name) {
        let collection = name.collection();
        if let Some(completeness) = collection.and_then(|collection| self.all.get_mut(&collection)) {
            completeness.undeclare(name);
        }
    }

    /// Members of the collection were restored from an earlier run of the relay.
    pub(super) fn restored(&mut self, collection: &Name, members: impl Iterator<Item = Name>) {
        if let Some(completeness) = self.all.get_mut(collection) {
            completeness.restored(members);
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.all.values_mut().for_each(Completeness::disconnected);
        self.busy.clear();
    }

    /// The present response has an entry or a removal for a name in this collection.
    pub(super) fn mention(&mut self, collection: &Name, name: &Name, same_version: bool, news: bool) {
        if let Some(completeness) = self.all.get_mut(collection) {
            let news = news | completeness.confirm(name, same_version);
            *self.mentioned.entry(collection.clone()).or_default() |= news;
        }
    }

    /// A held name in this collection is now requested by itself as well.
    pub(super) fn asked(&mut self, collection: &Name, name: &Name) {
        if let Some(completeness) = self.all.get_mut(collection) {
            completeness.asked(name);
        }
    }

    /// The relay rejects a response (E-22).
    pub(super) fn refuse(&mut self) {
        self.busy.iter().for_each(|name| {
            if let Some(completeness) = self.all.get_mut(name) {
                completeness.refuse();
            }
        });
    }

    /// The present delta response is read to its end. Returns what that means for the collections that it mentions.
    pub(super) fn heard(&mut self, heard: Heard, quiet: Quiet, now: Instant) -> Vec<(Name, Settled)> {
        let mut settled = Vec::new();
        if heard.more == Some(false) {
            self.each_busy(|settle| settle.ended(now));
        }
        for (name, news) in std::mem::take(&mut self.mentioned) {
            let Some(completeness) = self.all.get_mut(&name) else {
                continue;
            };
            // Another relay may say that this answer is finished, but that does not mean that it knows the whole collection.
            let more = heard.more.filter(|more| *more);
            settled.push((
                name.clone(),
                completeness.heard(Heard { news, more, ..heard }, quiet, now),
            ));
            self.busy.insert(name);
        }
        self.rest();
        settled
    }

    /// The present response has all members of the collections that it mentions. Returns those that are newly complete.
    pub(super) fn finish_mentioned(&mut self) -> Vec<Name> {
        let mentioned = std::mem::take(&mut self.mentioned).into_keys();
        mentioned.filter(|name| self.finish(name)).collect()
    }

    /// The server has sent the whole collection. Returns whether it is newly complete.
    pub(super) fn finish(&mut self, name: &Name) -> bool {
        self.busy.remove(name);
        self.all.get_mut(name).is_some_and(Completeness::finish)
    }

    pub(super) fn forget_mentioned(&mut self) {
        self.mentioned.clear();
    }

    pub(super) fn answered(&mut self, now: Instant) {
        self.each_busy(|completeness| completeness.answered(now));
    }

    pub(super) fn bytes(&mut self, at: Instant) {
        self.each_busy(|completeness| completeness.bytes(at));
    }

    /// Whether no collection waits for anything.
    pub(super) fn rests(&self) -> bool {
        self.busy.is_empty()
    }

    pub(super) fn deadline(&self, quiet: Quiet) -> Option<Instant> {
        let busy = self.busy.iter().filter_map(|name| self.all.get(name));
        busy.filter_map(|completeness| completeness.deadline(quiet)).min()
    }

    pub(super) fn timeout(&mut self, quiet: Quiet, now: Instant) -> Vec<(Name, Settled)> {
        let mut settled = Vec::new();
        for name in &self.busy {
            if let Some(completeness) = self.all.get_mut(name) {
                settled.push((name.clone(), completeness.timeout(quiet, now)));
            }
        }
        self.rest();
        settled
    }

    fn each_busy(&mut self, mut act: impl FnMut(&mut Completeness)) {
        for name in &self.busy {
            if let Some(completeness) = self.all.get_mut(name) {
                act(completeness);
            }
        }
    }

    fn rest(&mut self) {
        let all = &self.all;
        self.busy
            .retain(|name| all.get(name).is_some_and(|completeness| !completeness.rests()));
    }
}
