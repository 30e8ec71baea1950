// SPDX-License-Identifier: Apache-2.0
//! The next response of a type. A partial answer has only what is new: delta of every type, and SotW of the types that are not full
//! state (B-18). A full state has the same news, and lists the rest.
//!
//! Owns the order in which things are sent, what is left for later, and when a removal may share a response with additions. Does not know
//! what is due.

use super::draft::{Content, Draft};
use super::lens::Say;
use super::{Attempt, Composed, Subscription};
use crate::server::turn::Survey;
use crate::server::waits::Wait;
use xds::{Answers, Dialect, Difference, GONE_MAX, Name, Room, Spots};

impl Subscription {
    /// Returns the next response, or what must wait.
    pub(in crate::server) fn poll(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Result<Composed, Survey> {
        // B-24: SotW has one response on its way.
        let sotw = self.reader.dialect() == Dialect::Sotw;
        let busy = !self.books.flights().is_empty()
            && (sotw || self.books.flights().is_full(attempt.settings.limits.window_bytes));
        if busy {
            return Err(self.survey_in(attempt.slot, attempt.answers).without_removals());
        }
        if self.reader.full_state()
            && let Some(held) = self.hold_wildcard(attempt)
        {
            return Err(held);
        }
        attempt.greets = self.greets(attempt.slot);
        attempt.difference = self.difference(attempt.slot, attempt.answers);
        let content = match attempt.slot.wildcard().filter(|state| self.is_plain(state)) {
            Some(state) if !self.overtakes(state, attempt) => self.write_shared(state, attempt),
            Some(_) | None => self.write_own(attempt),
        }?;
        Ok(self.send(content, attempt))
    }

    /// Writes what is sent next to a client that is not like others.
    fn write_own(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Result<Content, Survey> {
        let full = self.reader.full_state();
        self.books.agenda_mut().forget_rest();
        if !self.sift(attempt.difference.as_deref(), attempt.slot) {
            return Err(Survey::ADDS);
        }
        if full {
            if let Some(held) = self.hold_names(attempt) {
                return Err(held);
            }
            self.offer_changed(attempt.slot);
        }
        let mut draft = Draft::new(self.reader.room(attempt.answers.chunk()));
        let tried = self.write_trial(&mut draft, attempt);
        // B-32: a name over the limit counts as one that does not exist.
        self.want.take_long().into_iter().for_each(|name| draft.deny(name));
        if tried.is_none() {
            self.write_due(&mut draft, attempt);
            if (attempt.greets || !draft.is_empty()) && self.release_errors() {
                self.write_due(&mut draft, attempt);
            }
        }
        self.write_removals(&mut draft, attempt);
        let greets = attempt.greets && !self.is_short();
        if draft.is_empty() && !greets {
            return Err(self.rest(attempt));
        }
        let answers = greets || full || draft.covers();
        if full {
            self.meet(attempt);
        }
        if full || self.reader.lists_all() {
            self.list_held(&mut draft, tried.is_some(), attempt);
        }
        let content = draft.finish(self.kind(), full);
        let is_tried = tried.is_some();
        if let Some(group) = tried.filter(|_| !greets)
            && let Some(objection) = self.books.rejections().rejected_list(content.batch.sum())
        {
            self.repeat(group, &objection);
            (attempt.greets, attempt.difference) = (false, None);
            return self.write_own(attempt);
        }
        Ok(Content {
            answers,
            tried: is_tried,
            ..content
        })
    }

    /// Writes the next part of what was rejected, if it can be tried now.
    fn write_trial(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) -> Option<Vec<Name>> {
        while let Some(group) = self.books.next_group() {
            let mut all = Draft::new(Room::boundless());
            for name in &group {
                if let Some(say) = self.lens(attempt.slot).say(name).filter(|say| say.brings()) {
                    self.write(name, say, &mut all, attempt);
                }
            }
            if all.adds() {
                *draft = all;
                return Some(group);
            }
        }
        None
    }

    /// Writes what is due but removals, as far as there is room.
    fn write_due(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) {
        let difference = attempt.difference.as_deref();
        let ripe = self.removals_are_ripe(attempt) && self.removes(attempt.slot);
        let mut held = false;
        let mut walk = self.books.agenda().walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, attempt.slot) {
            if attempt.changes.is_some() && matches!(say, Say::Put(_)) && self.has(&name) {
                held = true;
                continue;
            }
            // What waits until a response is answered, or the removals are sent, is passed over.
            let waits = self.is_busy(&name) || ripe && say.brings();
            if !waits && !self.write(&name, say, draft, attempt) {
                break;
            }
        }
        if !self.turn.is_spent() {
            self.books.agenda_mut().set_cursor(draft.cursor());
        }
        if held {
            self.waits.set(Wait::Again, attempt.changes);
        }
    }

    /// Nothing can be sent now. Returns what waits.
    fn rest(&mut self, attempt: &Attempt<'_, impl Answers>) -> Survey {
        let survey = self.survey_in(attempt.slot, attempt.answers);
        if !survey.is_due() {
            self.meet(attempt);
        }
        survey
    }

    /// At rest, the client shares the state's own map.
    fn meet(&mut self, attempt: &Attempt<'_, impl Answers>) {
        self.books.agenda_mut().set_cursor(None);
        if let Some(difference) = &attempt.difference
            && let Some(state) = attempt.slot.wildcard()
        {
            self.books.meet(state, difference);
        }
    }

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
