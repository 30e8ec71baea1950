//! Responses that say only what is new: delta of every type, and SotW of the types that are not full state (B-18).
//!
//! Owns the comparison name by name. Refuses to know about full states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::compose::{Allowed, Composed, Step};
use super::held_names::Entry;
use super::subscription::{Before, Current, Glance, Subscription};
use crate::xds::{Answers, Dialect, Form, Glimpse, Held, Item, Kind, Known, Name, Reason, Resource, Seen};

/// What a response will say and what is left for later.
#[derive(Default)]
struct Plan {
    items: BTreeMap<Name, Item>,
    removed: BTreeSet<Name>,
    /// Those of them that never were.
    missing: BTreeSet<Name>,
    /// What the client holds afterwards under names that it asked for.
    holds: Vec<(Name, Held)>,
    /// Owed names that this response answers, or that need no answer.
    answered: BTreeSet<Name>,
    /// Names that go once other types allow it.
    later: BTreeSet<Name>,
    seen: Option<Seen>,
    since: Option<Instant>,
    /// Whether changes wait because something is on its way.
    blocked: bool,
    /// Whether removals wait for other types.
    removals_wait: bool,
}

impl Subscription {
    pub(super) fn compose_partial(&mut self, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed) -> Composed {
        self.release(slot);
        if let Some(state) = slot.wildcard().filter(|state| self.plain(state)) {
            let composed = self.compose_shared(state, answers, allowed);
            if let Composed::Batch { batch, .. } = &composed {
                self.note_choices(batch.items().iter(), batch.removed(), slot);
            }
            return composed;
        }
        let mut plan = Plan::default();
        self.plan_wildcard(slot, answers, allowed, &mut plan);
        self.plan_names(slot, allowed, &mut plan);
        self.carry_out(plan, slot, answers, allowed)
    }

    fn plan_wildcard(&self, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed, plan: &mut Plan) {
        let delta = self.dialect == Dialect::Delta;
        let Some(state) = slot.wildcard().filter(|_| self.wildcard) else {
            // C-13: what the client remembers and does not ask for is reported as removed.
            if let Some(extra) = self.seen.extra.as_ref().filter(|_| delta && !self.wildcard) {
                let (goes, extra, waits) = self.unasked(extra, slot, allowed);
                plan.removed.extend(goes);
                plan.removals_wait = waits;
                plan.seen = Some(Seen { state: None, extra });
            }
            return;
        };
        let same = self.seen.state.as_ref().is_some_and(|seen| seen.id() == state.id());
        if same && self.seen.extra.is_none() && !self.again {
            return;
        }
        let difference = answers.difference(&self.seen, state);
        let gone = difference.removed().filter(|_| delta);
        let (goes, waits) = match gone {
            Some(extra) if state.certain() => self.goes(extra, slot),
            Some(extra) => (Vec::new(), Some(extra.clone())),
            None => (Vec::new(), None),
        };
        if allowed.asked_only && !self.again {
            plan.blocked = difference
                .changed()
                .iter()
                .any(|resource| !self.names.contains(resource.name()));
            plan.removals_wait = !goes.is_empty();
            return;
        }
        let all: Vec<&Arc<Resource>> = if self.again {
            state.resources().collect()
        } else {
            difference.changed().iter().collect()
        };
        let newer = self.names.newer_by_alias();
        for resource in all {
            let asked = self.names.contains(resource.name());
            // C-11: all that is covered is sent again, also what was asked for by name: F-16, with what was said with that.
            if self.again && self.audience.is_some() && asked {
                self.plan_owed(resource.name(), slot, allowed, plan);
                continue;
            } else if self.again {
                self.plan_content(resource.name(), resource, slot, plan);
            } else if asked || self.holds_by_alias(resource) || newer(resource) {
                continue;
            } else {
                // C-20: who asked by an alias holds what the wildcard brings, also when it has refused it before.
                let asked = resource.aliases().iter().filter(|alias| self.names.contains(alias));
                plan.holds
                    .extend(asked.map(|alias| (alias.clone(), Held::Content(resource.clone()))));
            }
            plan.put(self.item(resource, slot, allowed.now));
        }
        for resource in difference.beats() {
            self.plan_beat(resource, slot, allowed.now, plan);
        }
        plan.since = difference.oldest();
        let kept = if allowed.removals {
            plan.removed.extend(goes);
            waits
        } else {
            plan.removals_wait = !goes.is_empty();
            gone.cloned()
        };
        plan.seen = Some(Seen {
            state: Some(state.clone()),
            extra: kept,
        });
    }

