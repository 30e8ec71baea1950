//! Turns a plan into a response, and notes what the client then holds and is owed.
//!
//! Owns that exactly what is sent counts as held. Does not decide what is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compose::{Composed, Step};
use super::covered::Ahead;
use super::plan::{Debt, Plan, Reach};
use super::subscription::Subscription;
use xds::{Answers, Dialect, Held, Item, Kind, Name, TypeSight};

impl Subscription {
    /// Notes what the client holds once it has the response.
    fn note_all(&mut self, holds: Vec<(Name, Held)>, reach: Option<Reach>, slot: TypeSight<'_>) {
        let (asked, covered): (Vec<_>, Vec<_>) = holds.into_iter().partition(|(name, _)| self.names.contains(name));
        for (name, held) in asked {
            self.note_held(&name, held);
        }
        match reach {
            Some(Reach::Part(ahead, said)) => {
                let now = ahead.difference.changed().get(..said).unwrap_or_default();
                let mut seen = self.covered.seen().brought(now, &ahead.to);
                // K-19: SotW has no removals here.
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
        // What the wildcard's own answer says is noted with that answer.
        let new = |(name, held): &(Name, Held)| match held.content() {
            Some(content) => !self.covered.held(content.name()).is(content.version()),
            None => self.covered.held(name).perhaps() || held.perhaps(),
        };
        let state = slot.wildcard();
        let (came, told): (Vec<_>, Vec<_>) = covered
            .into_iter()
            .filter(new)
            .partition(|(_, held)| state.is_some() && held.content().is_some());
        self.note_covered(told);
        if let Some(state) = state {
            let came = came.into_iter().filter_map(|(_, held)| held.content().cloned());
            self.bring_covered(&came.collect::<Vec<_>>(), state);
        }
    }

    /// The client does not hold a removed name by the wildcard any more either.
    fn note_removed(&mut self, removed: &BTreeSet<Name>) {
        let held = removed.iter().filter(|name| self.covered.held(name).perhaps());
        let gone = held.map(|name| (name.clone(), Held::Nothing)).collect();
        self.note_covered(gone);
    }

    /// Turns a plan into a response.
    pub(super) fn carry_out(&mut self, plan: Plan, slot: TypeSight<'_>, answers: &impl Answers) -> Composed {
        let full = plan.is_full();
        let Plan {
            allowed,
            items,
            mut removed,
            missing,
            mut holds,
            owed,
            later,
            reach,
            errors,
            since,
            removals_wait,
            begins,
            stopped,
            ..
        } = plan;
        self.dirty.look(begins, stopped.as_ref(), full);
        removed.retain(|name| !items.contains_key(name));
        let waits = removals_wait || !later.is_empty();
        let (errors, wait) = self.tell_errors(errors, &items, slot);
        self.settle_owed(owed, &holds, &items);
        for name in later.into_iter().chain(wait.into_keys()) {
            self.look_at(name);
        }
        holds.splice(0..0, self.rename(&items, &removed));
        self.note_all(holds, reach, slot);
        self.note_removed(&removed);
        self.collections.settle(items.keys(), &removed);
        self.note_beats(&items, slot);
        self.forget_beats(|name| removed.contains(name));
        let whole = self.wildcard && self.covered.seen().state.as_ref().is_some_and(|state| state.complete());
        let empty_answer = self.first && whole && self.covered.rest().is_none() && !allowed.busy;
        if items.is_empty() && removed.is_empty() && errors.is_empty() && !empty_answer {
            return Composed::Not(if allowed.busy && self.pending(slot, answers, allowed.now) {
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
        Composed::Batch {
            batch: Arc::new(batch.with_missing(missing, hosts).with_errors(errors)),
            since,
            set: None,
        }
    }

    /// Notes what becomes of owed names. Those that are sent for any reason are not owed any more.
    fn settle_owed(&mut self, owed: Vec<(Name, Debt)>, holds: &[(Name, Held)], items: &BTreeMap<Name, Item>) {
        for (name, debt) in owed {
            match debt {
                Debt::Made => self.owed.insert(name),
                Debt::Waits => self.owed.put_off(&name),
                Debt::Paid => drop(self.owed.remove(&name)),
            }
        }
        let sent = holds.iter().filter(|(_, held)| held.perhaps());
        let whole = items.iter().filter(|(_, item)| item.is_whole());
        let names = sent.map(|(name, _)| name).chain(whole.map(|(name, _)| name));
        // Only the sent names are looked up: far more may be owed than one response has.
        for name in names {
            self.owed.remove(name);
        }
    }

    /// C-20: returns the aliases that the client asks for and that these resources have lost, or whose resources go: the client may
    /// have lost what it held under them.
    fn rename(&mut self, items: &BTreeMap<Name, Item>, removed: &BTreeSet<Name>) -> Vec<(Name, Held)> {
        let (aliases, owns): (Vec<Name>, Vec<Name>) = self.names.replaced_by(items).into_iter().unzip();
        self.cold.note_renamed(owns);
        let gone = self.names.aliases_of(removed);
        let lost = aliases.into_iter().chain(gone);
        lost.map(|alias| (alias, Held::Unknown)).collect()
    }
}
