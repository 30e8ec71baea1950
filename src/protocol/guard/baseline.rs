//! A view to which sessions move from the view of another server.
//!
//! Owns what it takes over of what they were served there: what its own server's first whole state lacks, if that is too much. So the
//! loss is judged once for all sessions. Does not know which view that is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Guard;
use super::first_states::state;
use super::intake::is_present;
use super::references::is_referred;
use super::removal::{Half, Judged, Reference, Removal};
use xds::{Changes, Cut, HoldEnd, Known, Name, Phase, Reason, Resource, State, Update};

impl Guard {
    /// Whether what the sessions are served elsewhere counts for these changes: then `inherit` is to be called before `hold`.
    #[must_use]
    pub fn asks_for_inheritance(changes: &[Changes]) -> bool {
        changes.iter().any(begins)
    }

    /// The sessions of this view are served this by the view of another server; `all`: none reads this view now. It counts for the next
    /// `hold`.
    pub fn inherit(&mut self, served: Arc<Cut>, all: bool) {
        self.elsewhere = Some(Elsewhere { served, all });
    }

    /// Adds to the changes what the sessions were not served any more where they are, as forgotten: it does not come back before the
    /// server says it again. If a session reads this view, what it has stays until the server is known not to have it.
    pub(super) fn drop_gone(&mut self, change: &mut Changes, half: &Half, cut: &Cut, elsewhere: &Elsewhere) {
        let slot = elsewhere.served.slot(&half.0);
        let (Some(own), Some(slot)) = (state(cut, &half.0, half.1), slot) else {
            return;
        };
        // If the server knows what the relay has, it says nothing of what is unchanged.
        if !(elsewhere.all && change.phase == Phase::Anew && begins(change)) {
            return;
        }
        let said: BTreeSet<_> = change.updates.iter().map(Update::name).collect();
        let lists_all = half.1 && slot.wildcard.as_ref().is_some_and(|state| state.certain());
        let is_gone = |name: &&Name| match slot.known(name) {
            Some(Known::Present(_)) => false,
            Some(Known::Absent(reason)) => *reason == Reason::Said,
            None => lists_all,
        };
        let names = own.resources().map(|resource| resource.name());
        let gone: Vec<Name> = names
            .filter(|name| !said.contains(name))
            .filter(is_gone)
            .cloned()
            .collect();
        for name in gone {
            self.leave(&(half.clone(), name.clone()), HoldEnd::Gone);
            change.updates.push(Update::Forget(name));
        }
    }

    /// Adds to the changes what the view takes over. That is no word of the control plane, and is not sifted.
    pub(super) fn take_over(&mut self, change: &mut Changes, half: &Half, cut: &Cut, now: Instant) {
        if !change.phase.is_first() {
            return;
        }
        let Some(before) = self.first_states.elsewhere(half).cloned() else {
            return;
        };
        let own = state(cut, &half.0, half.1);
        let lost = match (half.1, change.complete) {
            (true, Some(true)) => lacking(&before, change, own.as_deref()),
            (true, _) => Vec::new(),
            (false, _) => denied(&before, change, own.as_deref()),
        };
        if lost.is_empty() {
            return;
        }
        let names: BTreeSet<_> = lost.iter().map(|resource| resource.name().clone()).collect();
        if change.phase == Phase::Last {
            let gained = gained(&before, change, own.as_deref());
            if !self
                .first_states
                .would_be_mass(half, &names, gained, &self.settings.mass)
            {
                return;
            }
        }
        change
            .updates
            .retain(|update| !matches!(update, Update::Absent(name, Reason::Said) if names.contains(name)));
        for resource in lost {
            let item = (half.clone(), resource.name().clone());
            let gone = match half.1 {
                true => Update::Forget(resource.name().clone()),
                false => Update::Absent(resource.name().clone(), Reason::Said),
            };
            self.first_states.lose(&item, false, true, now);
            let reference = match self.follows_references() && is_referred(half.0.kind()) {
                true => Reference::Unknown(false),
                false => Reference::Ignored(HoldEnd::Free),
            };
            let removal = Removal::new(vec![gone], false, Judged::Undecided, reference, None, now);
            self.held.enter(&item, removal, resource.endpoints(), &self.judgements);
            change.updates.push(Update::Put(resource, None));
        }
    }
}

/// What sessions are served by the view of another server.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub(super) served: Arc<Cut>,
    /// All of them are.
    all: bool,
}

/// Whether a first whole state begins with these changes.
fn begins(change: &Changes) -> bool {
    change.phase.is_first() && change.answered == Some(true)
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

/// Returns the resources that existed before, that the view does not have, and of which the server says that they do not exist.
fn denied(before: &State, change: &Changes, now: Option<&State>) -> Vec<Arc<Resource>> {
    let said = |update: &Update| match update {
        Update::Absent(name, Reason::Said) => Some(name.clone()),
        Update::Put(..) | Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
    };
    let denied = change.updates.iter().filter_map(said);
    let denied = denied.filter(|name| now.is_none_or(|now| !is_present(now, name)));
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