    fn plan_names(&self, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        for name in self.owed.iter() {
            self.plan_owed(name, slot, allowed, plan);
        }
        plan.removed.extend(self.empty_collections(slot).cloned());
        if allowed.asked_only {
            let waits = |name: &&Name| {
                !self.owed.contains(name) && matches!(self.current(name, slot), Current::Known(Known::Present(_)))
            };
            plan.blocked |= self.glanced().filter(waits).any(|name| match slot.resource(name) {
                Some(resource) => !self.held(name).is(resource.version()) && !self.refuses(resource),
                None => false,
            });
            return;
        }
        for name in self.glanced().filter(|name| !self.owed.contains(name)) {
            self.plan_glanced(name, slot, allowed, plan);
        }
    }

    /// What is owed is said whatever the client holds (K-12); what is unknown stays owed.
    fn plan_owed(&self, name: &Name, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        match self.current(name, slot) {
            Current::Unknown => return,
            Current::Unwanted => {}
            Current::Known(Known::Present(resource)) => {
                self.plan_content(name, resource, slot, plan);
                plan.put(self.item(resource, slot, allowed.now));
            }
            // B-14, K-13: it stays owed, because the client may have asked for what it has forgotten, or wait for it once more.
            Current::Known(Known::Absent(reason)) if self.unsayable(name, *reason) => return,
            // C-08, C-15: what does not exist is answered for, once per subscription.
            Current::Uncovered | Current::Known(Known::Absent(_)) => self.plan_removal(name, slot, plan),
        }
        plan.answered.insert(name.clone());
    }

    fn plan_glanced(&self, name: &Name, slot: Glimpse<'_>, allowed: Allowed, plan: &mut Plan) {
        let held = self.held(name);
        match self.current(name, slot) {
            Current::Known(Known::Present(resource)) if self.refuses(resource) => {}
            Current::Known(Known::Present(resource)) if !held.is(resource.version()) => {
                self.plan_content(name, resource, slot, plan);
                plan.put(self.item(resource, slot, allowed.now));
            }
            // E-09: only the resource itself says that nothing is wrong with it any more.
            Current::Known(Known::Present(resource)) if self.is_absolved(name, slot) => {
                self.plan_content(name, resource, slot, plan);
                plan.put(self.item(resource, slot, allowed.now));
            }
            Current::Known(Known::Present(resource)) => {
                if held.content().is_some_and(|content| content.is_hollow()) {
                    plan.holds.push((name.clone(), Held::Content(resource.clone())));
                }
                self.plan_beat(resource, slot, allowed.now, plan);
            }
            Current::Known(Known::Absent(Reason::TimedOut))
            | Current::Unknown
            | Current::Unwanted
            | Current::Uncovered => {}
            Current::Known(Known::Absent(_)) if !held.perhaps() || self.dialect == Dialect::Sotw => {
                if self.names.has_member(name) {
                    plan.holds.push((name.clone(), Held::Nothing));
                }
            }
            Current::Known(Known::Absent(_)) if self.rare().refusals.has(name, None) => {}
            Current::Known(Known::Absent(_)) if allowed.removals => self.plan_removal(name, slot, plan),
            Current::Known(Known::Absent(_)) => drop(plan.later.insert(name.clone())),
        }
    }

    /// Notes what the client holds once it has this content, under every name that it asked for it by (C-20) or has it by.
    fn plan_content(&self, name: &Name, resource: &Arc<Resource>, slot: Glimpse<'_>, plan: &mut Plan) {
        plan.since = oldest(plan.since, Some(resource.received()));
        let others = std::iter::once(resource.name()).chain(resource.aliases());
        let others =
            others.filter(|other| *other != name && (self.names.contains(other) || self.held(other).perhaps()));
        for name in std::iter::once(name).chain(others) {
            if self
                .held(name)
                .content()
                .is_some_and(|held| held.name() != resource.name())
            {
                self.plan_former(name, slot, plan);
            }
            plan.holds.push((name.clone(), Held::Content(resource.clone())));
        }
    }

    /// C-20: who asked by an alias holds the resource under its own name: that goes when the alias means nothing more, or
    /// something else.
    fn plan_former(&self, name: &Name, slot: Glimpse<'_>, plan: &mut Plan) {
        if let Some(own) = self.held(name).own_name(name)
            && self.dialect == Dialect::Delta
            && matches!(self.current(own, slot), Current::Unwanted | Current::Uncovered)
            && !self
                .names
                .iter()
                .any(|(other, _)| slot.resource(other).is_some_and(|it| it.name() == own))
        {
            plan.removed.insert(own.clone());
        }
    }

