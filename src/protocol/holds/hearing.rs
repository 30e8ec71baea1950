// SPDX-License-Identifier: Apache-2.0
//! What the control plane says passes here before it is published.
//!
//! Owns which updates are taken out. Does not decide how long they wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Holds;
use super::ground::{Ground, HeldLoss};
use super::measure::is_present;
use super::taking_over::{Elsewhere, FromElsewhere, begins};
use super::waiting::{Half, Item, Referrers, Row};
use super::word::removes;
use xds::{Changes, Cut, HoldEnd, Kind, Name, Phase, Reason, State, Update, is_empty_assignment};

/// For what the removals among some changes wait.
#[derive(Clone, Copy)]
struct Waits {
    quiet: bool,
    referred: bool,
    /// By these, if at all.
    referrers: Referrers,
    /// They are a part of a first state, of which something was served before.
    first: bool,
}

impl Holds {
    /// Takes the removals that must wait out of these changes, which the control plane has just said; `cut` is what the view
    /// has. `elsewhere`: what the sessions of this view are served by the view of another server, if they are; `true`: none reads this view.
    pub fn hear(
        &mut self,
        changes: &mut Vec<Changes>,
        cut: &Cut,
        elsewhere: impl FnOnce() -> Option<(Arc<Cut>, bool)>,
        now: Instant,
    ) {
        let elsewhere = changes.iter().any(begins).then(elsewhere).flatten();
        let elsewhere = elsewhere.map(|(served, all)| Elsewhere { served, all });
        if let Some(elsewhere) = &elsewhere {
            self.from_elsewhere = Some(FromElsewhere::new(elsewhere.clone(), now));
        }
        let within = self.settings().within;
        let mut taken = Vec::new();
        self.first_states.pass(now);
        self.from_elsewhere
            .take_if(|from_elsewhere| from_elsewhere.is_over(now));
        for change in &mut *changes {
            let kind = change.type_url.kind();
            if kind.gated() && !change.updates.is_empty() {
                self.directed = Some(now);
            }
            let half = (change.type_url.clone(), change.wildcard);
            let later = self.from_elsewhere.as_mut().filter(|_| begins(change));
            let later = later.and_then(|from| from.begin(&half, cut));
            let elsewhere = elsewhere.as_ref().or(later.as_ref());
            // The half has begun on its other stream already: what that one has said is not dropped.
            let again = self.first_states.has_begun(&half);
            self.first_states.hear(change, cut, elsewhere, within, now);
            let waits = self.waits(change, &half);
            let concerns = |update: &Update| {
                let assigns = kind.is_assignment() && matches!(update, Update::Put(..));
                removes(update) && waits.any() || assigns && (waits.first || self.table.takes_endpoints(update.name()))
            };
            if self.table.has_half(&half) || change.updates.iter().any(concerns) {
                let state = cut.half(&half.0, half.1).map(|state| &**state);
                self.sift(change, &half, waits, state, now);
            }
            taken.extend(self.take_over(change, &half, cut, now));
            if let Some(elsewhere) = elsewhere.filter(|_| !again) {
                elsewhere.drop_gone(change, &half, cut);
            }
            self.first_states.end(change);
            self.forget_earlier_run(change, &half);
        }
        self.bring_along(changes, taken, cut, now);
        changes.retain(|change| !change.updates.is_empty() || change.complete.is_some() || change.answered.is_some());
    }

    fn waits(&self, change: &Changes, half: &Half) -> Waits {
        let kind = half.0.kind();
        let is_relayed = change.phase == Phase::Relayed;
        let nothing = !self.settings().references && self.settings().unready.is_zero();
        Waits {
            quiet: !self.quiet.is_zero() && (kind.gates() || kind.listens()),
            referred: kind.is_referred() && !nothing,
            referrers: if is_relayed { Referrers::Beside } else { Referrers::All },
            first: self.first_states.judges(half),
        }
    }

    /// Takes the removals that wait out of the changes of one half of a type.
    fn sift(&mut self, change: &mut Changes, half: &Half, waits: Waits, state: Option<&State>, now: Instant) {
        let mut lost = BTreeSet::new();
        for update in std::mem::take(&mut change.updates) {
            let item = (half.clone(), update.name().clone());
            if removes(&update) && self.table.get(&item).is_some_and(Row::is_change) {
                // Nothing of it comes later, although the removal itself may be held.
                self.table.leave(&item, HoldEnd::Server);
            }
            // Some control planes say of the endpoints of a removed cluster that there are none: they go with the cluster.
            let taken = self.table.takes_endpoints(&item.1);
            let empties = (waits.first || taken)
                && becomes_empty(half.0.kind(), state, &update)
                && self.first_states.gone_elsewhere(&item) != Some(true);
            // What waits already is said again.
            let removal = self.table.removal(&item);
            let waits_for_any = waits.any() || removal.is_some();
            if empties || removes(&update) && waits_for_any && self.can_wait(&item, state, now) {
                self.begin(&item, update, taken, waits, state, now);
                lost.insert(item.1);
                continue;
            }
            // K-16: that the control plane does not answer takes nothing from anybody.
            let was_said = removal.is_some_and(|removal| !removal.is_remembered());
            if was_said && matches!(update, Update::Absent(_, Reason::TimedOut)) {
                continue;
            }
            if matches!(update, Update::Error(..)) && removal.is_some_and(Row::is_removal) {
                let together = lost.contains(&item.1);
                self.table
                    .change(&item, HoldEnd::Gone, |row| row.complain(update, together));
            } else {
                if matches!(update, Update::Put(..)) {
                    self.first_states.find(&item);
                }
                change.updates.extend(self.overtake(half, &update, now));
                change.updates.push(update);
            }
        }
    }

