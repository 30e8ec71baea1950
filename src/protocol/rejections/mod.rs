// SPDX-License-Identifier: Apache-2.0
//! What the client has rejected: what is tried again, in which parts, what it holds meanwhile, and why it was rejected (B-22, K-37).
//!
//! Owns the groups of names that are still to be tried, and what is held back. Does not send anything, does not find older content, and
//! knows no rows.

mod dispute;
mod telling;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use xds::{Holds, Name, Objection, Resource, Version};

/// The rejections of one type on one stream. Most clients reject nothing, and then nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Option<Box<Trials>>);

#[derive(Debug, Default)]
struct Trials {
    disputes: BTreeMap<Name, Dispute>,
    /// What is still to be tried, group after group. A name that is in a later group, or is not tried any more, is passed over.
    groups: VecDeque<Group>,
    /// The number of the last group.
    last_group: u64,
    /// The response in which a group is tried.
    trial: Option<u64>,
    /// How many tries were rejected since one was accepted.
    rejected: u32,
    /// The full states that were rejected: none of them is tried again.
    lists: BTreeSet<Version>,
    /// Why the last response was rejected.
    last: Option<Arc<Objection>>,
    /// E-24: what the client, a relay, says that its own clients reject, and since when, if it has accepted no response since.
    relayed: Option<(Arc<Objection>, Instant)>,
    /// The names of which the view must be told; `None`: what a relay says.
    news: BTreeSet<Option<Name>>,
}

/// A name of which the client has rejected something, and accepted nothing since.
#[derive(Debug)]
pub(crate) struct Dispute {
    /// The version that was rejected.
    version: Version,
    /// The group in which it is still to be tried.
    group: Option<u64>,
    /// Since when.
    since: Instant,
    /// Why it is held back: it was rejected alone.
    refused: Option<Arc<Objection>>,
    /// Whether it had its second try.
    again: bool,
    holds: Holds,
    /// Whether older content was asked for in its place.
    asked: bool,
    /// Older content that may be sent, the next one last.
    older: Vec<Arc<Resource>>,
    /// What of it was sent on this stream and is not offered again.
    offered: Vec<Version>,
}

/// Names that are tried together.
#[derive(Debug)]
struct Group {
    names: Vec<Name>,
    number: u64,
}

/// After so many rejected tries without an accepted one, all that is still to be tried is held back.
const TRIES_MAX: u32 = 64;

impl Trials {
    fn is_empty(&self) -> bool {
        self.trial.is_none() && !self.disputes.values().any(Dispute::is_open)
    }

    fn add(&mut self, names: Vec<Name>) {
        self.last_group += 1;
        let number = self.last_group;
        for name in &names {
            if let Some(dispute) = self.disputes.get_mut(name) {
                dispute.group = Some(number);
            }
        }
        self.groups.push_back(Group { names, number });
    }

    /// Returns the next group of which anything is still to be tried.
    fn first(&mut self) -> Option<&Group> {
        while let Some(group) = self.groups.front_mut() {
            let number = Some(group.number);
            let still = |name: &Name| self.disputes.get(name).is_some_and(|dispute| dispute.group == number);
            group.names.retain(still);
            if !group.names.is_empty() {
                break;
            }
            self.groups.pop_front();
        }
        self.groups.front()
    }

    /// The next older content of a name that is held back is tried, if there is any.
    fn offer(&mut self, name: &Name) {
        let dispute = self.disputes.get(name);
        if dispute
            .is_some_and(|dispute| dispute.refused.is_some() && dispute.group.is_none() && !dispute.older.is_empty())
        {
            self.add(vec![name.clone()]);
        }
    }

    /// Takes a dispute, of which the view must be told.
    fn dispute(&mut self, name: &Name) -> Option<&mut Dispute> {
        let found = self.disputes.get_mut(name)?;
        self.news.insert(Some(name.clone()));
        Some(found)
    }
}

