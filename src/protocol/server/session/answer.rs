//! The next response of a type. A partial answer has only what is new: delta of every type, and SotW of the types that are not full
//! state (B-18). A full state has the same news, and lists the rest.
//!
//! Owns the order in which things are sent, and what is left for later. Does not know what is due.

use super::draft::Draft;
use super::lens::Say;
use super::{Attempt, Step, Subscription};
use crate::rejections::Group;
use crate::server::waits::Wait;
use xds::{Answers, Dialect, Difference, Room, TypeSight};

impl Subscription {
    /// Returns the next step.
    pub(in crate::server) fn poll(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        // Nothing is sent if the client is subscribed to nothing; only resources that it still holds are removed.
        if self.wants_nothing() && self.books.agenda().is_empty() && !self.owes() {
            return Step::Idle;
        }
        // B-24: SotW has one response on its way.
        let sotw = self.reader.dialect() == Dialect::Sotw;
        let busy = !self.books.flights().is_empty()
            && (sotw || self.books.flights().is_full(attempt.settings.limits.window_bytes));
        if busy {
            return Step::held(self.survey_in(attempt.slot, attempt.answers).adds);
        }
        let plain = attempt.slot.wildcard().filter(|state| self.is_plain(state));
        if self.reader.full_state()
            && let Some(step) = self.hold_full(plain.is_some(), attempt)
        {
            return step;
        }
        match plain {
            Some(state) if !self.overtakes(state, attempt) => self.poll_shared(state, attempt),
            Some(_) | None => self.poll_own(attempt),
        }
    }

    /// Whether the client is owed an answer, even if it is subscribed to nothing.
    fn owes(&self) -> bool {
        self.want.hello() && !self.reader.full_state() || !self.want.long().is_empty()
    }

    /// Returns the next step of a client that is not like others.
    pub(super) fn poll_own(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let full = self.reader.full_state();
        if full {
            self.offer_changed(attempt.slot);
        }
        let difference = self.difference(attempt.slot, attempt.answers);
        let (difference, greets) = (difference.as_deref(), self.greets(attempt.slot));
        self.books.agenda_mut().forget_rest();
        if !self.sift(difference, attempt.slot) {
            return Step::Blocked;
        }
        let lists = full || self.reader.lists_all();
        let mut draft = Draft::new(self.reader.room(attempt.answers.chunk()));
        let trial = self.write_trial(&mut draft, attempt);
        // B-32: a name over the limit counts as one that does not exist.
        let long = self.want.take_long();
        long.into_iter().for_each(|name| draft.deny(name));
        let mut waits = trial.is_none() && self.write_due(&mut draft, difference, attempt);
        if trial.is_none() && (greets || !draft.is_empty()) && self.release_errors() {
            waits = self.write_due(&mut draft, difference, attempt);
        }
        self.write_removals(&mut draft, difference, attempt);
        let greets = greets && !self.is_short();
        if draft.is_empty() && !greets {
            return self.rest(waits, difference, attempt.slot);
        }
        if draft.covers() || greets || full {
            self.want.set_hello(false);
        }
        if full {
            self.meet(difference, attempt.slot);
        }
        if lists {
            self.list_held(&mut draft, trial.is_some(), attempt);
        }
        let content = draft.finish(self.reader.traits().kind, full);
        if let Some(group) = trial {
            let rejected = self.books.rejections().rejected_list(content.batch.sum());
            return match rejected.filter(|_| !greets) {
                Some(objection) => {
                    self.repeat(group, &objection);
                    self.poll_own(attempt)
                }
                None => self.send(content, Some(&group), attempt),
            };
        }
        self.send(content, None, attempt)
    }

    /// Writes the next part of what was rejected, if it can be tried now.
    fn write_trial(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) -> Option<Group> {
        while let Some(group) = self.books.next_group() {
            let mut all = Draft::new(Room::boundless());
            for name in &group.names {
                if let Some(say @ (Say::Put(_) | Say::Other(_) | Say::Older)) = self.lens(attempt.slot).say(name) {
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

    /// Writes what is due but removals, as far as there is room. Returns whether anything must wait until a response is answered.
    fn write_due(
        &mut self,
        draft: &mut Draft,
        difference: Option<&Difference>,
        attempt: &Attempt<'_, impl Answers>,
    ) -> bool {
        let ripe = self.removals_are_ripe(attempt) && self.removes(attempt.slot);
        let (mut waits, mut held) = (false, false);
        let mut walk = self.books.agenda().walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, attempt.slot) {
            if attempt.changes.is_some() && matches!(say, Say::Put(_)) && self.has(&name) {
                (waits, held) = (true, true);
                continue;
            }
            if self.is_busy(&name) {
                waits |= !matches!(say, Say::Remove | Say::Beat(_));
            } else if ripe && matches!(say, Say::Put(_) | Say::Other(_) | Say::Older) {
                waits = true;
            } else if !self.write(&name, say, draft, attempt) {
                break;
            }
        }
        if !self.turn.is_spent() {
            self.books.agenda_mut().set_cursor(draft.cursor());
        }
        self.waits.set(Wait::Endpoints, attempt.changes.filter(|_| held));
        waits
    }

    /// Nothing can be sent now.
    fn rest(&mut self, waits: bool, difference: Option<&Difference>, slot: TypeSight<'_>) -> Step {
        if waits || self.is_short() || self.books.rejections().tries() {
            return Step::Blocked;
        }
        if self.removes(slot) {
            return Step::Removals;
        }
        self.meet(difference, slot);
        Step::Idle
    }

    /// At rest, the client shares the state's own map.
    pub(super) fn meet(&mut self, difference: Option<&Difference>, slot: TypeSight<'_>) {
        self.books.agenda_mut().set_cursor(None);
        if let Some(difference) = difference
            && let Some(state) = slot.wildcard()
        {
            self.books.meet(state, difference);
        }
    }
}
