//! What the control plane says passes here before it is published.
//!
//! Owns which updates are taken out. Does not decide how long they wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Guard;
use super::first_states::is_present;
use super::reading::{is_empty_assignment, references};
use super::references::{is_referred, unsettle};
use super::removal::{Half, Item, Judged, Reference, Removal, is_quiet, removes};
use xds::{Changes, Cut, HoldEnd, Kind, Name, Phase, Reason, Spots, State, Update};

/// For what the removals among some changes wait.
#[derive(Clone, Copy)]
struct Waits {
    quiet: bool,
    referred: bool,
    /// They are a part of a first state, of which something was served before.
    first: bool,
}

impl Guard {
    /// Takes the removals that must wait out of these changes, which the control plane has just said; `cut` is what the view
    /// has.
    pub fn hold(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        let elsewhere = self.elsewhere.take();
        let within = self.settings.mass.within;
        for change in &mut *changes {
            let kind = change.type_url.kind();
            if kind.gated() && !change.updates.is_empty() {
                self.directed = Some(now);
            }
            self.first_states.hear(change, cut, elsewhere.as_ref(), within, now);
            let half = (change.type_url.clone(), change.wildcard);
            let waits = self.waits(change, &half);
            let concerns = |update: &Update| {
                let assigns = kind == Kind::Eds && matches!(update, Update::Put(..));
                removes(update) && waits.any() || assigns && (waits.first || self.held.takes_endpoints(update.name()))
            };
            if self.held.has_half(&half) || change.updates.iter().any(concerns) {
                self.sift(
                    change,
                    &half,
                    waits,
                    cut.half(&half.0, half.1).map(|state| &**state),
                    now,
                );
            }
            self.take_over(change, &half, cut, now);
            if let Some(elsewhere) = &elsewhere {
                self.drop_gone(change, &half, cut, elsewhere);
            }
            self.first_states.end(change);
            self.forget_earlier_run(change, &half);
        }
        changes.retain(|change| !change.updates.is_empty() || change.complete.is_some() || change.answered.is_some());
    }

    fn waits(&self, change: &Changes, half: &Half) -> Waits {
        let kind = half.0.kind();
        let relayed = change.phase == Phase::Relayed;
        Waits {
            quiet: !self.quiet.is_zero() && is_quiet(kind),
            referred: !relayed && self.follows_references() && is_referred(kind),
            first: self.first_states.judges(half),
        }
    }

    /// Takes the removals that wait out of the changes of one half of a type.
    fn sift(&mut self, change: &mut Changes, half: &Half, waits: Waits, state: Option<&State>, now: Instant) {
        let mut lost = BTreeSet::new();
        for update in std::mem::take(&mut change.updates) {
            let item = (half.clone(), update.name().clone());
            // Some control planes say of the endpoints of a removed cluster that there are none: they go with the cluster.
            let taken = self.held.takes_endpoints(&item.1);
            let empties = (waits.first || taken)
                && becomes_empty(half.0.kind(), state, &update)
                && self.first_states.gone_elsewhere(&item) != Some(true);
            let follows = empties && taken;
            // What waits already is said again.
            let waits_for_any = waits.any() || self.held.contains(&item);
            if empties || removes(&update) && waits_for_any && self.can_wait(&item, state, now) {
                self.begin(&item, update, follows, waits, state, now);
                lost.insert(item.1);
                continue;
            }
            let removal = self.held.get(&item);
            // K-16: that the control plane does not answer takes nothing from anybody.
            let was_said = removal.is_some_and(|removal| !removal.is_remembered());
            if was_said && matches!(update, Update::Absent(_, Reason::TimedOut)) {
                continue;
            }
            if matches!(update, Update::Error(..)) && removal.is_some_and(|removal| !removal.is_emptied()) {
                let together = lost.contains(&item.1);
                self.held
                    .change(&item, HoldEnd::Gone, |removal| removal.complain(update, together));
            } else {
                self.first_states.find(&item);
                change.updates.extend(self.overtake(half, &update, now));
                change.updates.push(update);
            }
        }
        let gone = self.make_room(half, &change.updates, state);
        change.updates.extend(gone);
    }

    /// Whether a removal of this resource can wait. What clients are not served any more, because all read another server which has
    /// removed it, is not brought back.
    fn can_wait(&self, item: &Item, state: Option<&State>, now: Instant) -> bool {
        state.is_some_and(|state| is_present(state, &item.1))
            && expiry(state, &item.1).is_none_or(|at| at > now + self.bound)
            && self.first_states.gone_elsewhere(item) != Some(true)
    }

