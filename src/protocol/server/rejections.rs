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
    groups: VecDeque<Group>,
    /// The response in which a group is tried, and whether that group is a second try.
    trial: Option<(u64, bool)>,
    /// How many tries were rejected since one was accepted.
    rejected: u32,
    /// Why the names were rejected that are held back.
    held_back: BTreeMap<Name, Arc<Objection>>,
    /// Why the last response was rejected.
    last: Option<Arc<Objection>>,
}

/// Names that are tried together, with the versions that were rejected.
#[derive(Debug)]
pub(super) struct Group {
    members: BTreeMap<Name, Version>,
    again: bool,
}

/// After so many rejected tries without an accepted one, all that is still to be tried is held back.
const TRIES_MAX: u32 = 64;

impl Trials {
    fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.held_back.is_empty() && self.trial.is_none()
    }
}

impl Group {
    pub(super) fn new(members: BTreeMap<Name, Version>, again: bool) -> Self {
        Self { members, again }
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.members.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.members.keys()
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
        let groups = |trials: &Trials| trials.groups.iter().map(|group| group.members.len()).sum::<usize>();
        trials.map_or(0, |trials| groups(trials) + trials.held_back.len())
    }

    /// Whether anything is still to be tried.
    pub(super) fn tries(&self) -> bool {
        self.0.as_ref().is_some_and(|trials| !trials.groups.is_empty())
    }

    /// Whether a name is still to be tried: then it is sent only with its group.
    pub(super) fn awaits(&self, name: &Name) -> bool {
        let mut groups = self.0.iter().flat_map(|trials| &trials.groups);
        groups.any(|group| group.contains(name))
    }

    /// Returns the next group, unless one is on its way, or one of its names is.
    pub(super) fn pop(&mut self, is_on_its_way: impl Fn(&Name) -> bool) -> Option<Group> {
        let trials = self.0.as_mut().filter(|trials| trials.trial.is_none())?;
        if trials.groups.front()?.names().any(is_on_its_way) {
            return None;
        }
        trials.groups.pop_front()
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
            self.0.take_if(|trials| trials.is_empty());
        }
        ended.map(|(_, again)| again)
    }

    /// Adds groups of a rejected response. Returns all names that are to be held back, if there were too many tries.
    pub(super) fn add(
        &mut self,
        groups: impl IntoIterator<Item = Group>,
        objection: &Arc<Objection>,
    ) -> BTreeMap<Name, Version> {
        let trials = self.0.get_or_insert_default();
        trials
            .groups
            .extend(groups.into_iter().filter(|group| !group.members.is_empty()));
        trials.last = Some(objection.clone());
        trials.rejected += 1;
        if trials.rejected < TRIES_MAX {
            return BTreeMap::new();
        }
        trials.rejected = 0;
        let all = std::mem::take(&mut trials.groups);
        all.into_iter().flat_map(|group| group.members).collect()
    }

    /// Adds a second try of one name.
    pub(super) fn try_again(&mut self, name: Name, version: Version) {
        let group = Group::new(BTreeMap::from([(name, version)]), true);
        self.0.get_or_insert_default().groups.push_back(group);
    }

    /// A name was rejected alone.
    pub(super) fn hold_back(&mut self, name: Name, objection: Arc<Objection>) {
        self.0.get_or_insert_default().held_back.insert(name, objection);
    }

    /// A name is sent, or not wanted any more. Returns whether it was held back.
    pub(super) fn forget(&mut self, name: &Name) -> bool {
        let Some(trials) = &mut self.0 else { return false };
        let held_back = trials.held_back.remove(name).is_some();
        for group in &mut trials.groups {
            group.members.remove(name);
        }
        trials.groups.retain(|group| !group.members.is_empty());
        held_back
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
            .filter(|trials| !trials.groups.is_empty() || trials.trial.is_some());
        let last = trying.filter_map(|trials| trials.last.as_ref());
        let held_back = self.0.iter().flat_map(|trials| trials.held_back.values());
        let mut all: Vec<&Arc<Objection>> = held_back.chain(last).collect();
        all.sort_unstable_by_key(|objection| Arc::as_ptr(objection));
        all.dedup_by_key(|objection| Arc::as_ptr(objection));
        all.into_iter()
    }
}