impl Rejections {
    /// Whether nothing is held back or still to be tried.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|trials| trials.is_empty())
    }

    /// Returns how many names are kept.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |trials| trials.disputes.len())
    }

    /// Returns the names of which the client has rejected something and accepted nothing since.
    pub(crate) fn disputes(&self) -> impl Iterator<Item = (&Name, &Dispute)> {
        self.0.iter().flat_map(|trials| &trials.disputes)
    }

    /// Returns what is known of such a name.
    pub(crate) fn dispute(&self, name: &Name) -> Option<&Dispute> {
        self.0.as_ref()?.disputes.get(name)
    }

    /// Whether anything is still to be tried.
    pub(crate) fn tries(&self) -> bool {
        let mut disputes = self.disputes();
        self.0.as_ref().is_some_and(|trials| !trials.groups.is_empty())
            && disputes.any(|(_, dispute)| dispute.group.is_some())
    }

    /// Whether a response is on its way in which something is tried.
    pub(crate) fn is_trying(&self) -> bool {
        self.0.as_ref().is_some_and(|trials| trials.trial.is_some())
    }

    /// Whether a name is still to be tried: then it is sent only with its group.
    pub(crate) fn awaits(&self, name: &Name) -> bool {
        self.dispute(name).is_some_and(|dispute| dispute.group.is_some())
    }

    /// Whether this version of a name is held back.
    pub(crate) fn refuses(&self, name: &Name, version: Version) -> bool {
        self.dispute(name)
            .is_some_and(|dispute| dispute.refused.is_some() && dispute.version == version)
    }

    /// Returns the older content that is to be sent in the place of what is held back: the client holds nothing.
    pub(crate) fn older(&self, name: &Name) -> Option<&Arc<Resource>> {
        let dispute = self.dispute(name)?;
        dispute.older.last().filter(|_| dispute.lacks())
    }

    /// Returns the next group, unless one is on its way, or one of its names is.
    pub(crate) fn pop(&mut self, is_on_its_way: impl Fn(&Name) -> bool) -> Option<Vec<Name>> {
        let trials = self.0.as_mut().filter(|trials| trials.trial.is_none())?;
        if trials.first()?.names.iter().any(is_on_its_way) {
            return None;
        }
        let group = trials.groups.pop_front()?;
        for name in &group.names {
            if let Some(dispute) = trials.disputes.get_mut(name) {
                dispute.group = None;
            }
        }
        Some(group.names)
    }

    /// A group is tried in this response.
    pub(crate) fn begin(&mut self, nonce: u64) {
        self.0.get_or_insert_default().trial = Some(nonce);
    }

    /// A response is accepted or rejected.
    pub(crate) fn end(&mut self, nonce: u64, accepted: bool) {
        let Some(trials) = &mut self.0 else { return };
        if trials.trial.take_if(|trial| *trial == nonce).is_some() && accepted {
            trials.rejected = 0;
        }
        if accepted && trials.relayed.take().is_some() {
            trials.news.insert(None);
        }
        self.give_back();
    }

    /// The client has rejected a response with this version of a name. Before that it held this, if it had not rejected anything of it.
    pub(crate) fn doubt(&mut self, name: &Name, version: Version, holds: Holds, now: Instant) {
        let trials = self.0.get_or_insert_default();
        let dispute = trials.disputes.entry(name.clone()).or_insert(Dispute {
            version,
            group: None,
            since: now,
            refused: None,
            again: false,
            holds,
            asked: false,
            older: Vec::new(),
            offered: Vec::new(),
        });
        if dispute.version != version {
            (dispute.version, dispute.since) = (version, now);
            (dispute.again, dispute.asked) = (false, false);
        }
    }

    /// The client has rejected older content that was sent in the place of something. Returns whether it was that: the next is tried then.
    pub(crate) fn reject_older(&mut self, name: &Name, version: Version) -> bool {
        let Some(trials) = &mut self.0 else { return false };
        let dispute = trials.disputes.get_mut(name);
        let Some(dispute) = dispute.filter(|dispute| dispute.was_offered(version)) else {
            return false;
        };
        dispute.older.pop();
        dispute.offered.push(version);
        trials.offer(name);
        true
    }

    /// The client has accepted this version of a name.
    pub(crate) fn accept(&mut self, name: &Name, version: Version) {
        let Some(trials) = &mut self.0 else { return };
        let Some(dispute) = trials.dispute(name) else { return };
        if dispute.refused.is_none() {
            trials.disputes.remove(name);
        } else if let Some(older) = dispute.older.pop_if(|older| older.version() == version) {
            dispute.holds = Holds::Older(Arc::new(older.twin()));
            dispute.offered.push(version);
            dispute.older.clear();
        }
    }

    /// Adds groups of a rejected response. Returns all names that are to be held back, if there were too many tries.
    pub(crate) fn add(&mut self, groups: impl IntoIterator<Item = Vec<Name>>, objection: &Arc<Objection>) -> Vec<Name> {
        let trials = self.0.get_or_insert_default();
        groups.into_iter().for_each(|group| trials.add(group));
        trials.last = Some(objection.clone());
        trials.rejected += 1;
        if trials.rejected < TRIES_MAX {
            return Vec::new();
        }
        trials.rejected = 0;
        trials.groups.clear();
        let waiting = trials.disputes.iter_mut().filter_map(|(name, dispute)| {
            dispute.group.take()?;
            Some(name.clone())
        });
        waiting.collect()
    }

    /// Notes that this full state was rejected.
    pub(crate) fn note_list(&mut self, sum: Version) {
        self.0.get_or_insert_default().lists.insert(sum);
    }

    /// Returns why this full state was rejected, if it was.
    pub(crate) fn rejected_list(&self, sum: Version) -> Option<Arc<Objection>> {
        let trials = self.0.as_ref().filter(|trials| trials.lists.contains(&sum))?;
        trials.last.clone()
    }

    /// A name was rejected alone.
    pub(crate) fn hold_back(&mut self, name: &Name, objection: Arc<Objection>) {
        if let Some(dispute) = self.0.as_mut().and_then(|trials| trials.dispute(name)) {
            dispute.group = None;
            dispute.refused = Some(objection);
            // It must not come back as older content. One that holds something is offered none.
            if matches!(dispute.holds, Holds::Nothing) && !dispute.offered.contains(&dispute.version) {
                dispute.offered.push(dispute.version);
            }
        }
    }

    /// Whatever is held back and was not tried once more since is tried again, each name alone. `free`: so is the rest, and it may be
    /// tried once more afterwards. Returns the names.
    pub(crate) fn try_again(&mut self, free: bool) -> Vec<Name> {
        let Some(trials) = &mut self.0 else { return Vec::new() };
        let tried = trials.disputes.iter();
        let tried = tried.filter(|(_, dispute)| dispute.may_be_tried() || free && dispute.refused.is_some());
        let tried: Vec<Name> = tried.map(|(name, _)| name.clone()).collect();
        for name in &tried {
            if let Some(dispute) = trials.dispute(name) {
                dispute.refused = None;
                dispute.again |= !free;
            }
            trials.lists.clear();
            trials.add(vec![name.clone()]);
        }
        tried
    }

    /// Nothing is held back or tried any more: all of it is offered together. Returns what was.
    pub(crate) fn release_all(&mut self) -> Vec<Name> {
        let open = self.disputes().filter(|(_, dispute)| dispute.is_open());
        let open: Vec<Name> = open.map(|(name, _)| name.clone()).collect();
        open.iter().for_each(|name| _ = self.release(name));
        open
    }

    /// A name is sent, or sent again. Returns whether it was held back. `Some`: this version is on its way, which may be older content.
    pub(crate) fn send(&mut self, name: &Name, version: Version) -> bool {
        let is_older = self.older(name).is_some_and(|older| older.version() == version);
        !is_older && self.release(name)
    }

    /// A name is not held back or tried any more. What the client holds stays. Returns whether it was held back.
    pub(crate) fn release(&mut self, name: &Name) -> bool {
        let dispute = self.0.as_mut().and_then(|trials| trials.dispute(name));
        dispute.is_some_and(|dispute| {
            dispute.group = None;
            dispute.refused.take().is_some()
        })
    }

    /// The client holds nothing of a name, or does not want it any more. Returns whether it was held back.
    pub(crate) fn forget(&mut self, name: &Name) -> bool {
        let Some(trials) = self.0.as_mut() else { return false };
        let dispute = trials.disputes.remove(name);
        dispute.is_some_and(|dispute| {
            trials.news.insert(Some(name.clone()));
            dispute.refused.is_some()
        })
    }

    /// Whether a name is held back.
    pub(crate) fn is_held_back(&self, name: &Name) -> bool {
        self.dispute(name).is_some_and(|dispute| dispute.refused.is_some())
    }

    /// Returns the names that are held back.
    pub(crate) fn held_back(&self) -> impl Iterator<Item = &Name> {
        let held_back = self.disputes().filter(|(_, dispute)| dispute.refused.is_some());
        held_back.map(|(name, _)| name)
    }

    /// Returns why a name is held back, or still to be tried.
    pub(crate) fn objection(&self, name: &Name) -> Option<&Arc<Objection>> {
        let trials = self.0.as_ref()?;
        let dispute = trials.disputes.get(name)?;
        dispute
            .refused
            .as_ref()
            .or_else(|| trials.last.as_ref().filter(|_| dispute.group.is_some()))
    }

    /// Returns why the client rejects what it rejects now.
    pub(crate) fn objections(&self) -> impl Iterator<Item = &Arc<Objection>> {
        let trying = self.0.iter().filter(|_| self.tries() || self.is_trying());
        let last = trying.filter_map(|trials| trials.last.as_ref());
        let refused = self.disputes().filter_map(|(_, dispute)| dispute.refused.as_ref());
        let mut all: Vec<&Arc<Objection>> = refused.chain(last).collect();
        all.sort_unstable_by_key(|objection| Arc::as_ptr(objection));
        all.dedup_by_key(|objection| Arc::as_ptr(objection));
        all.into_iter()
    }

    /// Frees the storage if nothing is left in it.
    fn give_back(&mut self) {
        self.0.take_if(|trials| {
            let Trials {
                disputes,
                trial,
                relayed,
                news,
                ..
            } = &**trials;
            disputes.is_empty() && trial.is_none() && relayed.is_none() && news.is_empty()
        });
    }
}
