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

/// What is due and not in the response.
#[derive(Debug, Default)]
struct Postponed {
    /// Names that may be removed.
    gone: Vec<Name>,
    /// Whether anything must wait until a response is answered.
    waits: bool,
    /// Whether names are left that were not looked at.
    short: bool,
}

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
        let mut found = Postponed::default();
        if trial.is_none() {
            found = self.write_due(&mut draft, difference.as_deref(), attempt);
            self.agenda.set_cursor(draft.cursor());
        }
        self.write_removals(&mut found, &mut draft, attempt);
        let greets = self.agenda.hello() && self.greets(attempt.slot) && !found.short;
        if draft.is_empty() && !greets {
            return self.rest(found, difference.as_deref(), attempt.slot);
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

    /// Writes what is due, as far as there is room. Removals are only found.
    fn write_due(
        &mut self,
        draft: &mut Draft,
        difference: Option<&Difference>,
        attempt: &Attempt<'_, impl Answers>,
    ) -> Postponed {
        let ripe = attempt.removals && self.rare.removals_are_ripe(attempt.bound, attempt.now);
        let found = self.write_some(!ripe, draft, difference, attempt);
        if ripe && found.gone.is_empty() && !found.short {
            // What was to be removed has returned: nothing is left to go before the rest.
            return self.write_some(true, draft, difference, attempt);
        }
        found
    }

    /// The same; `puts`: resources as well.
    fn write_some(
        &mut self,
        puts: bool,
        draft: &mut Draft,
        difference: Option<&Difference>,
        attempt: &Attempt<'_, impl Answers>,
    ) -> Postponed {
        let mut found = Postponed::default();
        let mut walk = self.agenda.walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, attempt.slot) {
            // A name is in one response at a time, and what was rejected is tried in its own.
            if self.flights.has(&name) || self.rejections.awaits(&name) {
                found.waits |= !matches!(say, Say::Remove | Say::Beat(_));
                continue;
            }
            match say {
                Say::Remove if found.gone.len() < GONE_MAX => found.gone.push(name),
                Say::Remove => {}
                Say::Put(_) | Say::Other(_) if !puts => found.waits = true,
                Say::Put(_) | Say::Other(_) | Say::Beat(_) | Say::Missing | Say::Error => {
                    if !self.write(&name, say, draft, attempt) {
                        break;
                    }
                }
            }
        }
        found.short = walk.is_short();
        found
    }

    /// C-26: removals go when nothing is added, because a client applies the removals of a response that it rejects. A listener that
    /// goes shares the response with one that takes its address: the client applies removals first.
    fn write_removals(&mut self, found: &mut Postponed, draft: &mut Draft, attempt: &Attempt<'_, impl Answers>) {
        let (mut go, mut wait) = (Vec::new(), std::mem::take(&mut found.gone));
        if !draft.adds() && attempt.removals && !found.short {
            std::mem::swap(&mut go, &mut wait);
        } else if self.reader.traits().kind == Kind::Lds && draft.adds() && !wait.is_empty() {
            let taken = Addresses::of(draft.resources());
            (go, wait) = wait.into_iter().partition(|name| self.gives(name, &taken));
        }
        for name in go {
            if !self.write(&name, Say::Remove, draft, attempt) {
                wait.push(name);
            }
        }
        self.rare.note_removals(draft.adds() && !wait.is_empty(), attempt.now);
        found.gone = wait;
    }

    /// Whether the client was sent a listener of this name with one of these addresses.
    pub(super) fn gives(&self, name: &Name, taken: &Addresses) -> bool {
        let row = self.ledger.get(name);
        row.whole().is_some_and(|held| taken.are_of(held))
    }

    /// Nothing can be sent now.
    fn rest(&mut self, found: Postponed, difference: Option<&Difference>, slot: TypeSight<'_>) -> Step {
        if found.waits || found.short || self.rejections.tries() {
            return Step::Blocked;
        }
        if !found.gone.is_empty() {
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
