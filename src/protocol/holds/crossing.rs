// SPDX-License-Identifier: Apache-2.0
//! Changes that lead into another source: a control plane orders what it says itself, and nobody orders what two of them say.
//!
//! Owns which changed listeners, routes and virtual hosts wait until the other source has what they lead to (D-12), and what makes room
//! for what is published. Knows nothing of other views: what they have is an argument.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::Holds;
use super::missing::Missing;
use super::waiting::{Half, Item, Referrers, Row};
use super::word::{Word, removes};
use xds::{Changes, Cut, HoldEnd, Kind, Name, OtherViews, Resource, Spot, Spots, State, Update};

impl Holds {
    /// Takes the changes that must wait out of what is to be published next; `own` is what the view has. Without `others`, its clients
    /// read nothing of other servers. What is published together counts as a whole: a route leads to a cluster as that is then, in
    /// whatever order both were said.
    pub fn cross(&mut self, changes: &mut [Changes], own: &Cut, others: Option<&OtherViews>, now: Instant) {
        self.forget_gone(changes);
        let others = others.filter(|_| changes.iter().any(is_leading));
        let after = others.map(|_| after(own, changes));
        for change in changes.iter_mut().filter(|change| is_leading(change)) {
            let half = (change.type_url.clone(), change.wildcard);
            let served = own.half(&half.0, half.1).map(|state| &**state);
            let there = after.as_deref().zip(others);
            if there.is_some() || self.table.has_half(&half) {
                let all = std::mem::take(&mut change.updates).into_iter();
                let passed = all.filter_map(|update| self.pass(&half, update, served, there, now));
                change.updates = passed.collect();
            }
            let taken = self.make_room(&half, &change.updates, served);
            change.updates.extend(taken);
        }
    }

    /// What is published as gone, for whatever reason, is not held any more.
    fn forget_gone(&mut self, changes: &[Changes]) {
        for change in changes {
            let half = (change.type_url.clone(), change.wildcard);
            if !self.table.has_half(&half) {
                continue;
            }
            for update in &change.updates {
                if let Update::Absent(name, _) | Update::Forget(name) = update {
                    self.leave_removal(&(half.clone(), name.clone()), HoldEnd::Gone);
                }
            }
        }
    }

    /// Returns an update that need not wait. What is new, and what has a time to live, never does. Only the latest content of a resource
    /// waits, so that none starves.
    fn pass(
        &mut self,
        half: &Half,
        update: Update,
        served: Option<&State>,
        there: Option<(&Cut, &OtherViews)>,
        now: Instant,
    ) -> Option<Update> {
        let item = (half.clone(), update.name().clone());
        let waits = self.table.get(&item).is_some_and(Row::is_change);
        let can_wait = !self.settings().unready.is_zero();
        let mut found = None;
        if let (Update::Put(content, None), Some((after, others))) = (&update, there.filter(|_| can_wait)) {
            let before = served.and_then(|served| served.resource(&item.1));
            let clusters = before.map(|before| newly_named(half.0.kind(), before, content));
            let clusters = clusters.unwrap_or_default();
            let missing = Missing::find((&half.0, &item.1), &clusters, after, others);
            found = missing.map(|missing| (missing, Word::Put(content.clone(), clusters)));
        }
        let Some((missing, word)) = found else {
            if waits && (removes(&update) || matches!(update, Update::Put(..))) {
                self.leave(&item, HoldEnd::Server);
            }
            return Some(update);
        };
        if self.table.is_going(&item) {
            // It was removed by a later word, which waits.
            return None;
        }
        if waits {
            self.table.change(&item, HoldEnd::Free, |row| {
                row.say(word, Referrers::All);
                row.wait_for(missing, now);
            });
        } else {
            let mut row = Row::new(word, Vec::new(), now);
            row.wait_for(missing, now);
            self.table.enter(&item, row, None);
        }
        None
    }

