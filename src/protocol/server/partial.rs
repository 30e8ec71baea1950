//! Partial answers, which have only what is new: delta of every type, and SotW of the types that are not full state (B-18).
//!
//! Owns the order in which things are sent, and what is left for later. Knows nothing of full states.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compose::{Allowed, Composed};
use super::covered::Ahead;
use super::plan::{Debt, Plan, Reach};
use super::subscription::Subscription;
use xds::{Answers, Dialect, Extra, Held, Name, Resource, Seen, TypeSight};

impl Subscription {
    pub(super) fn compose_partial(
        &mut self,
        slot: TypeSight<'_>,
        answers: &impl Answers,
        allowed: Allowed,
    ) -> Composed {
        loop {
            let (composed, more) = self.compose_part(slot, answers, allowed);
            if !more || matches!(composed, Composed::Batch { .. }) {
                return composed;
            }
        }
    }

    /// Returns the next response, and whether there may be another one at once if there is nothing to send.
    fn compose_part(&mut self, slot: TypeSight<'_>, answers: &impl Answers, allowed: Allowed) -> (Composed, bool) {
        self.release(slot);
        let begun = self.covered.rest().cloned();
        let goal = begun.as_ref().map(|rest| &rest.to).or(slot.wildcard());
        if let Some(state) = goal.filter(|state| self.plain(state)) {
            return (self.compose_shared(begun.as_ref(), state, answers, allowed), false);
        }
        let chunk = if self.reads_nothing() || self.lists_all() {
            usize::MAX
        } else {
            answers.chunk()
        };
        let mut plan = Plan::new(chunk, allowed);
        plan.errors = self.due_errors(slot);
        self.plan(slot, answers, &mut plan);
        self.plan_all(slot, &mut plan);
        let crowded = plan.is_crowded();
        let composed = self.carry_out(plan, slot, answers);
        // If nothing was left to send of the answer that had begun, what came after it is sent now. What is gone and cannot be said
        // leaves room for the names behind it.
        let ended = begun.is_some() && !self.is_under_way();
        (composed, ended || crowded)
    }

    /// Plans the content of a response at this moment.
    pub(super) fn plan(&self, slot: TypeSight<'_>, answers: &impl Answers, plan: &mut Plan) {
        let rests = !self.is_under_way();
        // C-11: repeating everything also answers the owed names.
        let begins = self.covered.rest().is_none() && !self.covered.is_owed();
        match self.covered.rest() {
            Some(ahead) => self.plan_covered(ahead.clone(), slot, plan),
            None if !begins => self.plan_wildcard(slot, answers, plan),
            None => {}
        }
        self.plan_owed_names(slot, plan);
        let now = self.dirty.now(&self.names);
        plan.stopped = self.plan_names(now, slot, plan).cloned();
        // A new answer follows only after the begun one, and then has everything that there is to send now.
        if rests || !plan.is_full() {
            if begins {
                self.plan_wildcard(slot, answers, plan);
            }
            if !plan.allowed.busy {
                let later = self.dirty.later(&self.names);
                plan.begins = true;
                plan.stopped = self.plan_names(later, slot, plan).cloned();
            }
        }
        self.plan_gone(slot, plan);
    }

    /// C-13: resources that the client declared and does not ask for are reported as removed. What a wildcard covers is unknown until
    /// the wildcard is known; no wildcard covers names of new style.
    fn plan_unasked(&self, slot: TypeSight<'_>, plan: &mut Plan) {
        let extra = self.covered.seen().extra.as_ref();
        let Some(extra) = extra.filter(|_| self.dialect == Dialect::Delta) else {
            return;
        };
        if self.wildcard {
            if slot.wildcard().is_none() {
                self.plan_uncoverable(extra, slot, plan);
            }
            return;
        }
        let (goes, rest, waits) = self.unasked(extra, slot, plan.allowed);
        plan.removals_wait |= waits;
        let left = plan.remove_of(goes, Some(extra));
        let seen = Seen {
            state: None,
            extra: left.or(rest),
        };
        plan.reach = Some(Reach::Whole(seen, None));
    }

    /// The same while the client's wildcard is unknown: only names of new style are reported.
    fn plan_uncoverable(&self, extra: &Arc<Extra>, slot: TypeSight<'_>, plan: &mut Plan) {
        let names = extra.names().iter().filter(|(name, _)| name.is_new_style());
        let names: BTreeMap<Name, Held> = names.map(|(name, held)| (name.clone(), held.clone())).collect();
        if names.is_empty() {
            return;
        }
        let (goes, _, waits) = self.unasked(&Arc::new(Extra::new(names)), slot, plan.allowed);
        plan.removals_wait |= waits;
        for name in goes {
            if plan.room.takes_name(&name) {
                plan.removed.insert(name.clone());
                plan.holds.push((name, Held::Nothing));
            }
        }
    }

    fn plan_wildcard(&self, slot: TypeSight<'_>, answers: &impl Answers, plan: &mut Plan) {
        let Some(state) = slot.wildcard().filter(|_| self.wildcard) else {
            return;
        };
        if self.covered.is_at(state) && self.covered.seen().extra.is_none() && !self.covered.is_owed() {
            return;
        }
        let ahead = self.covered.ahead(state, answers);
        if !plan.allowed.busy || ahead.again {
            return self.plan_covered(ahead, slot, plan);
        }
        let gone = ahead
            .difference
            .removed()
            .filter(|_| self.dialect == Dialect::Delta && state.certain());
        plan.removals_wait |= gone.is_some_and(|extra| !self.goes(extra, slot).0.is_empty());
    }

