// SPDX-License-Identifier: Apache-2.0
//! A view to which sessions move from the view of another server.
//!
//! Owns what it takes over of what they were served there, where its own server's first whole state lacks it: so the loss is judged once
//! for all sessions; what that brings along; and what it drops because they lost it there. Does not know which view that is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::Holds;
use super::ground::{Ground, HeldLoss};
use super::measure::is_present;
use super::reach::leads_to;
use super::waiting::{Half, Item, Referrers, Row};
use crate::client::UNANSWERED;
use xds::{
    Changes, Cut, HeldRemoval, HoldClock, HoldEnd, Known, Name, Phase, Reason, Resource, State, TypeUrl, Update,
};

/// What a view takes over.
type TakenOver = Vec<(Item, Arc<Resource>)>;

impl Holds {
    /// Adds to the changes what the view takes over. That is no word of the control plane, and is not sifted. Returns it.
    pub(super) fn take_over(&mut self, change: &mut Changes, half: &Half, cut: &Cut, now: Instant) -> TakenOver {
        let Some(before) = self.first_states.elsewhere(half).cloned() else {
            return Vec::new();
        };
        let own = cut.half(&half.0, half.1);
        // What it has taken over before, and was let go, goes once.
        let has = |name: &Name| {
            own.as_ref().is_some_and(|own| is_present(own, name)) || self.first_states.has_lost(half, name)
        };
        // Of a wildcard it lacks what it does not say, once it has said all; of names, what it denies.
        let all = change.updates.iter();
        let said: BTreeSet<_> = match half.1 {
            true if change.complete != Some(true) => return Vec::new(),
            true => all.map(Update::name).collect(),
            false => all.filter(|update| denies(update)).map(Update::name).collect(),
        };
        let lacks = |name: &Name| said.contains(name) != half.1 && !has(name);
        let lost = before.resources().filter(|lost| lacks(lost.name()));
        let lost: Vec<_> = lost.filter(|lost| can_be_taken(&before, lost)).cloned().collect();
        let names: BTreeSet<_> = lost.iter().map(|resource| resource.name()).collect();
        let is_taken = |update: &Update| denies(update) && names.contains(update.name());
        change.updates.retain(|update| !is_taken(update));
        let item = |resource: &Arc<Resource>| (half.clone(), resource.name().clone());
        for resource in &lost {
            let item = item(resource);
            let gone = match half.1 {
                true => Update::Forget(resource.name().clone()),
                false => Update::Absent(resource.name().clone(), Reason::Said),
            };
            self.first_states.lose(&item, false, true, now);
            let referrers = match self.settings().references && half.0.kind().is_referred() {
                true => Referrers::All,
                false => Referrers::Nothing(HoldEnd::Free),
            };
            let row = Row::new(gone.into(), vec![Ground::Lost(HeldLoss::Undecided)], now).referred(referrers);
            self.table.enter(&item, row, resource.endpoints());
            change.updates.push(Update::Put(resource.clone(), None));
        }
        lost.into_iter().map(|resource| (item(&resource), resource)).collect()
    }

    /// The view has just taken these over. Adds to the changes what they name, as far as the view has nothing of that name: most servers
    /// say nothing of a name that they do not know, so the view would never have it. It goes with what names it.
    pub(super) fn bring_along(&mut self, changes: &mut Vec<Changes>, mut taken: TakenOver, cut: &Cut, now: Instant) {
        let mut all: BTreeMap<Half, Vec<Update>> = BTreeMap::new();
        let served = taken.first().filter(|_| self.settings().references);
        let Some(served) = served.and_then(|(item, _)| self.first_states.served_elsewhere(&item.0.0)) else {
            return;
        };
        let said = changes.iter().flat_map(|change| {
            let names = change.updates.iter().map(Update::name);
            names.map(|name| (change.type_url.clone(), name.clone()))
        });
        let said: BTreeSet<(TypeUrl, Name)> = said.collect();
        let has = |(of, name): &(TypeUrl, Name)| cut.slot(of).is_some_and(|own| own.resource(name).is_some());
        while let Some((by, resource)) = taken.pop() {
            for (kind, name) in leads_to(by.0.0.kind(), &resource) {
                let mut slots = served.slots().filter(|(of, _)| of.kind() == kind && !of.is_v2());
                let found = slots.find_map(|(of, slot)| {
                    let found = slot.named.resource(name)?;
                    can_be_taken(&slot.named, found).then_some((of, found))
                });
                let Some((of, found)) = found else {
                    continue;
                };
                let key = (of.clone(), found.name().clone());
                let is_known = said.contains(&key) || has(&key);
                let item = ((key.0, false), key.1);
                if is_known || self.table.get(&item).is_some() {
                    continue;
                }
                let named = Ground::Named(Some((by.clone(), false).into()));
                let row = Row::new(Update::Forget(item.1.clone()).into(), vec![named], now);
                self.table.enter(&item, row, found.endpoints());
                let updates = all.entry(item.0.clone()).or_default();
                updates.push(Update::Put(found.clone(), None));
                taken.push((item, found.clone()));
            }
        }
        changes.extend(all.into_iter().map(|(half, updates)| Changes::of(half, updates)));
    }
}