    /// A listener newly takes the address of ones that wait, or a virtual host their domain in the same route configuration: they go, or
    /// change, with it, for a client could not have both (D-03, C-26).
    fn make_room(&mut self, half: &Half, updates: &[Update], served: Option<&State>) -> Vec<Update> {
        let kind = half.0.kind();
        if !self.table.has_half(half) {
            return Vec::new();
        }
        let served = |name: &Name| served.and_then(|served| served.resource(name));
        let mut taken: BTreeMap<&str, Spots> = BTreeMap::new();
        for update in updates {
            if let Update::Put(resource, _) = update {
                let before = served(resource.name()).map_or(&[][..], |before| spots_of(kind, before));
                for spot in spots_of(kind, resource).iter().filter(|spot| !before.contains(spot)) {
                    let room = taken.entry(room_of(kind, resource.name())).or_default();
                    room.insert(spot.clone());
                }
            }
        }
        if taken.is_empty() {
            return Vec::new();
        }
        let leaves = |name: &Name| {
            let own = served(name).map_or(&[][..], |own| spots_of(kind, own));
            let taken = taken.get(room_of(kind, name));
            taken.is_some_and(|taken| own.iter().any(|spot| taken.collide(spot)))
        };
        let mut going = self.table.select(|other| other == half, |_| true);
        going.retain(|(_, name)| leaves(name));
        let going = going.iter().filter_map(|item| self.leave(item, HoldEnd::Replaced));
        going.flat_map(Row::into_updates).collect()
    }

    /// Adds the changes that wait for nothing any more to those that are to be published next.
    pub(super) fn free_changes(
        &mut self,
        going: &mut Vec<Changes>,
        own: &Cut,
        others: Option<&OtherViews>,
        now: Instant,
    ) {
        let waiting = self.table.changes();
        if waiting.is_empty() {
            return;
        }
        let after = after(own, going);
        let mut all: BTreeMap<Half, Vec<Update>> = BTreeMap::new();
        for item in waiting {
            if let Some(end) = self.ends(&item, &after, others, now) {
                let row = self.leave(&item, end);
                let updates = row.map(Row::into_updates).into_iter().flatten();
                all.entry(item.0).or_default().extend(updates);
            }
        }
        drop(after);
        going.extend(all.into_iter().map(|(half, updates)| Changes::of(half, updates)));
    }

    /// Returns why a change waits no longer.
    fn ends(&mut self, item: &Item, after: &Cut, others: Option<&OtherViews>, now: Instant) -> Option<HoldEnd> {
        let row = self.table.get(item)?;
        let find = |others| Missing::find((&item.0.0, &item.1), row.leads_to(), after, others);
        let missing = others.and_then(find);
        match missing {
            _ if row.freed().is_some() => row.freed(),
            _ if self.settings().unready.is_zero() => Some(HoldEnd::Settings),
            None => Some(HoldEnd::Free),
            Some(missing) => {
                self.table.change(item, HoldEnd::Free, |row| row.wait_for(missing, now));
                let until = self.table.until(item);
                until.is_some_and(|until| until <= now).then_some(HoldEnd::Clock)
            }
        }
    }
}

/// Returns the clusters that a changed resource names and the served one does not.
fn newly_named(kind: Kind, served: &Arc<Resource>, new: &Resource) -> Vec<Name> {
    let before = served.references(kind).map_or(&[][..], |found| &found.clusters);
    let after = new.references(kind).map_or(&[][..], |found| &found.clusters);
    let newly = after.iter().filter(|name| before.binary_search(name).is_err());
    newly.cloned().collect()
}

fn spots_of(kind: Kind, resource: &Resource) -> &[Spot] {
    resource.references(kind).map_or(&[], |found| &found.spots)
}

/// Returns within what names compete for spots: a virtual host in its route configuration (`<route configuration>/<host>`).
fn room_of(kind: Kind, name: &Name) -> &str {
    let room = name.as_str().rsplit_once('/').filter(|_| !kind.listens());
    room.map_or("", |(routes, _)| routes)
}

/// Whether these are about resources that lead to clusters.
fn is_leading(change: &Changes) -> bool {
    let kind = change.type_url.kind();
    kind.gated() && kind.refers() && !change.type_url.is_v2()
}

/// Returns what the view has of clusters and endpoints once these changes are published.
fn after<'a>(own: &'a Cut, changes: &[Changes]) -> Cow<'a, Cut> {
    let led = changes.iter().filter(|change| change.type_url.kind().gates());
    led.fold(Cow::Borrowed(own), |cut, change| Cow::Owned(cut.with(change).0))
}
