//! Partial answers to a wildcard that are the same for all clients at the same point.
//!
//! Owns the step from one shared map to the next. Knows nothing of names that were requested.

use std::sync::Arc;

use super::{Attempt, Step, Subscription};
use xds::{Answers, Batch, Difference, Part, State};

impl Subscription {
    /// Returns the next step of a client that is like all others at the same point.
    pub(super) fn poll_shared(&mut self, state: &Arc<State>, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        self.books.agenda_mut().clear();
        let Some(difference) = self.difference(attempt.slot, attempt.answers) else {
            return self.greet(attempt);
        };
        let removes = difference.removes() && state.certain() && !self.reader.forgets();
        // B-24: what is left of a difference is on its way in no response.
        if self.books.agenda().rest(state).is_none() && self.overlaps(&difference) {
            return match difference.adds() {
                true => Step::Blocked,
                false if removes => Step::Removals,
                false => Step::Idle,
            };
        }
        let (base, chunk) = (self.books.ledger().base().cloned(), attempt.answers.chunk());
        let ripe = removes && attempt.removals && self.removals_are_ripe(attempt);
        let part = match difference.additions(base.as_ref(), state, chunk).filter(|_| !ripe) {
            Some(part) => Some(part),
            None if removes && attempt.removals => difference.removals(base.as_ref(), state, chunk),
            None => None,
        };
        let Some(part) = part else {
            if removes {
                let greeting = self.greet(attempt);
                return if matches!(greeting, Step::Idle) {
                    Step::Removals
                } else {
                    greeting
                };
            }
            if !difference.removes() || self.reader.forgets() {
                self.arrive(state.clone(), None);
            } else {
                self.books.agenda_mut().set_rest(Some(difference));
            }
            return self.greet(attempt);
        };
        self.advance(part, state);
        self.books
            .notes_mut()
            .note_removals(removes && difference.adds() && !ripe, attempt.now);
        if !part.batch.items().is_empty() || self.greets(attempt.slot) {
            self.books.agenda_mut().set_hello(false);
        }
        let more = part.rest().is_some_and(|rest| rest.adds());
        let clusters = Self::endpoints(part.batch.items().iter().map(|item| &item.resource));
        self.send(part.batch.clone(), part.since, more, clusters, attempt)
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

    /// A part of a difference is sent.
    fn advance(&mut self, part: &Part, state: &Arc<State>) {
        let rest = part.rest().filter(|rest| rest.adds() || !self.reader.forgets());
        match rest {
            Some(rest) => {
                self.books.share(part.next.clone());
                self.books
                    .agenda_mut()
                    .set_cursor(part.cursor.clone().filter(|_| rest.adds()));
                self.books.agenda_mut().set_rest(Some(rest.clone()));
            }
            // K-19: a partial answer in SotW has no removals.
            None => self.arrive(state.clone(), None),
        }
    }

    /// The client was sent all of this state.
    pub(super) fn arrive(&mut self, state: Arc<State>, rest: Option<Arc<Difference>>) {
        self.books.share(state);
        self.books.notes_mut().forget_version_table();
        self.books.agenda_mut().set_cursor(None);
        self.books.agenda_mut().set_rest(rest);
    }

    /// B-20, C-17: the first answer is sent even if it is empty, once that is certain.
    fn greet(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        if !self.greets(attempt.slot) {
            return Step::Idle;
        }
        self.books.agenda_mut().set_hello(false);
        let batch = Arc::new(Batch::new(Vec::new(), Vec::new()));
        self.send(batch, None, false, Vec::new(), attempt)
    }
}