    fn plan_covered(&self, ahead: Ahead, slot: TypeSight<'_>, plan: &mut Plan) {
        let Ahead { difference, again, .. } = &ahead;
        let passed_over = self.passed_over(slot);
        // In SotW the relay forgets what a client holds by its wildcard while the server does not know of it. B-22: when the
        // server knows of it again, it is not sent if the client rejected it.
        let refused = |resource: &Resource| self.dialect == Dialect::Sotw && self.refuses(resource);
        let mut said = 0;
        for resource in difference.changed() {
            let asked = self.names.contains(resource.name());
            if !again && (passed_over(resource) || refused(resource)) {
                said += 1;
                continue;
            }
            // C-11: everything that is covered is sent again. A resource that was requested by name is sent as it is now.
            if *again && asked {
                plan.owed.push((resource.name().clone(), Debt::Made));
                self.plan_owed(resource.name(), slot, plan);
            } else if plan.takes(resource) {
                self.plan_change(resource, *again, slot, plan);
            }
            if plan.room.is_full() {
                break;
            }
            said += 1;
        }
        for resource in difference.beats() {
            if plan.room.is_full() {
                break;
            }
            // K-17: the wildcard does not know that a name which the client requested as well has gone or changed since.
            let requested = self.names.get(resource.name());
            if requested.is_none_or(|held| held.is(resource.version())) {
                self.plan_beat(resource, slot, plan);
            }
        }
        plan.ahead = Some((ahead, said));
    }

    /// Returns a function that tells whether the wildcard's answer leaves a resource out: the client asked for it by name, holds
    /// it by one of its aliases, holds newer content of this view by one, or rejected it by one (B-22).
    pub(super) fn passed_over<'a>(&'a self, slot: TypeSight<'a>) -> impl Fn(&Arc<Resource>) -> bool + 'a {
        let newer = self.names.newer_by_alias();
        let is_here = move |held: &Arc<Resource>| {
            let found = slot.named(held.name());
            found.is_some_and(|found| found.version() == held.version())
        };
        move |resource| {
            let by_alias = || resource.aliases().iter().any(|alias| self.names.contains(alias));
            let asked = self.names.contains(resource.name()) || self.holds_by_alias(resource);
            asked || newer(resource).is_some_and(is_here) || by_alias() && self.refuses(resource)
        }
    }

    /// Removals come after additions, which may replace them.
    fn plan_gone(&self, slot: TypeSight<'_>, plan: &mut Plan) {
        match plan.ahead.take() {
            Some((ahead, said)) if plan.room.is_full() => plan.reach = Some(Reach::Part(ahead, said)),
            Some((ahead, _)) => self.plan_uncovered(&ahead, slot, plan),
            None => self.plan_unasked(slot, plan),
        }
        for name in std::mem::take(&mut plan.gone) {
            // The wildcard's begun answer still adds it; the next answer removes it.
            if plan.items.contains_key(&name) && !self.names.contains(&name) {
                continue;
            }
            if self.plan_removal(&name, slot, plan) {
                plan.adds |= plan.removed.contains(&name);
                plan.owed.push((name, Debt::Paid));
            } else if !self.owed.contains(&name) {
                plan.later.insert(name);
            }
        }
        for name in self.empty_collections(slot) {
            if plan.room.takes_name(name) {
                plan.adds = true;
                plan.removed.insert(name.clone());
            }
        }
    }

    /// Plans the removal of what the wildcard does not cover any more.
    fn plan_uncovered(&self, ahead: &Ahead, slot: TypeSight<'_>, plan: &mut Plan) {
        let Ahead { to, difference, .. } = ahead;
        let gone = difference.removed().filter(|_| self.dialect == Dialect::Delta);
        let (goes, waits) = match gone {
            Some(extra) if to.certain() => self.goes(extra, slot),
            Some(extra) => (Vec::new(), Some(extra.clone())),
            None => (Vec::new(), None),
        };
        let seen = |extra| Seen {
            state: Some(to.clone()),
            extra,
        };
        if !plan.allowed.removals {
            plan.removals_wait |= !goes.is_empty();
            plan.reach = Some(Reach::Whole(seen(gone.cloned()), None));
            return;
        }
        let left = plan.remove_of(goes, gone);
        let rest = left.clone().map(|left| Ahead {
            to: to.clone(),
            difference: Arc::new(difference.last(left)),
            again: false,
        });
        plan.reach = Some(Reach::Whole(seen(left.or(waits)), rest));
    }

    fn plan_owed_names(&self, slot: TypeSight<'_>, plan: &mut Plan) {
        for name in self.owed.due() {
            if plan.is_full() {
                return;
            }
            self.plan_owed(name, slot, plan);
        }
    }

    /// Plans what is new of these names. Returns the first name for which there was no room.
    fn plan_names<'a>(
        &'a self,
        mut names: impl Iterator<Item = &'a Name>,
        slot: TypeSight<'_>,
        plan: &mut Plan,
    ) -> Option<&'a Name> {
        names.find(|name| {
            if !plan.is_full() && !self.owed.contains(name) {
                self.plan_glanced(name, slot, plan);
            }
            plan.is_full()
        })
    }
}
