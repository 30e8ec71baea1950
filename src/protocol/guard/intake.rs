//! What the control plane says passes here before it is published.
//!
//! Owns which updates are taken out. Does not decide how long they wait.

use std::collections::BTreeSet;
use std::time::Instant;

use super::first_state::{is_judged, is_mass, served};
use super::reading::{is_empty_assignment, references};
use super::removal::{Half, Removal, Removals, half_of, is_present, is_quiet, overtaken, removes};
use super::{Guard, sources};
use xds::{Changes, Cut, HoldEnd, HoldReason, Kind, Name, Phase, Places, State, Update, Within};

impl Guard {
    /// Takes the removals that must wait out of these changes, which the control plane has just said; `cut` is what the view
    /// has.
    pub fn hold(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        let mut emptied = false;
        for change in &mut *changes {
            let kind = change.type_url.kind();
            if kind.gated() && !change.updates.is_empty() {
                self.directed = Some(now);
            }
            self.touch(change);
            if self.settings.mass.within != Within::Never {
                self.first_states.note(change, cut);
            }
            let may_wait = !change.updates.is_empty() && self.may_wait(change);
            let may_be_emptied = kind == Kind::Eds && self.is_of_first_state(change);
            let concerns = |update: &Update| removes(update) || may_be_emptied && matches!(update, Update::Put(..));
            if may_wait && (self.has(change) || change.updates.iter().any(concerns)) {
                self.sift(change, cut, now);
                emptied |= change.updates.is_empty();
            }
            // What the view takes over is no word of the control plane, and is not sifted.
            self.take_over(change, cut, now);
        }
        if emptied {
            changes
                .retain(|change| !change.updates.is_empty() || change.complete.is_some() || change.answered.is_some());
        }
    }

    /// Notes that what refers to held resources may not do so any more.
    fn touch(&mut self, change: &Changes) {
        if self.first_states.is_open(&change.type_url) {
            self.undecided = true;
        }
        if self.referrers.is_empty() || self.moved || !sources::refers(change.type_url.kind()) {
            return;
        }
        let of = |update: &Update| self.referrers.holds(&change.type_url, update.name());
        let names_routes = sources::names_routes(change.type_url.kind()) && !change.updates.is_empty();
        self.moved = names_routes || change.updates.iter().any(of);
    }

    /// Whether any update of these changes may have to wait.
    fn may_wait(&self, change: &Changes) -> bool {
        self.has(change)
            || self.waits_for_routes(change.type_url.kind())
            || self.is_guarded(change)
            || self.is_judged(change)
    }

    const fn waits_for_routes(&self, kind: Kind) -> bool {
        !self.quiet.is_zero() && is_quiet(kind)
    }

    /// Whether a removal among these changes waits for what refers to it.
    fn is_guarded(&self, change: &Changes) -> bool {
        change.phase != Phase::Relayed && self.is_referred(change.type_url.kind())
    }

    /// Whether a loss among these changes is judged.
    fn is_judged(&self, change: &Changes) -> bool {
        let each = self.settings.mass.within == Within::Always && change.phase != Phase::Relayed;
        each && is_judged(change.type_url.kind()) || self.is_of_first_state(change)
    }

    /// Whether a loss among these changes is judged with the first whole state that they are a part of: if anything was served before.
    fn is_of_first_state(&self, change: &Changes) -> bool {
        let judges = || self.first_states.judges(&(change.type_url.clone(), change.wildcard));
        self.settings.mass.within != Within::Never && change.phase == Phase::First && judges()
    }

    /// Takes the removals that wait out of the changes of one half of a type.
    fn sift(&mut self, change: &mut Changes, cut: &Cut, now: Instant) {
        let half = (change.type_url.clone(), change.wildcard);
        let kind = half.0.kind();
        let state = half_of(cut, &half);
        let (quiet, judged) = (self.waits_for_routes(kind), self.is_judged(change));
        let all_wait = quiet || judged || self.is_guarded(change);
        let first = self.is_of_first_state(change);
        let relayed = change.phase == Phase::Relayed;
        let mut names = self.held.remove(&half).unwrap_or_default();
        let mut lost = BTreeSet::new();
        for update in std::mem::take(&mut change.updates) {
            let name = update.name().clone();
            let present = || state.is_some_and(|state| is_present(state, &name));
            let removes = removes(&update);
            let empties = !removes && first && becomes_empty(kind, state, &update);
            if empties || removes && all_wait && present() && !self.ends_soon(state, &name, now) {
                if first {
                    self.first_states.lose(&half, &name, empties);
                }
                lost.insert(name.clone());
                let new = Removal::new(update, quiet && !empties, relayed, expiry(state, &name), now);
                self.enter(&mut names, &half, new);
                continue;
            }
            match names.get_mut(&name) {
                Some(removal) if matches!(update, Update::Error(..)) && !removal.is_emptied() => {
                    removal.complain(update, lost.contains(&name));
                    self.undecided |= removal.failed;
                }
                _ => {
                    self.first_states.find(&half, &name);
                    change.updates.extend(self.overtake(&mut names, &half, &update));
                    change.updates.push(update);
                }
            }
        }
        let gone = self.make_room(&mut names, &half, &change.updates, state);
        change.updates.extend(gone);
        if judged && !first {
            self.judge_message(change, &mut names, &lost, cut, now);
        }
        if !names.is_empty() {
            self.held.insert(half, names);
        }
    }

