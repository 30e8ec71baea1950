//! Responses that say only what is new: delta of every type, and SotW of the types that are not full state (B-18).
//!
//! Owns in which order things are said, and what is left for later. Refuses to know about full states.

use std::sync::Arc;

use super::compose::{Allowed, Composed, Step};
use super::covered::Ahead;
use super::glances::Glance;
use super::plan::{Plan, Reach};
use super::subscription::Subscription;
use crate::xds::{Answers, Dialect, Glimpse, Held, Item, Kind, Name, Resource, Seen};

impl Subscription {
    pub(super) fn compose_partial(&mut self, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed) -> Composed {
        self.release(slot);
        let begun = self.covered.rest().cloned();
        let goal = begun.as_ref().map(|rest| &rest.to).or(slot.wildcard());
        if let Some(state) = goal.filter(|state| self.plain(state)) {
            let composed = self.compose_shared(begun.as_ref(), state, answers, allowed);
            if let Composed::Batch { batch, .. } = &composed {
                self.note_choices(batch.items().iter(), batch.removed(), slot);
            }
            return composed;
        }
        let mut plan = Plan::new(if self.reads_nothing() {
            usize::MAX
        } else {
            answers.chunk()
        });
        plan.errors = self.due_errors(slot);
        let rests = !self.is_under_way();
        // C-11: what is sent again with everything else answers for what is owed besides.
        let begins = begun.is_none() && !self.covered.is_owed();
        match begun {
            Some(ahead) => self.plan_covered(ahead, slot, allowed, &mut plan),
            None if !begins => self.plan_wildcard(slot, answers, allowed, &mut plan),
            None => {}
        }
        self.plan_owed_names(slot, allowed, &mut plan);
        let now = self.dirty.take_now();
        let mut rest = self.plan_names(now.unwrap_or_default(), slot, allowed, &mut plan);
        // Only after what has begun comes what begins: all that there is to say now.
        if rests || !plan.room.is_full() {
            if begins {
                self.plan_wildcard(slot, answers, allowed, &mut plan);
            }
            if !allowed.busy {
                let later = self.dirty.take_later();
                rest = self.plan_names(later, slot, allowed, &mut plan);
            }
        }
        self.plan_gone(slot, allowed, &mut plan);
        if plan.room.is_full() {
            self.dirty.go_on(rest);
        }
        self.carry_out(plan, slot, answers, allowed)
    }

    /// C-13: what the client remembers and does not ask for is reported as removed.
    fn plan_unasked(&self, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        let extra = self.covered.seen().extra.as_ref();
        let Some(extra) = extra.filter(|_| self.dialect == Dialect::Delta && !self.wildcard) else {
            return;
        };
        let (goes, rest, waits) = self.unasked(extra, slot, allowed);
        plan.removals_wait |= waits;
        let left = plan.remove_of(goes, Some(extra));
        let seen = Seen {
            state: None,
            extra: left.or(rest),
        };
        plan.reach = Some(Reach::Whole(seen, None));
    }

    fn plan_wildcard(&self, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed, plan: &mut Plan) {
        let Some(state) = slot.wildcard().filter(|_| self.wildcard) else {
            return;
        };
        if self.covered.is_at(state) && self.covered.seen().extra.is_none() && !self.covered.is_owed() {
            return;
        }
        let ahead = self.covered.ahead(state, answers);
        if !allowed.busy || ahead.again {
            return self.plan_covered(ahead, slot, allowed, plan);
        }
        let gone = ahead
            .difference
            .removed()
            .filter(|_| self.dialect == Dialect::Delta && state.certain());
        plan.removals_wait |= gone.is_some_and(|extra| !self.goes(extra, slot).0.is_empty());
    }

    fn plan_covered(&self, ahead: Ahead, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        let Ahead { difference, again, .. } = &ahead;
        let passed_over = self.passed_over();
        let mut said = 0;
        for resource in difference.changed() {
            let asked = self.names.contains(resource.name());
            if !again && passed_over(resource) {
                said += 1;
                continue;
            }
            // C-11: all that is covered is sent again, also what was asked for by name: as it is now, and F-16, with what was said with
            // that.
            if *again && asked {
                self.plan_owed(resource.name(), slot, allowed, plan);
            } else if plan.takes(resource) {
                self.plan_change(resource, *again, slot, allowed, plan);
            }
            if plan.room.is_full() {
                break;
            }
            said += 1;
        }
        for resource in difference.beats() {
            self.plan_beat(resource, slot, allowed.now, plan);
        }
        plan.ahead = Some((ahead, said));
    }

    /// Whether the wildcard's answer leaves a resource out, because the client asked for it by name, or holds it by one of its aliases.
    pub(super) fn passed_over(&self) -> impl Fn(&Arc<Resource>) -> bool {
        let newer = self.names.newer_by_alias();
        move |resource| self.names.contains(resource.name()) || self.holds_by_alias(resource) || newer(resource)
    }

    /// Removals come after what comes, which may take their place.
    fn plan_gone(&self, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        match plan.ahead.take() {
            Some((ahead, said)) if plan.room.is_full() => plan.reach = Some(Reach::Part(ahead, said)),
            Some((ahead, _)) => self.plan_uncovered(&ahead, slot, allowed, plan),
            None => self.plan_unasked(slot, allowed, plan),
        }
        for name in std::mem::take(&mut plan.gone) {
            // The wildcard's answer that has begun still brings it; the next one says that it is gone.
            if plan.items.contains_key(&name) && !self.names.contains(&name) {
                continue;
            }
            if self.plan_removal(&name, slot, plan) {
                plan.answered.insert(name);
            } else if !self.owed.contains(&name) {
                plan.later.insert(name);
            }
        }
        let empty = self.empty_collections(slot);
        let empty = empty.take_while(|name| plan.room.takes_name(name));
        plan.removed.extend(empty.cloned());
    }

