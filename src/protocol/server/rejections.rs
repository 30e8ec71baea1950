//! What the client has rejected: what is tried again, in which parts, and why it was rejected (B-22).
//!
//! Owns the groups of names that are still to be tried. What was rejected alone is a row of the ledger. Does not send anything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use xds::{Name, Objection, Version};

/// The rejections of one type on one stream. Most clients reject nothing, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Rejections(Option<Box<Trials>>);

#[derive(Debug, Default)]
struct Trials {
    /// What is still to be tried.
    waiting: BTreeMap<Name, Trial>,
    /// The same, group after group. A name that is in a later group, or is not tried any more, is passed over.
    groups: VecDeque<Group>,
    /// The number of the last group.
    last_group: u64,
    /// The response in which a group is tried, and whether that group is a second try.
    trial: Option<(u64, bool)>,
    /// How many tries were rejected since one was accepted.
    rejected: u32,
    /// Why the names were rejected that are held back.
    held_back: BTreeMap<Name, Arc<Objection>>,
    /// Why the last response was rejected.
    last: Option<Arc<Objection>>,
    /// For each name of which it has rejected something and accepted nothing since: whether it holds what it had before.
    keeps: BTreeMap<Name, bool>,
}

/// A name that is still to be tried.
#[derive(Debug)]
struct Trial {
    group: u64,
    /// The version that was rejected.
    version: Version,
}

/// Names that are tried together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) names: Vec<Name>,
    number: u64,
    again: bool,
}

/// After so many rejected tries without an accepted one, all that is still to be tried is held back.
const TRIES_MAX: u32 = 64;

impl Trials {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held_back.is_empty() && self.trial.is_none()
    }

    fn add(&mut self, group: Vec<(Name, Version)>, again: bool) {
        self.last_group += 1;
        let number = self.last_group;
        let names = group.iter().map(|(name, _)| name.clone()).collect();
        self.groups.push_back(Group { names, number, again });
        let trials = group
            .into_iter()
            .map(|(name, version)| (name, Trial { group: number, version }));
        self.waiting.extend(trials);
    }

    /// Returns the next group of which anything is still to be tried.
    fn first(&mut self) -> Option<&Group> {
        while let Some(group) = self.groups.front_mut() {
            let still = |name: &Name| self.waiting.get(name).is_some_and(|trial| trial.group == group.number);
            group.names.retain(still);
            if !group.names.is_empty() {
                break;
            }
            self.groups.pop_front();
        }
        self.groups.front()
    }
}