/// What sessions are served by the view of another server.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) served: Arc<Cut>,
    /// All of them are.
    pub(super) all: bool,
}

/// What sessions were served by the view of another server when this one began to answer. They move here soon, and keep it until this view
/// has something of the type, however late that is.
#[derive(Debug)]
pub(super) struct FromElsewhere {
    from: Elsewhere,
    since: Instant,
    begun: BTreeSet<Half>,
}

impl FromElsewhere {
    pub(super) const fn new(from: Elsewhere, since: Instant) -> Self {
        Self {
            from,
            since,
            begun: BTreeSet::new(),
        }
    }

    /// The server answers for a half. Returns what sessions have of it from elsewhere, if this is its first answer and the view has nothing
    /// of its own.
    pub(super) fn begin(&mut self, half: &Half, cut: &Cut) -> Option<Elsewhere> {
        let has_own = cut.half(&half.0, half.1).is_some_and(|own| own.present() > 0);
        let counts = self.begun.insert(half.clone()) && !has_own;
        counts.then(|| self.from.clone())
    }

    /// Whether the server has had its time to answer for every type.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.since + UNANSWERED
    }
}

impl Elsewhere {
    /// Adds to the changes what the sessions were not served any more where they are, as forgotten: it does not come back before the
    /// server says it again. If a session reads this view, what it has stays until the server is known not to have it.
    pub(super) fn drop_gone(&self, change: &mut Changes, half: &Half, cut: &Cut) {
        let Some(own) = cut.half(&half.0, half.1) else { return };
        // If the server knows what the relay has, it says nothing of what is unchanged.
        if !(self.all && change.phase == Phase::Anew && begins(change)) {
            return;
        }
        let said: BTreeSet<_> = change.updates.iter().map(Update::name).collect();
        let names = own.resources().map(|resource| resource.name());
        let gone = names.filter(|name| !said.contains(name) && self.lacks(half, name));
        let gone: Vec<Name> = gone.cloned().collect();
        change.updates.extend(gone.into_iter().map(Update::Forget));
    }

    /// Whether the other server is known not to have a name. That it does not answer for it takes nothing from the sessions (K-16).
    pub(super) fn lacks(&self, half: &Half, name: &Name) -> bool {
        let slot = self.served.slot(&half.0);
        slot.is_some_and(|slot| match slot.known(name) {
            Some(Known::Present(_)) => false,
            Some(Known::Absent(reason)) => *reason == Reason::Said,
            None | Some(Known::Held(_)) => half.1 && slot.wildcard.as_ref().is_some_and(|state| state.certain()),
        })
    }

    /// Returns the judgement that holds this there, its clock, and how it does.
    pub(super) fn held(&self, (half, name): &Item) -> Option<(u32, HoldClock, &HeldRemoval)> {
        let holds = self.served.holds().iter().filter(|hold| hold.type_url == half.0);
        let mut held = holds.filter_map(|hold| Some((hold.judgement?, hold.clock?, hold.removals.get(name)?)));
        held.next()
    }
}

/// F-17: whether a resource can be taken over. What may not be cached, or ends by itself, cannot.
fn can_be_taken(from: &State, resource: &Resource) -> bool {
    resource.may_be_cached() && from.expiry(resource.name()).is_none()
}

/// Whether a first whole state begins with these changes.
pub(super) fn begins(change: &Changes) -> bool {
    change.phase.is_first() && change.answered == Some(true)
}

/// Whether the server says that a name does not exist.
const fn denies(update: &Update) -> bool {
    matches!(update, Update::Absent(_, Reason::Said))
}
