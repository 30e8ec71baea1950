// SPDX-License-Identifier: Apache-2.0
//! Responses that are the same for all clients at the same point: those of a wildcard alone that have no rows of their own.
//!
//! What is due for them is the difference between two shared maps, so their responses are composed from that, once for all, and not from
//! rows: with rows, a first answer with 100,000 names takes four times as long in delta, and forty times as long as a full state (the test
//! `first_answers` prints it). Both ways fill the same draft, which has the rules for what is in it. Owns the step from one map to the
//! next. Knows nothing of names that were requested.

use std::sync::Arc;

use super::draft::{Content, Draft};
use super::{Attempt, Subscription};
use crate::server::flights::Before;
use crate::server::turn::Survey;
use xds::{Answers, Batch, Difference, Item, Name, Part, Portion, Spots, State, full_state};

impl Subscription {
    /// Writes what is sent next to all clients at the same point.
    pub(super) fn write_shared(
        &mut self,
        state: &Arc<State>,
        attempt: &Attempt<'_, impl Answers>,
    ) -> Result<Content, Survey> {
        self.books.clear();
        let Some(difference) = &attempt.difference else {
            return self.greeting(attempt).ok_or_else(Survey::default);
        };
        let (full, greets) = (self.reader.full_state(), attempt.greets);
        let due = self.due_as_others(difference, state);
        // B-24: what is left of a difference is on its way in no response.
        if self.books.agenda().rest(state).is_none() && self.overlaps(difference) {
            return Err(due);
        }
        let Survey { adds, removes } = due;
        let adds = adds && !(removes && self.removals_are_ripe(attempt)) || full && greets;
        let all = removes && self.removes_all(adds, attempt);
        if !adds && !all {
            if !difference.removes() || self.reader.forgets() {
                self.books.arrive(state.clone());
            }
            return self.greeting(attempt).ok_or(Survey { adds: false, removes });
        }
        let portion = match (full, all) {
            (true, true) => Portion::All,
            (true, false) => Portion::Kept,
            (false, true) => Portion::Removals,
            (false, false) => Portion::Additions,
        };
        let shared = self.books.ledger().base().cloned();
        let part = difference.part(portion, || self.compose(difference, state, portion, attempt));
        self.advance(part, state);
        self.note_waiting_removals(removes, adds, attempt);
        let batch = part.batch.clone().unwrap_or_else(|| attempt.answers.full(&part.next));
        Ok(Content {
            since: part.since,
            more: part.rest().is_some_and(|rest| rest.adds()),
            endpoints: part.endpoints.clone(),
            before: Before { shared, rows: None },
            answers: full || greets || !batch.items().is_empty(),
            ..batch.into()
        })
    }

    /// Composes a response for all clients at this point.
    fn compose(
        &self,
        difference: &Difference,
        state: &Arc<State>,
        portion: Portion,
        attempt: &Attempt<'_, impl Answers>,
    ) -> Part {
        let (base, full) = (self.books.ledger().base(), self.reader.full_state());
        let (kind, all) = (self.kind(), matches!(portion, Portion::All | Portion::Removals));
        let held = |name: &Name| base.and_then(|base| base.entries().get(name)?.resource());
        let mut draft = Draft::new(self.reader.room(attempt.answers.chunk()));
        let (mut changed, mut last) = (0, None);
        let due = difference.changed().filter(|_| portion != Portion::Removals);
        for resource in due {
            if !draft.count(kind, resource, held(resource.name())) {
                break;
            }
            changed += 1;
            last = Some(resource.name());
            if !full {
                draft.put(resource.name(), Item::plain(resource.clone()));
            }
        }
        let taken = if self.due_as_others(difference, state).removes {
            draft.addresses()
        } else {
            Spots::default()
        };
        let mut gone = Vec::new();
        for name in difference.removed() {
            let frees = held(name).is_some_and(|held| taken.are_of(held));
            if !(frees || all) {
                continue;
            }
            if !draft.remove(name, false, frees || full) {
                break;
            }
            last = if portion == Portion::Removals { Some(name) } else { last };
            gone.push(name.clone());
        }
        gone.sort_unstable();
        let (since, endpoints) = (draft.since(), draft.take_endpoints());
        if full {
            let listed = difference.listed(base, state, &gone);
            let late = draft.takers(listed.resources());
            let batch = (!late.is_empty()).then(|| Arc::new(full_state(&listed).with_last(late)));
            return Part::new(batch, since, endpoints, (listed, None), None);
        }
        let left = difference.after(base, state, changed, &gone);
        Part::new(Some(Arc::new(draft.batch(full))), since, endpoints, left, last.cloned())
    }

    /// Whether anything in the difference is on its way.
    fn overlaps(&self, difference: &Difference) -> bool {
        if self.books.flights().is_empty() {
            return false;
        }
        if difference.len() < self.books.flights().entries() {
            return difference.names().any(|name| self.books.flights().has(name));
        }
        let mut flying = self.books.flights().iter().map(|flight| &flight.batch);
        flying.any(|batch| {
            let items = batch.items().iter().map(|item| item.name());
            items.chain(batch.removed()).any(|name| difference.has(name))
        })
    }

    /// Whether something goes while it is on its way, and nothing else has to wait for its answer: an Envoy answers no clusters while one
    /// of them warms, and that one may be gone.
    pub(super) fn overtakes(&self, state: &State, attempt: &Attempt<'_, impl Answers>) -> bool {
        if self.books.flights().is_empty() || self.books.agenda().rest(state).is_some() {
            return false;
        }
        let Some(difference) = &attempt.difference else {
            return false;
        };
        let mut changed = difference.changed();
        difference.adds() && self.overlaps(difference) && !changed.any(|found| self.books.flights().has(found.name()))
    }

    /// A part of a difference is sent.
    fn advance(&mut self, part: &Part, state: &Arc<State>) {
        let rest = part.rest().filter(|rest| rest.adds() || !self.reader.forgets());
        match rest {
            Some(rest) => {
                let cursor = part.cursor.clone().filter(|_| rest.adds());
                self.books.share(part.next.clone(), cursor, Some(rest.clone()));
            }
            // K-19: a partial answer in SotW has no removals.
            None if self.reader.forgets() => self.books.arrive(state.clone()),
            None => self.books.arrive(part.next.clone()),
        }
    }

    /// B-20, C-17: the first answer is sent even if it is empty, once that is certain. B-14: a full state lists all that was sent.
    fn greeting(&self, attempt: &Attempt<'_, impl Answers>) -> Option<Content> {
        let base = self.books.ledger().base().filter(|_| self.reader.full_state());
        let batch = |base| match base {
            Some(base) => attempt.answers.full(base),
            None => Arc::new(Batch::new(Vec::new(), Vec::new())),
        };
        attempt.greets.then(|| Content {
            before: Before {
                shared: base.cloned(),
                rows: None,
            },
            ..batch(base).into()
        })
    }
}