    /// A removal begins to wait, or is said again. Endpoints that are emptied do so if they are a part of a first state, and if `follows`
    /// like a removal.
    fn begin(&mut self, item: &Item, update: Update, follows: bool, waits: Waits, state: Option<&State>, now: Instant) {
        let emptied = matches!(update, Update::Put(..));
        let goes = follows || !emptied;
        let endpoints = state.and_then(|state| state.resource(&item.1)?.endpoints());
        let known = self.held.get(item).map(Removal::judged);
        let first = waits.first && self.first_states.gone_elsewhere(item).is_none();
        // What an earlier run has held for a reference was removed by the server on purpose, and is no loss.
        if first && known != Some(Judged::Not) {
            self.first_states.lose(item, emptied, known.is_none(), now);
        }
        if known.is_some() {
            self.held.repeat(item, update, endpoints);
            return;
        }
        let quiet = waits.quiet && goes;
        let judged = if first { Judged::Undecided } else { Judged::Not };
        let reference = match waits.referred && goes {
            true => Reference::Unknown(false),
            false => Reference::Ignored(HoldEnd::Free),
        };
        let removal = Removal::new(vec![update], quiet, judged, reference, expiry(state, &item.1), now);
        let removal = removal.following(follows);
        if quiet {
            self.queue.push_back((now, item.clone()));
        }
        self.held.enter(item, removal, endpoints);
        // What it refers to is not held by the server's own word any more.
        self.references.touch(item, &mut self.held);
    }

    /// A name has returned, or something takes its place: returns what must come before that, because a name goes together with what
    /// replaces it (K-20).
    fn overtake(&mut self, half: &Half, update: &Update, now: Instant) -> Vec<Update> {
        let mut before = Vec::new();
        if !self.held.has_half(half) {
            return before;
        }
        match update {
            Update::Put(resource, _) => {
                let returned = self.leave(&(half.clone(), resource.name().clone()), HoldEnd::Server);
                let endpoints = returned.as_ref().and_then(Removal::endpoints);
                endpoints.into_iter().for_each(|name| self.hush(name, now));
                for alias in resource.aliases() {
                    let removal = self.leave(&(half.clone(), alias.clone()), HoldEnd::Server);
                    before.extend(removal.into_iter().flat_map(Removal::into_updates));
                }
            }
            Update::Absent(name, _) | Update::Forget(name) => {
                self.leave(&(half.clone(), name.clone()), HoldEnd::Gone);
            }
            Update::Whole(_) | Update::Error(..) => {}
        }
        before
    }

    /// A cluster has returned: that it has no endpoints, which was said of it while it went, counts when the quiet time is over. What it
    /// has now comes in that time.
    fn hush(&mut self, endpoints: &Name, now: Instant) {
        let emptied = self.held.named(Kind::Eds, endpoints);
        let emptied = emptied.filter(|(_, removal)| removal.is_emptied() && removal.judged() == Judged::Not);
        for item in emptied.map(|(item, _)| item).collect::<Vec<_>>() {
            self.held.change(&item, HoldEnd::Server, |removal| removal.hush(now));
            self.queue.push_back((now, item));
        }
    }

    /// A listener takes the address of ones that wait, or a virtual host their domain: they go with it, for a client could not have
    /// both (D-03, C-26).
    fn make_room(&mut self, half: &Half, updates: &[Update], state: Option<&State>) -> Vec<Update> {
        let kind = half.0.kind();
        if !self.held.has_half(half) || !matches!(kind, Kind::Lds | Kind::Vhds) {
            return Vec::new();
        }
        let taken = updates.iter().filter_map(|update| match update {
            Update::Put(resource, _) => references(kind, resource),
            Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
        });
        let taken: Spots = taken.flat_map(|found| found.spots.iter().cloned()).collect();
        let makes_room = |name: &Name| {
            let own = state.and_then(|state| references(kind, state.resource(name)?));
            own.is_some_and(|own| own.spots.iter().any(|spot| taken.collide(spot)))
        };
        let names = self.held.of_half(half).map(|(name, _)| name);
        let gone: Vec<Name> = names.filter(|name| makes_room(name)).cloned().collect();
        let gone = gone
            .into_iter()
            .filter_map(|name| self.leave(&(half.clone(), name), HoldEnd::Replaced));
        gone.flat_map(Removal::into_updates).collect()
    }

    /// A removal does not wait any more, because of `end`.
    pub(super) fn leave(&mut self, item: &Item, end: HoldEnd) -> Option<Removal> {
        let removal = self.held.leave(item, end)?;
        // What it held may go, and what it names is held by the server's own word again.
        self.references.touch(item, &mut self.held);
        if let Some(name) = removal.endpoints() {
            unsettle(Kind::Eds, name, item, &mut self.held);
        }
        Some(removal)
    }
}

impl Waits {
    const fn any(self) -> bool {
        self.quiet || self.referred || self.first
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
    let before = state
        .resource(resource.name())
        .filter(|before| !Arc::ptr_eq(before, resource));
    before.is_some_and(|before| is_empty_assignment(resource) && !is_empty_assignment(before))
}
