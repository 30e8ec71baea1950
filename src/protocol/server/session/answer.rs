//! The next response of a type. A partial answer has only what is new: delta of every type, and SotW of the types that are not full
//! state (B-18). A full state has the same news, and lists the rest.
//!
//! Owns the order in which things are sent, and what is left for later. Does not know what is due.

use std::sync::Arc;
use std::time::Instant;

use super::draft::Draft;
use super::lens::Say;
use super::{Attempt, Step, Subscription};
use crate::server::flights::Flight;
use crate::server::rejections::Group;
use crate::server::response::Response;
use xds::{Answers, Batch, Difference, GONE_MAX, Name, Room, Spots, TypeSight};

impl Subscription {
    /// Returns the next step.
    pub(in crate::server) fn poll(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        // Nothing is sent if the client is subscribed to nothing; only resources that it still holds are removed.
        let owes = self.want.hello() && !self.reader.full_state() || !self.books.notes().long().is_empty();
        if self.wants_nothing() && self.books.agenda().is_empty() && !owes {
            return Step::Idle;
        }
        // B-24: SotW has one response on its way.
        let sotw = self.reader.dialect() == xds::Dialect::Sotw;
        let busy = !self.books.flights().is_empty() && (sotw || self.books.flights().is_full(attempt.window));
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
            Some(state) => self.poll_shared(state, attempt),
            None => self.poll_own(attempt),
        }
    }

    /// Returns the next step of a client that is not like others.
    pub(super) fn poll_own(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let difference = self.difference(attempt.slot, attempt.answers);
        let difference = difference.as_deref();
        self.books.set_rest(None);
        if !self.sift(difference, attempt.slot) {
            return Step::Blocked;
        }
        let full = self.reader.full_state();
        let lists = full || self.reader.lists_all();
        let mut draft = Draft::new(if lists {
            Room::boundless()
        } else {
            Room::new(attempt.answers.chunk())
        });
        let trial = self.write_trial(&mut draft, attempt);
        // B-32: a name over the limit counts as one that does not exist.
        let long = self.books.notes_mut().take_long();
        long.into_iter().for_each(|name| draft.deny(name));
        let waits = trial.is_none() && self.write_due(&mut draft, difference, attempt);
        self.write_removals(&mut draft, difference, attempt);
        let greets = self.greets(attempt.slot) && !self.is_short();
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
        if let Some(group) = &trial {
            self.books.begin_try(attempt.nonces.coming(), group);
        }
        let (batch, since, more, endpoints) = draft.finish(self.reader.traits().kind, full);
        self.send(batch, since, more, endpoints, attempt)
    }

    /// Writes the next part of what was rejected, if it can be tried now.
    fn write_trial(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) -> Option<Group> {
        while let Some(group) = self.books.next_group() {
            let mut all = Draft::new(Room::boundless());
            for name in &group.names {
                if let Some(say @ (Say::Put(_) | Say::Other(_))) = self.lens(attempt.slot).say(name) {
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
            } else if ripe && matches!(say, Say::Put(_) | Say::Other(_)) {
                waits = true;
            } else if !self.write(&name, say, draft, attempt) {
                break;
            }
        }
        if !self.turn.is_spent() {
            self.books.set_cursor(draft.cursor());
        }
        self.books.notes_mut().note_endpoints(attempt.changes.filter(|_| held));
        waits
    }

    /// Writes the removals that go with this response.
    fn write_removals(
        &mut self,
        draft: &mut Draft,
        difference: Option<&Difference>,
        attempt: &Attempt<'_, impl Answers>,
    ) {
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
                self.books.look([name]);
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
    /// removals of a response that it rejects. D-03: a full state leaves out what other types do not need any more, and what the client
    /// has rejected is not listed again for their sake. Whatever this says, a listener that goes shares the response with one that takes
    /// its address, because the client applies removals first.
    pub(super) fn removes_all(&self, adds: bool, attempt: &Attempt<'_, impl Answers>) -> bool {
        if self.reader.full_state() {
            attempt.removals || (adds || self.want.hello()) && self.books.notes().refused().is_some()
        } else {
            attempt.removals && !adds && !self.is_short()
        }
    }

    /// Whether removals may go, and have waited for additions as long as they may.
    pub(super) fn removals_are_ripe(&self, attempt: &Attempt<'_, impl Answers>) -> bool {
        let since = self.books.notes().removals_wait_since();
        attempt.removals && since.is_some_and(|since| attempt.now >= since + attempt.bound)
    }

    /// Notes whether removals are `left` behind additions. Full states have both.
    pub(super) fn note_waiting_removals(&mut self, left: bool, adds: bool, attempt: &Attempt<'_, impl Answers>) {
        let waits = left && adds && !self.reader.full_state();
        self.books.notes_mut().note_removals(waits, attempt.now);
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
        self.books.set_cursor(None);
        if let Some(difference) = difference
            && let Some(state) = slot.wildcard()
        {
            self.books.meet(state, difference);
        }
    }

    /// Sends a response to a client that waits for these endpoints afterwards. K-13: it may have none of the changes that it rejected.
    pub(super) fn send(
        &mut self,
        batch: Arc<Batch>,
        since: Option<Instant>,
        more: bool,
        mut endpoints: Vec<Name>,
        attempt: &mut Attempt<'_, impl Answers>,
    ) -> Step {
        if self.books.notes().refused().is_some() {
            let all = batch.items().iter().filter_map(|item| item.resource.endpoints());
            endpoints = all.cloned().collect();
        }
        let nonce = attempt.nonces.next();
        let asked = self.asked.last();
        self.asked.answered(attempt.now);
        let news = since.is_some_and(|since| self.asked.is_news(since));
        self.books.send(Flight {
            nonce,
            batch: batch.clone(),
            since,
            news,
            sent: attempt.now,
        });
        let response = Response {
            type_url: self.reader.type_url().clone(),
            dialect: self.reader.dialect(),
            nonce: attempt.nonces.text(nonce, more),
            version: batch.sum(),
            batch,
            since: since.map(|since| since.max(asked)),
        };
        Step::Send(Box::new(response), endpoints)
    }
}
