//! Partial answers, which have only what is new: delta of every type, and SotW of the types that are not full state (B-18).
//!
//! Owns the order in which things are sent, and what is left for later. Knows nothing of full states.

use std::sync::Arc;
use std::time::Instant;

use super::draft::Draft;
use super::due::Say;
use super::{Attempt, Step, Subscription};
use crate::server::flights::Flight;
use crate::server::ledger::{Entry, Row};
use crate::server::rejections::Group;
use crate::server::response::Response;
use xds::{Addresses, Answers, Batch, Difference, Form, GONE_MAX, Kind, Name, Resource, Room, TypeSight};

impl Subscription {
    /// Returns the next step.
    pub(in crate::server) fn poll(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        // Nothing is sent if the client is subscribed to nothing; only resources that it still holds are removed.
        let owes = self.agenda.hello() && !self.reader.full_state() || self.rare.has_long();
        if self.wants_nothing() && self.agenda.is_empty() && !owes {
            return Step::Idle;
        }
        // B-24: SotW has one response on its way.
        let sotw = self.reader.dialect() == xds::Dialect::Sotw;
        let busy = !self.flights.is_empty() && (sotw || self.flights.is_full(attempt.window));
        if busy {
            return Step::held(self.is_pending(attempt.slot, attempt.answers));
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
    fn poll_own(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let difference = self.difference(attempt.slot, attempt.answers);
        self.agenda.set_rest(None);
        if !self.sift(difference.as_deref(), attempt.slot) {
            return Step::Blocked;
        }
        let all = self.reader.lists_all();
        let mut draft = Draft::new(if all {
            Room::boundless()
        } else {
            Room::new(attempt.answers.chunk())
        });
        self.rare
            .take_long()
            .into_iter()
            .for_each(|name| draft.put_missing(name));
        let trial = self.write_trial(&mut draft, attempt);
        let mut waits = false;
        if trial.is_none() {
            waits = self.write_due(&mut draft, difference.as_deref(), attempt);
            self.agenda.set_cursor(draft.cursor());
        }
        self.write_removals(&mut draft, attempt);
        let greets = self.agenda.hello() && self.greets(attempt.slot) && !self.agenda.is_short();
        if draft.is_empty() && !greets {
            return self.rest(waits, difference.as_deref(), attempt.slot);
        }
        if draft.covers() || greets {
            self.agenda.set_hello(false);
        }
        if all {
            self.list_all(&mut draft, trial.is_some(), attempt);
        }
        let (since, more) = (draft.since(), draft.has_more());
        let batch = Arc::new(draft.into_batch(self.reader.traits().kind == Kind::Vhds));
        if let Some(group) = &trial {
            self.rejections.begin(attempt.nonces.coming(), group);
        }
        self.send(batch, since, more, attempt)
    }

    /// Writes the next part of what was rejected, if it can be tried now.
    fn write_trial(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) -> Option<Group> {
        while let Some(group) = self.rejections.pop(|name| self.flights.has(name)) {
            let mut all = Draft::new(Room::boundless());
            let names: Vec<Name> = group.names().cloned().collect();
            for name in names {
                if let Some(say @ (Say::Put(_) | Say::Other(_))) = self.say(&name, attempt.slot) {
                    self.write(&name, say, &mut all, attempt);
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
        let ripe = attempt.removals && self.rare.removals_are_ripe(attempt.bound, attempt.now);
        let ripe = ripe && self.removes(attempt.slot);
        let mut waits = false;
        let mut walk = self.agenda.walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, attempt.slot) {
            if self.is_busy(&name) {
                waits |= !matches!(say, Say::Remove | Say::Beat(_));
            } else if ripe && matches!(say, Say::Put(_) | Say::Other(_)) {
                waits = true;
            } else if !self.write(&name, say, draft, attempt) {
                break;
            }
        }
        waits
    }

    /// C-26: removals go when nothing is added, because a client applies the removals of a response that it rejects. A listener that
    /// goes shares the response with one that takes its address: the client applies removals first.
    fn write_removals(&mut self, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) {
        let shares = self.reader.traits().kind == Kind::Lds && draft.adds();
        let taken = shares.then(|| Addresses::of(draft.resources()));
        if shares || !draft.adds() && attempt.removals && !self.agenda.is_short() {
            let gone: Vec<Name> = self.agenda.gone().take(GONE_MAX).cloned().collect();
            for name in gone {
                if self.is_busy(&name) || !matches!(self.say(&name, attempt.slot), Some(Say::Remove)) {
                    self.agenda.look(name);
                } else if taken.as_ref().is_none_or(|taken| self.gives(&name, taken)) {
                    self.write(&name, Say::Remove, draft, attempt);
                }
            }
        }
        let wait = draft.adds() && self.agenda.gone().next().is_some();
        self.rare.note_removals(wait, attempt.now);
    }

    /// Whether the client was sent a listener of this name with one of these addresses.
    pub(super) fn gives(&self, name: &Name, taken: &Addresses) -> bool {
        let row = self.ledger.get(name);
        row.whole().is_some_and(|held| taken.are_of(held))
    }

    /// Nothing can be sent now.
    fn rest(&mut self, waits: bool, difference: Option<&Difference>, slot: TypeSight<'_>) -> Step {
        if waits || self.agenda.is_short() || self.rejections.tries() {
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
        self.agenda.set_cursor(None);
        if let Some(difference) = difference
            && let Some(state) = slot.wildcard()
        {
            let masked = self.ledger.meet(state, difference);
            for name in masked {
                self.agenda.look(name);
            }
        }
    }

    /// B-18: adds all other secrets, as the client accepted them. Those that it has never accepted are left out only if it takes such
    /// a response.
    fn list_all(&mut self, draft: &mut Draft, trial: bool, attempt: &Attempt<'_, impl Answers>) {
        let asked: Vec<(Name, Row)> = self
            .ledger
            .rows("")
            .map(|entry: Entry<'_>| (entry.name().clone(), entry.row()))
            .collect();
        let covered = self.ledger.base().into_iter().flat_map(|base| base.resources());
        let covered = covered.filter(|held| self.ledger.own(held.name().as_str()).is_none());
        let covered: Vec<(Name, Row)> = covered
            .map(|held| (held.name().clone(), Row::Sent(held.clone())))
            .collect();
        for (name, row) in asked.into_iter().chain(covered) {
            if draft.has(&name) || !self.is_wanted(&name) {
                continue;
            }
            let accepted = row.whole().or_else(|| self.rare.accepted(&name)).cloned();
            if let Some(accepted) = accepted {
                let item = self.reader.item(&name, &accepted, attempt.slot, attempt.now);
                draft.repeat(&name, item);
            } else if !self.rare.omits()
                && !trial
                && let super::Look::Put(current) = self.lens(attempt.slot).look(&name, &row)
            {
                let current = current.clone();
                self.write(&name, Say::Put(&current), draft, attempt);
            }
        }
    }

    /// Sends a partial answer.
    pub(super) fn send(
        &mut self,
        batch: Arc<Batch>,
        since: Option<Instant>,
        more: bool,
        attempt: &mut Attempt<'_, impl Answers>,
    ) -> Step {
        // Heartbeats and repetitions change nothing at the client.
        let cds = self.reader.traits().kind == Kind::Cds;
        let items = batch.items().iter();
        let news = items.filter(|item| cds && !matches!(item.form, Form::Heartbeat | Form::Repeated));
        let clusters = Self::endpoints(news.map(|item| &item.resource));
        self.send_with(batch, since, more, clusters, attempt)
    }

    /// Sends a response to a client that waits for these endpoints afterwards.
    pub(super) fn send_with(
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
        let news = since.filter(|since| self.asked.is_news(*since));
        self.flights.send(Flight::new(nonce, batch.clone(), news, attempt.now));
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
