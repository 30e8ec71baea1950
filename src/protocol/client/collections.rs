//! The collections that are wanted of one type (C-22), and when each is known as a whole.
//!
//! Owns what each waits for. Refuses to know the content of members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::completeness::{Completeness, Heard, Quiet, Settled};
use crate::xds::Name;

/// Collections, each with what must come before it is known as a whole: the same as for a wildcard.
#[derive(Debug, Default)]
pub(super) struct Collections {
    all: BTreeMap<Name, Completeness>,
    /// Those that wait for something.
    busy: BTreeSet<Name>,
    /// Those that the response at hand is about, and whether it has news of them.
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

    /// The collection that a name belongs to, if it is wanted (F-10).
    pub(super) fn covering(&self, name: &str) -> Option<&Name> {
        if self.all.is_empty() {
            return None;
        }
        self.get(Name::from(name).collection()?.as_str())
    }

    /// Whether every member is known.
    pub(super) fn whole(&self, name: &Name) -> bool {
        self.all.get(name).is_some_and(Completeness::complete)
    }

    /// A stream begins. `held` gives what is held of each, and whether the server is told of it.
    pub(super) fn connected(&mut self, held: impl Fn(&Name) -> Vec<(Name, bool)>) {
        for (name, completeness) in &mut self.all {
            let complete = completeness.complete();
            let held = held(name).into_iter();
            completeness.connected(held.map(|(name, declared)| (name, complete && declared)).collect());
        }
    }

    /// These members are held since an earlier run of the relay.
    pub(super) fn restored(&mut self, collection: &Name, members: impl Iterator<Item = Name>) {
        if let Some(completeness) = self.all.get_mut(collection) {
            completeness.restored(members);
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.all.values_mut().for_each(Completeness::disconnected);
        self.busy.clear();
    }

    /// The response at hand says something of a name in this collection.
    pub(super) fn mention(&mut self, collection: &Name, name: &Name, same_version: bool, news: bool) {
        if let Some(completeness) = self.all.get_mut(collection) {
            let news = news | completeness.confirm(name, same_version);
            *self.mentioned.entry(collection.clone()).or_default() |= news;
        }
    }

    /// A name in this collection that is held is asked for by itself as well.
    pub(super) fn asked(&mut self, collection: &Name, name: &Name) {
        if let Some(completeness) = self.all.get_mut(collection) {
            completeness.asked(name);
        }
    }

    /// A response is refused (E-22).
    pub(super) fn refuse(&mut self) {
        self.busy.iter().for_each(|name| {
            if let Some(completeness) = self.all.get_mut(name) {
                completeness.refuse();
            }
        });
    }

    /// Everything that the response at hand says was said, in delta. What that brings to whom.
    pub(super) fn heard(&mut self, heard: Heard, quiet: Quiet, now: Instant) -> Vec<(Name, Settled)> {
        let mut settled = Vec::new();
        for (name, news) in std::mem::take(&mut self.mentioned) {
            let Some(completeness) = self.all.get_mut(&name) else {
                continue;
            };
            // That another relay has no more to say in this answer does not mean that it knows the whole collection.
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

    /// The response at hand had all there is of what it mentions. Which are known as a whole by that.
    pub(super) fn finish_mentioned(&mut self) -> Vec<Name> {
        let mentioned = std::mem::take(&mut self.mentioned).into_keys();
        mentioned.filter(|name| self.finish(name)).collect()
    }

    /// All there is of a collection was said. Whether that is new.
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