    /// A removal begins to wait, or is said again.
    fn enter(&mut self, names: &mut Removals, half: &Half, mut new: Removal) {
        let Some(name) = new.updates.first().map(Update::name).cloned() else {
            return;
        };
        if let Some(removal) = names.get_mut(&name) {
            removal.repeat(new.updates);
            return;
        }
        if let Some((reason, earlier)) = self.remembered.remove(&(half.clone(), name.clone())) {
            new.remember(reason, &earlier);
        }
        if new.quiet {
            self.queue.push_back((new.since, half.clone(), name.clone()));
        } else {
            self.undecided = true;
        }
        names.insert(name, new);
    }

    /// A name has returned, or something takes its place: returns what must come before that.
    fn overtake(&mut self, names: &mut Removals, half: &Half, update: &Update) -> Vec<Update> {
        let (before, reasons) = overtaken(names, update);
        for reason in reasons {
            self.ledger.end(&half.0, reason, HoldEnd::Server);
            // The endpoints of a cluster that has returned do not wait for it any more.
            self.moved = true;
        }
        if !self.remembered.is_empty() {
            self.remembered.remove(&(half.clone(), update.name().clone()));
        }
        before
    }

    /// A listener takes the address of ones that wait, or a virtual host their domain: they go with it, for a client could not have
    /// both (D-03, C-26).
    fn make_room(
        &mut self,
        names: &mut Removals,
        half: &Half,
        updates: &[Update],
        state: Option<&State>,
    ) -> Vec<Update> {
        let kind = half.0.kind();
        if names.is_empty() || !matches!(kind, Kind::Lds | Kind::Vhds) {
            return Vec::new();
        }
        let taken = updates.iter().filter_map(|update| match update {
            Update::Put(resource, _) => references(kind, resource),
            Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
        });
        let taken: Places = taken.flat_map(|found| found.places.iter().cloned()).collect();
        let makes_room = |name: &Name| {
            let own = state.and_then(|state| references(kind, state.resource(name)?));
            own.is_some_and(|own| own.places.iter().any(|place| taken.collide(place)))
        };
        let gone: Vec<Name> = names.keys().filter(|name| makes_room(name)).cloned().collect();
        let removals: Vec<Removal> = gone.iter().filter_map(|name| names.remove(name)).collect();
        if removals
            .iter()
            .any(|removal| removal.reason() == Some(HoldReason::Mass))
        {
            self.ledger.end(&half.0, HoldReason::Mass, HoldEnd::Additions);
        }
        removals.into_iter().flat_map(|removal| removal.updates).collect()
    }

    /// `within: always`: judges one message by itself.
    fn judge_message(&self, change: &Changes, names: &mut Removals, lost: &BTreeSet<Name>, cut: &Cut, now: Instant) {
        let Some(slot) = cut.slot(&change.type_url).filter(|_| !lost.is_empty()) else {
            return;
        };
        let is_new = |update: &&Update| match update {
            Update::Put(resource, _) => slot.halves().all(|state| !is_present(state, resource.name())),
            Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => false,
        };
        let gained = change.updates.iter().filter(is_new).count();
        let served = served(slot.wildcard.as_deref(), Some(&slot.named));
        let mass = &self.settings.mass;
        if is_mass(change.type_url.kind(), lost.len(), gained, served, mass) {
            for name in lost {
                if let Some(removal) = names.get_mut(name) {
                    removal.begin_mass(now + mass.hold);
                }
            }
        }
    }

    /// Whether the resource expires before a quiet time would be over.
    fn ends_soon(&self, state: Option<&State>, name: &Name, now: Instant) -> bool {
        expiry(state, name).is_some_and(|at| at <= now + self.bound)
    }
}

fn expiry(state: Option<&State>, name: &Name) -> Option<Instant> {
    state.and_then(|state| state.expiry(name)).map(|expiry| expiry.at)
}

/// Whether an endpoint assignment that has endpoints gets one without.
fn becomes_empty(kind: Kind, state: Option<&State>, update: &Update) -> bool {
    let (Kind::Eds, Update::Put(resource, _), Some(state)) = (kind, update, state) else {
        return false;
    };
    let before = state.resource(resource.name());
    before.is_some_and(|before| is_empty_assignment(resource) && !is_empty_assignment(before))
}