    /// Whether a removal of this resource can wait. What clients are not served any more, because all read another server which has
    /// removed it, is not brought back.
    fn can_wait(&self, item: &Item, state: Option<&State>, now: Instant) -> bool {
        state.is_some_and(|state| is_present(state, &item.1))
            && expiry(state, &item.1).is_none_or(|at| at > now + self.bound())
            && self.first_states.gone_elsewhere(item) != Some(true)
    }

    /// A removal begins to wait, or is said again. Endpoints that are emptied do so if they are a part of a first state, and like a removal
    /// if removed clusters have `taken` them.
    fn begin(&mut self, item: &Item, update: Update, taken: bool, waits: Waits, state: Option<&State>, now: Instant) {
        let emptied = matches!(update, Update::Put(..));
        let goes = taken || !emptied;
        let endpoints = state.and_then(|state| state.resource(&item.1)?.endpoints());
        let known = self.table.removal(item).map(Row::loss);
        let first = waits.first && self.first_states.gone_elsewhere(item).is_none();
        // What an earlier run has held for a reference was removed by the server on purpose, and is no loss.
        if first && known != Some(None) {
            self.first_states.lose(item, emptied, known.is_none(), now);
        }
        let referrers = match goes && (waits.referred || emptied) {
            true => waits.referrers,
            false => Referrers::Nothing(HoldEnd::Free),
        };
        if known.is_some() {
            self.table.say(item, update.into(), endpoints, referrers);
            return;
        }
        let quiet = waits.quiet && goes;
        let grounds = quiet.then_some(Ground::Quiet(now)).into_iter();
        let grounds = grounds.chain(first.then_some(Ground::Lost(HeldLoss::Undecided)));
        let row = Row::new(update.into(), grounds.collect(), now)
            .expiring(expiry(state, &item.1))
            .referred(referrers);
        if quiet {
            self.queue.push_back((now, item.clone()));
        }
        self.table.enter(item, row, endpoints);
        // What it refers to is not held by the server's own word any more.
        self.reach.touch(item, &mut self.table);
    }

    /// A name has returned, or something takes its place: returns what must come before that, because a name goes together with what
    /// replaces it (K-20).
    fn overtake(&mut self, half: &Half, update: &Update, now: Instant) -> Vec<Update> {
        let mut before = Vec::new();
        let Update::Put(resource, _) = update else {
            return before;
        };
        if !self.table.has_half(half) {
            return before;
        }
        let returned = self.leave_removal(&(half.clone(), resource.name().clone()), HoldEnd::Server);
        if let Some(endpoints) = returned.as_ref().and_then(Row::endpoints) {
            self.restart_quiet(half, endpoints, now);
        }
        for alias in resource.aliases() {
            let removal = self.leave_removal(&(half.clone(), alias.clone()), HoldEnd::Server);
            before.extend(removal.into_iter().flat_map(Row::into_updates));
        }
        before
    }

    /// A cluster has returned: that it has no endpoints, which was said of it while it went, counts when the quiet time is over. What it
    /// has now comes in that time.
    fn restart_quiet(&mut self, cluster: &Half, endpoints: &Name, now: Instant) {
        let of = cluster.0.kind().names().into_iter();
        let emptied = of.flat_map(|of| self.table.named(of, endpoints));
        let emptied = emptied.filter(|(_, removal)| removal.is_emptied() && removal.loss().is_none());
        for item in emptied.map(|(item, _)| item).collect::<Vec<_>>() {
            self.table.change(&item, HoldEnd::Server, |row| row.restart_quiet(now));
            self.queue.push_back((now, item));
        }
    }

    /// Something does not wait any more, because of `end`.
    pub(super) fn leave(&mut self, item: &Item, end: HoldEnd) -> Option<Row> {
        let row = self.table.leave(item, end)?;
        // What it held may go, and what it names is held by the server's own word again.
        self.reach.touch(item, &mut self.table);
        Some(row)
    }

    pub(super) fn leave_removal(&mut self, item: &Item, end: HoldEnd) -> Option<Row> {
        self.table.is_going(item).then(|| self.leave(item, end)).flatten()
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
    let (true, Update::Put(resource, _), Some(state)) = (kind.is_assignment(), update, state) else {
        return false;
    };
    let before = state.resource(resource.name());
    let before = before.filter(|before| !Arc::ptr_eq(before, resource));
    before.is_some_and(|before| is_empty_assignment(resource) && !is_empty_assignment(before))
}
