// SPDX-License-Identifier: Apache-2.0
//! The removals that go with a response.
//!
//! Owns when a removal may share a response with additions, and how long it waits for them. Does not know what waits in other types.

use super::draft::Draft;
use super::lens::Say;
use super::{Attempt, Subscription};
use crate::server::waits::Wait;
use xds::{Answers, Difference, GONE_MAX, Name, Spots};

impl Subscription {
    /// Writes the removals that go with this response.
    pub(super) fn write_removals(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) {
        let difference = attempt.difference.as_deref();
        let (all, full) = (self.removes_all(draft.adds(), attempt), self.reader.full_state());
        let agenda = self.books.agenda();
        let any = agenda.gone().next().is_some() || difference.is_some_and(Difference::removes);
        let taken = if any { draft.addresses() } else { Spots::default() };
        // The walk may not have come to a listener that is gone.
        let behind = difference.into_iter().flat_map(Difference::removed);
        let behind = behind.filter(|name| !all && self.frees(name, &taken));
        let listed = agenda.gone().filter(|name| all || self.frees(name, &taken));
        let max = if full { usize::MAX } else { GONE_MAX };
        let mut gone: Vec<Name> = listed.chain(behind).take(max).cloned().collect();
        gone.sort_unstable();
        gone.dedup();
        for name in gone {
            if self.is_busy(&name) || !matches!(self.lens(attempt.slot).say(&name), Some(Say::Remove)) {
                self.books.agenda_mut().look([name]);
                continue;
            }
            let frees = self.frees(&name, &taken);
            self.write_gone(&name, false, frees || full, draft, attempt.slot);
        }
        let left = self.books.agenda().gone().next().is_some();
        self.note_waiting_removals(left, draft.adds(), attempt);
    }

    /// Whether the client was sent a listener of this name with one of these addresses.
    fn frees(&self, name: &Name, taken: &Spots) -> bool {
        let row = self.books.ledger().get(name);
        row.sent().is_some_and(|held| taken.are_of(held))
    }

    /// C-26: whether all removals that are due go with the next response. They go when nothing is added, because a client applies the
    /// removals of a response that it rejects. D-03: a full state leaves out what other types do not need any more. Whatever this says, a
    /// listener that goes shares the response with one that takes its address, because the client applies removals first.
    pub(super) fn removes_all(&self, adds: bool, attempt: &Attempt<'_, impl Answers>) -> bool {
        if self.reader.full_state() {
            attempt.removals
        } else {
            attempt.removals && !adds && !self.is_short()
        }
    }

    /// Whether removals may go, and have waited for additions as long as they may.
    pub(super) fn removals_are_ripe(&self, attempt: &Attempt<'_, impl Answers>) -> bool {
        let since = self.waits.get(Wait::Removals);
        attempt.removals && since.is_some_and(|since| attempt.now >= since + attempt.settings.timers.order_gate)
    }

    /// Notes whether removals are `left` behind additions. Full states have both.
    pub(super) fn note_waiting_removals(&mut self, left: bool, adds: bool, attempt: &Attempt<'_, impl Answers>) {
        let waits = left && adds && !self.reader.full_state();
        let since = waits.then(|| self.waits.get(Wait::Removals).unwrap_or(attempt.now));
        self.waits.set(Wait::Removals, since);
    }
}