    /// What the wildcard does not cover any more.
    fn plan_uncovered(&self, ahead: &Ahead, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
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
        if !allowed.removals {
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

    fn plan_owed_names(&self, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        for name in self.owed.iter() {
            if plan.room.is_full() {
                return;
            }
            self.plan_owed(name, slot, allowed, plan);
        }
    }

    /// Plans what is new of these names. Returns the names for which there was no room.
    fn plan_names(&self, names: Glance, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) -> Glance {
        let glanced = names.iter(&self.names).filter(|name| !self.owed.contains(name));
        let stops = { glanced }.find(|name| {
            if !plan.room.is_full() {
                self.plan_glanced(name, slot, allowed, plan);
            }
            plan.room.is_full()
        });
        match stops.cloned() {
            Some(name) => names.rest(&name),
            None => Glance::default(),
        }
    }

    /// Notes what the client holds once it has the answer.
    fn note_all(&mut self, holds: Vec<(Name, Held)>, reach: Option<Reach>, slot: Glimpse<'_>) {
        let (asked, covered): (Vec<_>, Vec<_>) = holds.into_iter().partition(|(name, _)| self.names.contains(name));
        for (name, held) in asked {
            self.note_held(&name, held);
        }
        match reach {
            Some(Reach::Part(ahead, said)) => {
                let now = ahead.difference.changed().get(..said).unwrap_or_default();
                let mut seen = self.covered.seen().brought(now, &ahead.to);
                // K-19: in SotW nothing says that something is gone.
                let gone = ahead.difference.removed().filter(|_| self.dialect == Dialect::Sotw);
                let gone = gone.into_iter().flat_map(|extra| extra.names().keys());
                seen.note(gone.map(|name| (name.clone(), Held::Nothing)).collect());
                let difference = Arc::new(ahead.difference.after(said));
                self.covered.advance(seen, Ahead { difference, ..ahead });
            }
            Some(Reach::Whole(seen, Some(rest))) => self.covered.advance(seen, rest),
            Some(Reach::Whole(seen, None)) => self.covered.arrive(seen),
            None => {}
        }
        if !self.wildcard {
            return;
        }
        // What the wildcard's own answer says is noted with that.
        let new = |(name, held): &(Name, Held)| match held.content() {
            Some(content) => !self.covered.held(content.name()).is(content.version()),
            None => self.covered.held(name).perhaps() || held.perhaps(),
        };
        let (came, told): (Vec<_>, Vec<_>) = covered
            .into_iter()
            .filter(new)
            .partition(|(_, held)| held.content().is_some());
        self.note_covered(told);
        if let Some(state) = slot.wildcard() {
            let came = came.into_iter().filter_map(|(_, held)| held.content().cloned());
            self.bring_covered(&came.collect::<Vec<_>>(), state);
        }
    }

    fn carry_out(&mut self, plan: Plan, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed) -> Composed {
        let Plan {
            items,
            mut removed,
            missing,
            mut holds,
            mut answered,
            later,
            reach,
            errors,
            since,
            removals_wait,
            ..
        } = plan;
        removed.retain(|name| !items.contains_key(name));
        let waits = removals_wait || !later.is_empty();
        let (errors, wait) = self.tell_errors(errors, &items, slot);
        let withdrawn = self.withdrawn(&items, removed.iter().cloned(), slot);
        // What is sent for another reason is not owed any more.
        let sent = holds.iter().filter(|(_, held)| held.perhaps());
        answered.extend(sent.map(|(name, _)| name.clone()));
        self.owed
            .retain(|name| !answered.contains(name) && !items.get(name).is_some_and(Item::is_whole));
        for name in later.into_iter().chain(wait.into_keys()) {
            self.look_at(name);
        }
        holds.splice(0..0, self.names.replaced_by(&items));
        self.note_all(holds, reach, slot);
        self.globs.settle(items.keys(), &removed);
        self.note_beats(&items, slot);
        self.forget_beats(|name| removed.contains(name));
        let whole = self.wildcard && self.covered.seen().state.as_ref().is_some_and(|state| state.complete());
        let empty_answer = self.first && whole && self.covered.rest().is_none() && !allowed.busy;
        if items.is_empty() && removed.is_empty() && errors.is_empty() && !empty_answer {
            return Composed::Not(if allowed.busy && self.pending(slot, answers) {
                Step::Blocked
            } else if waits {
                Step::Removals
            } else {
                Step::Idle
            });
        }
        let unreadable = self.reads_nothing();
        let items = items.into_values();
        let items: Vec<Item> = items
            .filter(|item| !unreadable || !self.wraps(&item.resource))
            .collect();
        if unreadable && items.is_empty() && removed.is_empty() && errors.is_empty() {
            return Composed::Not(Step::Idle);
        }
        let batch = self.batch(items, removed.into_iter().collect(), &errors);
        self.let_spellings_go();
        let hosts = self.traits().kind == Kind::Vhds;
        let batch = Arc::new(
            batch
                .with_missing(missing, hosts)
                .with_errors(errors)
                .with_withdrawn(withdrawn),
        );
        self.note_choices(batch.items().iter(), batch.removed(), slot);
        Composed::Batch {
            batch,
            since,
            set: None,
        }
    }
}