    fn plan_removal(&self, name: &Name, slot: Glimpse<'_>, plan: &mut Plan) {
        if self.dialect == Dialect::Sotw {
            return;
        }
        if self.names.get(name).is_some_and(|held| !held.perhaps()) {
            plan.missing.insert(name.clone());
        }
        self.plan_former(name, slot, plan);
        plan.removed.insert(name.clone());
        plan.holds.push((name.clone(), Held::Nothing));
    }

    /// K-17: a heartbeat goes only to a client that holds that very content; never for virtual hosts (C-21). E-11: that there is
    /// no time to live any more is said by the resource itself.
    fn plan_beat(&self, resource: &Arc<Resource>, slot: Glimpse<'_>, now: Instant, plan: &mut Plan) {
        let beat = slot.expiry(resource).map(|expiry| expiry.beat);
        if !self.reads_ttl() || self.rare().beats.get(resource.name()).copied() == beat || self.refuses(resource) {
            return;
        }
        let heartbeat = beat.is_some() && self.dialect == Dialect::Delta && !resource.is_bundle();
        if heartbeat && self.traits().kind == Kind::Vhds {
            return;
        }
        let item = self.item(resource, slot, now);
        let form = match self.dialect {
            Dialect::Delta if heartbeat => Form::Heartbeat,
            Dialect::Delta => Form::Repeated,
            Dialect::Sotw => item.form,
        };
        plan.items
            .entry(resource.name().clone())
            .or_insert(Item { form, ..item });
    }

    /// Notes what the client holds once it has the answer; returns what it held before.
    fn note_all(&mut self, holds: Vec<(Name, Held)>, seen: Option<Seen>) -> Before {
        let mut before = Before {
            seen: self.seen.clone(),
            ..Before::default()
        };
        let (asked, covered): (Vec<_>, Vec<_>) = holds.into_iter().partition(|(name, _)| self.names.contains(name));
        for (name, held) in asked {
            let held_before = self.names.get(&name).map(Entry::held).unwrap_or_default();
            before.names.entry(name.clone()).or_insert(held_before);
            self.note_held(&name, held);
        }
        if let Some(seen) = seen {
            self.seen = seen;
            self.again = false;
        }
        if self.wildcard {
            self.seen.note(covered);
        }
        before
    }

    fn carry_out(&mut self, plan: Plan, slot: Glimpse<'_>, answers: &impl Answers, allowed: Allowed) -> Composed {
        let Plan {
            items,
            mut removed,
            missing,
            mut holds,
            answered,
            later,
            seen,
            since,
            blocked,
            removals_wait,
        } = plan;
        removed.retain(|name| !items.contains_key(name));
        let waits = removals_wait || !later.is_empty();
        let (errors, wait) = self.tell_errors(self.due_errors(slot), &items, slot);
        let withdrawn = self.withdrawn(&items, removed.iter().cloned(), slot);
        self.owed.retain(|name| !answered.contains(name));
        if !allowed.asked_only {
            self.dirty = Glance::Names(later);
        }
        wait.into_keys().for_each(|name| self.look_at(name));
        holds.splice(0..0, self.names.replaced_by(&items));
        let mut before = self.note_all(holds, seen);
        before.owed = answered;
        self.globs.settle(items.keys(), &removed);
        self.note_beats(&items, slot);
        self.forget_beats(|name| removed.contains(name));
        let whole = self.wildcard && self.seen.state.as_ref().is_some_and(|state| state.complete());
        let empty_answer = self.first && whole && !allowed.asked_only;
        if items.is_empty() && removed.is_empty() && errors.is_empty() && !empty_answer {
            return Composed::Not(if blocked {
                Step::Blocked
            } else if waits {
                Step::Removals
            } else {
                Step::Idle
            });
        }
        let unreadable = self.wrapped() && !self.features.wrapper;
        let items = items.into_values();
        let items: Vec<Item> = items
            .filter(|item| !unreadable || !self.wraps(&item.resource))
            .collect();
        if unreadable && items.is_empty() && removed.is_empty() && errors.is_empty() {
            return Composed::Not(Step::Idle);
        }
        let batch = self.batch(items, removed.into_iter().collect(), &errors, answers.chunk());
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
            before,
            since,
            set: None,
        }
    }
}

impl Plan {
    fn put(&mut self, item: Item) {
        self.items.insert(item.resource.name().clone(), item);
    }
}

fn oldest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}
