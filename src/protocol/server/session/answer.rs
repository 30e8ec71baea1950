//! The next response of a type. A partial answer has only what is new: delta of every type, and SotW of the types that are not full
//! state (B-18). A full state has the same news, and lists the rest.
//!
//! Owns the order in which things are sent, and what is left for later. Does not know what is due.

use std::sync::Arc;
use std::time::Instant;

use super::draft::Draft;
use super::verdict::Say;
use super::{Attempt, Step, Subscription};
use crate::server::flights::Flight;
use crate::server::rejections::Group;
use crate::server::response::Response;
use xds::{Answers, Batch, Difference, GONE_MAX, Kind, Name, Resource, Room, Spots, TypeSight};

impl Subscription {
    /// Returns the next step.
    pub(in crate::server) fn poll(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        // Nothing is sent if the client is subscribed to nothing; only resources that it still holds are removed.
        let owes = self.books.agenda().hello() && !self.reader.full_state() || !self.books.notes().long().is_empty();
        if self.wants_nothing() && self.books.agenda().is_empty() && !owes {
            return Step::Idle;
        }
        // B-24: SotW has one response on its way.
        let sotw = self.reader.dialect() == xds::Dialect::Sotw;
        let busy = !self.books.flights().is_empty() && (sotw || self.books.flights().is_full(attempt.window));
        if busy {
            return Step::held(self.survey_in(attempt.slot, attempt.answers).adds);
        }
        if self.reader.full_state() {
            return self.poll_full(attempt);
        }
        match attempt.slot.wildcard().filter(|state| self.is_plain(state)) {
            Some(state) => self.poll_shared(state, attempt),
            None => self.poll_own(attempt),
        }
    }

    /// Returns the next step of a client that is not like others.
    pub(super) fn poll_own(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let difference = self.difference(attempt.slot, attempt.answers);
        let difference = difference.as_deref();
        self.books.agenda_mut().set_rest(None);
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
        self.write_removals(&mut draft, attempt);
        let greets = self.greets(attempt.slot) && !self.books.agenda().is_short();
        if draft.is_empty() && !greets {
            return self.rest(waits, difference, attempt.slot);
        }
        if draft.covers() || greets || full {
            self.books.agenda_mut().set_hello(false);
        }
        if full {
            self.meet(difference, attempt.slot);
        }
        if lists {
            self.list_held(&mut draft, trial.is_some(), attempt);
        }
        if let Some(group) = &trial {
            self.books.rejections_mut().begin(attempt.nonces.coming(), group);
        }
        let (batch, since, more, endpoints) = draft.finish(self.reader.traits().kind, full);
        self.send(batch, since, more, endpoints, attempt)
    }

    /// Writes the next part of what was rejected, if it can be tried now.
    fn write_trial(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) -> Option<Group> {
        while let Some(group) = self.books.next_group() {
            let mut all = Draft::new(Room::boundless());
            for name in &group.names {
                if let Some(say @ (Say::Put(_) | Say::Other(_))) = self.say(name, attempt.slot) {
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
        let ripe = attempt.removals && self.removals_are_ripe(attempt) && self.removes(attempt.slot);
        let mut waits = false;
        let mut walk = self.books.agenda().walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, attempt.slot) {
            if self.is_busy(&name) {
                waits |= !matches!(say, Say::Remove | Say::Beat(_));
            } else if ripe && matches!(say, Say::Put(_) | Say::Other(_)) {
                waits = true;
            } else if !self.write(&name, say, draft, attempt) {
                break;
            }
        }
        if !walk.is_short() {
            self.books.agenda_mut().set_cursor(draft.cursor());
        }
        waits
    }

    /// C-26: removals go when nothing is added, because a client applies the removals of a response that it rejects; a full state leaves
    /// out what goes beside what it adds. A listener that goes shares the response with one that takes its address: the client applies
    /// removals first.
    fn write_removals(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) {
        let full = self.reader.full_state();
        let all = if full {
            self.may_remove(attempt.removals)
        } else {
            attempt.removals && !draft.adds() && !self.books.agenda().is_short()
        };
        let shares = !all && draft.adds() && self.reader.traits().kind == Kind::Lds;
        let taken = shares.then(|| draft.addresses());
        if all || shares {
            let max = if full { usize::MAX } else { GONE_MAX };
            let gone: Vec<Name> = self.books.agenda().gone().take(max).cloned().collect();
            for name in gone {
                if self.is_busy(&name) || !matches!(self.say(&name, attempt.slot), Some(Say::Remove)) {
                    self.books.agenda_mut().look(name);
                } else if taken.as_ref().is_none_or(|taken| self.gives(&name, taken)) {
                    self.write(&name, Say::Remove, draft, attempt);
                }
            }
        }
        let wait = !full && draft.adds() && self.books.agenda().gone().next().is_some();
        self.books.notes_mut().note_removals(wait, attempt.now);
    }

    /// Whether removals have waited for additions as long as they may.
    pub(super) fn removals_are_ripe(&self, attempt: &Attempt<'_, impl Answers>) -> bool {
        let since = self.books.notes().removals_wait_since();
        since.is_some_and(|since| attempt.now >= since + attempt.bound)
    }

    /// Whether the client was sent a listener of this name with one of these addresses.
    pub(super) fn gives(&self, name: &Name, taken: &Spots) -> bool {
        let row = self.books.ledger().get(name);
        row.whole().is_some_and(|held| taken.are_of(held))
    }

    /// Nothing can be sent now.
    fn rest(&mut self, waits: bool, difference: Option<&Difference>, slot: TypeSight<'_>) -> Step {
        if waits || self.books.agenda().is_short() || self.books.rejections().tries() {
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

    /// Sends a response to a client that waits for these endpoints afterwards.
    pub(super) fn send(
        &mut self,
        batch: Arc<Batch>,
        since: Option<Instant>,
        more: bool,
        clusters: Vec<Name>,
        attempt: &mut Attempt<'_, impl Answers>,
    ) -> Step {
        let nonce = attempt.nonces.next();
        let asked = self.asked.last();
        self.asked.answered(attempt.now);
        let news = since.is_some_and(|since| self.asked.is_news(since));
        self.books.flights_mut().send(Flight {
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
        Step::Send(Box::new(response), clusters)
    }

    /// Returns the endpoints that these clusters take.
    pub(super) fn endpoints<'a>(resources: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<Name> {
        resources.filter_map(|resource| resource.endpoints().cloned()).collect()
    }
}