impl Rejections {
    /// Whether the client has rejected anything that it was not sent in an accepted response since.
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|trials| trials.is_empty())
    }

    /// Returns how many names are kept.
    pub(super) fn len(&self) -> usize {
        let trials = self.0.as_ref();
        trials.map_or(0, |trials| {
            (trials.waiting.len() + trials.held_back.len()).max(trials.keeps.len())
        })
    }

    /// Whether anything is still to be tried.
    pub(super) fn tries(&self) -> bool {
        self.0.as_ref().is_some_and(|trials| !trials.waiting.is_empty())
    }

    /// Whether a name is still to be tried: then it is sent only with its group.
    pub(super) fn awaits(&self, name: &Name) -> bool {
        self.0.as_ref().is_some_and(|trials| trials.waiting.contains_key(name))
    }

    /// Returns the next group, unless one is on its way, or one of its names is.
    pub(super) fn pop(&mut self, is_on_its_way: impl Fn(&Name) -> bool) -> Option<Group> {
        let trials = self.0.as_mut().filter(|trials| trials.trial.is_none())?;
        if trials.first()?.names.iter().any(is_on_its_way) {
            return None;
        }
        let group = trials.groups.pop_front()?;
        for name in &group.names {
            trials.waiting.remove(name);
        }
        Some(group)
    }

    /// A group is tried in this response.
    pub(super) fn begin(&mut self, nonce: u64, group: &Group) {
        self.0.get_or_insert_default().trial = Some((nonce, group.again));
    }

    /// A response is accepted or rejected. Returns whether a group was tried in it, and whether that was a second try.
    pub(super) fn end(&mut self, nonce: u64, accepted: bool) -> Option<bool> {
        let trials = self.0.as_mut()?;
        let ended = trials.trial.take_if(|(trial, _)| *trial == nonce);
        if accepted && ended.is_some() {
            trials.rejected = 0;
        }
        if accepted {
            self.0.take_if(|trials| trials.is_empty() && trials.keeps.is_empty());
        }
        ended.map(|(_, again)| again)
    }

    /// The client has rejected something of these names. `news`: it was a change to it, so that it holds what it had before.
    pub(super) fn note_rejected<'a>(&mut self, names: impl Iterator<Item = &'a Name>, news: bool) {
        for name in names {
            let keeps = &mut self.0.get_or_insert_default().keeps;
            // What it rejects for the second time it may never have held.
            keeps.entry(name.clone()).or_insert(news);
        }
    }

    /// The client has accepted these names, or holds nothing of them.
    pub(super) fn note_settled<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        if let Some(trials) = self.0.as_mut().filter(|trials| !trials.keeps.is_empty()) {
            names.for_each(|name| _ = trials.keeps.remove(name));
        }
    }

    /// Whether the client has rejected something of a name, and holds what it had before.
    pub(super) fn keeps(&self, name: &Name) -> bool {
        self.0
            .as_ref()
            .is_some_and(|trials| trials.keeps.get(name) == Some(&true))
    }

    /// Whether this version of a name was rejected, and is still to be tried.
    pub(super) fn awaits_version(&self, name: &Name, version: Version) -> bool {
        let waiting = self.0.as_ref().and_then(|trials| trials.waiting.get(name));
        waiting.is_some_and(|trial| trial.version == version)
    }

    /// Adds groups of a rejected response. Returns all names that are to be held back, if there were too many tries.
    pub(super) fn add(
        &mut self,
        groups: impl IntoIterator<Item = Vec<(Name, Version)>>,
        objection: &Arc<Objection>,
    ) -> Vec<(Name, Version)> {
        let trials = self.0.get_or_insert_default();
        groups.into_iter().for_each(|group| trials.add(group, false));
        trials.last = Some(objection.clone());
        trials.rejected += 1;
        if trials.rejected < TRIES_MAX {
            return Vec::new();
        }
        trials.rejected = 0;
        trials.groups.clear();
        let all = std::mem::take(&mut trials.waiting);
        all.into_iter().map(|(name, trial)| (name, trial.version)).collect()
    }

    /// Adds a second try of one name.
    pub(super) fn try_again(&mut self, name: Name, version: Version) {
        let trials = self.0.get_or_insert_default();
        trials.add(vec![(name, version)], true);
    }

    /// A name was rejected alone.
    pub(super) fn hold_back(&mut self, name: Name, objection: Arc<Objection>) {
        self.0.get_or_insert_default().held_back.insert(name, objection);
    }

    /// A name is sent, or not wanted any more. Returns whether it was held back.
    pub(super) fn forget(&mut self, name: &Name) -> bool {
        let Some(trials) = &mut self.0 else { return false };
        trials.waiting.remove(name);
        trials.held_back.remove(name).is_some()
    }

    /// Nothing is held back any more. Returns what was.
    pub(super) fn take_held_back(&mut self) -> impl Iterator<Item = Name> {
        let trials = self.0.as_mut();
        let held_back = trials.map(|trials| std::mem::take(&mut trials.held_back));
        held_back.unwrap_or_default().into_keys()
    }

    /// Returns the names that are held back.
    pub(super) fn held_back(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().flat_map(|trials| trials.held_back.keys())
    }

    /// Returns why a name is held back, or still to be tried.
    pub(super) fn objection(&self, name: &Name) -> Option<&Arc<Objection>> {
        let trials = self.0.as_ref()?;
        let tried = || trials.last.as_ref().filter(|_| self.awaits(name));
        trials.held_back.get(name).or_else(tried)
    }

    /// Returns why the client rejects what it rejects now.
    pub(super) fn objections(&self) -> impl Iterator<Item = &Arc<Objection>> {
        let trying = self
            .0
            .iter()
            .filter(|trials| !trials.waiting.is_empty() || trials.trial.is_some());
        let last = trying.filter_map(|trials| trials.last.as_ref());
        let held_back = self.0.iter().flat_map(|trials| trials.held_back.values());
        let mut all: Vec<&Arc<Objection>> = held_back.chain(last).collect();
        all.sort_unstable_by_key(|objection| Arc::as_ptr(objection));
        all.dedup_by_key(|objection| Arc::as_ptr(objection));
        all.into_iter()
    }
}
