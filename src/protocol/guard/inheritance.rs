//! A view without a memory of its own, to which sessions move from the view of another server.
//!
//! Owns what it takes over of what that view served: what its own server's first whole state lacks, if that is too much. So the loss
//! is judged once for all sessions. Does not know which view that is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Guard;
use super::first_state::{is_judged, is_mass};
use super::removal::{Half, Removal, half_of, is_present};
use xds::{Changes, Cut, Phase, Reason, Resource, State, Update, Within};

/// What the sessions were served before they came.
#[derive(Debug, Default)]
pub(super) struct Inheritance {
    served: Arc<Cut>,
    /// The halves of which the view had nothing when its server began to speak.
    heirs: BTreeSet<Half>,
}

impl Guard {
    /// Whether what the sessions were served elsewhere counts for these changes: then `inherit` is to be called before `hold`.
    #[must_use]
    pub fn asks_for_inheritance(changes: &[Changes]) -> bool {
        let first = |change: &Changes| change.phase == Phase::First && change.answered == Some(true);
        changes.iter().any(first)
    }

    /// The sessions of this view were served this before.
    pub fn inherit(&mut self, served: Arc<Cut>) {
        self.inheritance.served = served;
    }

    /// Adds to the changes what the view takes over.
    pub(super) fn take_over(&mut self, change: &mut Changes, cut: &Cut, now: Instant) {
        let half = (change.type_url.clone(), change.wildcard);
        if change.phase != Phase::First || self.settings.mass.within == Within::Never || !is_judged(half.0.kind()) {
            self.inheritance.heirs.remove(&half);
            return;
        }
        if change.answered == Some(true) && half_of(cut, &half).is_none_or(|state| state.present() == 0) {
            self.inheritance.heirs.insert(half.clone());
        }
        let served = self.inheritance.served.clone();
        let Some(before) = half_of(&served, &half).filter(|_| self.inheritance.heirs.contains(&half)) else {
            return;
        };
        let lost = match (half.1, change.complete) {
            (true, Some(true)) => lacking(before, change, half_of(cut, &half)),
            (true, _) => Vec::new(),
            (false, _) => denied(before, change),
        };
        if lost.is_empty() {
            return;
        }
        let (gained, all) = (gained(before, change, half_of(cut, &half)), before.resources().count());
        if !is_mass(half.0.kind(), lost.len(), gained, all, &self.settings.mass) {
            return;
        }
        let names: BTreeSet<_> = lost.iter().map(|resource| resource.name().clone()).collect();
        change
            .updates
            .retain(|update| !matches!(update, Update::Absent(name, Reason::Said) if names.contains(name)));
        let removals = self.held.entry(half.clone()).or_default();
        for resource in lost {
            let gone = match half.1 {
                true => Update::Forget(resource.name().clone()),
                false => Update::Absent(resource.name().clone(), Reason::Said),
            };
            let mut removal = Removal::new(gone, false, false, None, now);
            removal.begin_mass(now + self.settings.mass.hold);
            removal.remembered = true;
            removals.insert(resource.name().clone(), removal);
            change.updates.push(Update::Put(resource, None));
        }
        self.undecided = true;
        self.ledger.change();
    }
}

/// Returns the resources that a wildcard had before and does not have now that it is complete.
fn lacking(before: &State, change: &Changes, now: Option<&State>) -> Vec<Arc<Resource>> {
    let said: BTreeSet<_> = change.updates.iter().map(Update::name).collect();
    let lacks = |resource: &&Arc<Resource>| {
        let name = resource.name();
        !said.contains(name) && now.is_none_or(|now| !is_present(now, name)) && can_be_taken_over(before, resource)
    };
    before.resources().filter(lacks).cloned().collect()
}

/// Returns the resources that existed before, and of which the server says that they do not exist.
fn denied(before: &State, change: &Changes) -> Vec<Arc<Resource>> {
    let said = |update: &Update| match update {
        Update::Absent(name, Reason::Said) => Some(name.clone()),
        Update::Put(..) | Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
    };
    let denied = change.updates.iter().filter_map(said);
    let denied = denied.filter_map(|name| before.entries().get(&name)?.resource());
    denied
        .filter(|resource| can_be_taken_over(before, resource))
        .cloned()
        .collect()
}

/// Returns how many resources there are that were not there before.
fn gained(before: &State, change: &Changes, now: Option<&State>) -> usize {
    let put = change.updates.iter().filter_map(|update| match update {
        Update::Put(resource, _) => Some(resource),
        Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
    });
    let all: BTreeSet<_> = put
        .chain(now.into_iter().flat_map(State::resources))
        .map(|resource| resource.name())
        .collect();
    all.into_iter().filter(|name| !is_present(before, name)).count()
}

/// F-17: what may not be cached, or ends by itself, is not taken over.
fn can_be_taken_over(before: &State, resource: &Resource) -> bool {
    resource.may_be_cached() && before.expiry(resource.name()).is_none()
}
