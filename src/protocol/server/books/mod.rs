//! What one client was sent of one type, and all that changes with it.
//!
//! Owns the rows: nobody else writes them, so whoever changes a row also changes what must be looked at, and what of its rejections is
//! over. Does not know what is current.

use std::sync::Arc;

use crate::server::agenda::{Agenda, Walk};
use crate::server::flights::{Flight, Flights};
use crate::server::ledger::{Ledger, Row};
use crate::server::notes::Notes;
use crate::server::rejections::{Group, Rejections};
use xds::{Difference, Form, Item, Name, Objection, Resource, State, Version};

/// The books on one type of one stream.
///
/// Invariant: a name whose row has changed is on the agenda, unless the change is what was just written, read, or found to be nothing.
#[derive(Debug)]
pub(super) struct Books {
    ledger: Ledger,
    agenda: Agenda,
    rejections: Rejections,
    flights: Flights,
    notes: Notes,
    /// Whether all responses list everything: then what is rejected may be held back as one (B-18).
    lists_all: bool,
}

impl Books {
    pub(super) fn new(lists_all: bool) -> Self {
        Self {
            ledger: Ledger::default(),
            agenda: Agenda::default(),
            rejections: Rejections::default(),
            flights: Flights::default(),
            notes: Notes::default(),
            lists_all,
        }
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) const fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    pub(super) const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    pub(super) const fn flights(&self) -> &Flights {
        &self.flights
    }

    pub(super) const fn notes(&self) -> &Notes {
        &self.notes
    }

    pub(super) const fn notes_mut(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// These names must be looked at.
    pub(super) fn look(&mut self, names: impl IntoIterator<Item = Name>) {
        names.into_iter().for_each(|name| self.agenda.look(name));
    }

    /// All members of a collection must be looked at. `asks`: the client must be told again of what it may hold.
    pub(super) fn look_at_members(&mut self, of: Name, asks: bool) {
        self.agenda.sweep(Some(of), asks);
    }

    /// All rows must be looked at. `asks`: the client must be told again of what it may hold.
    pub(super) fn look_at_rows(&mut self, asks: bool) {
        if !self.ledger.is_shared() {
            self.agenda.sweep(None, asks);
        }
    }

    /// More is known of an alias.
    pub(super) fn wake(&mut self) {
        self.agenda.wake();
    }

    /// B-14, C-08, C-11: the client wants to be told of a name (again).
    pub(super) fn ask(&mut self, name: &Name) {
        let mut row = self.ledger.get(name).again();
        if matches!(row, Row::Asked) && self.flights.brings(name) {
            row = Row::Perhaps;
        }
        self.ledger.put(name, row);
        self.absolve(name);
        self.agenda.look(name.clone());
    }

    /// The client has given up a name and forgets it, unless it `keeps` it. What is on its way it may still take.
    pub(super) fn drop(&mut self, name: &Name, keeps: bool) {
        let stays = keeps || self.flights.brings(name);
        self.ledger.put(name, if stays { Row::Perhaps } else { Row::Nothing });
        self.absolve(name);
        self.notes.forget(name);
        if stays {
            self.agenda.look(name.clone());
        } else {
            self.agenda.pass(name);
        }
    }

    /// The client waits for what it has, or was told not to exist.
    pub(super) fn wait_again(&mut self, name: Name) {
        let row = self.ledger.get(&name).again();
        self.ledger.put(&name, row);
        self.agenda.look(name);
    }

    /// The client may hold anything under a name.
    pub(super) fn doubt(&mut self, name: &Name) {
        self.ledger.put(name, Row::Perhaps);
        self.agenda.look(name.clone());
    }

    /// The client says that it holds this version of a name.
    pub(super) fn bring(&mut self, name: Name, version: Version) {
        self.ledger.put(&name, Row::Brought(version.into()));
        self.agenda.look(name);
    }

    /// A resource is sent under a name.
    pub(super) fn sent(&mut self, name: &Name, resource: &Arc<Resource>) {
        self.ledger.put(name, Row::Sent(resource.clone()));
        // Until it has accepted that, it holds what it had when it rejected something.
        self.hold_back_no_more(name);
        self.notes.forget_error(name);
    }

    /// What a name stands for is sent under another one: the resource of an alias, a member of a collection.
    pub(super) fn answered(&mut self, name: &Name) {
        self.ledger.put(name, Row::Nothing);
    }

    /// The client is told that a name is gone.
    pub(super) fn gone(&mut self, name: &Name) {
        self.ledger.put(name, Row::Nothing);
        self.agenda.pass(name);
        self.absolve(name);
        self.notes.note_beat(name, None);
    }

    /// Nothing is due of a name, and its row is this from now on. Returns whether the name was listed.
    pub(super) fn settle(&mut self, name: &Name, row: Row) -> bool {
        self.ledger.put(name, row);
        self.absolve(name);
        self.notes.note_beat(name, None);
        self.agenda.pass(name)
    }

    /// The client has rejected this version of a name when it came alone. `again`: that was a second try.
    pub(super) fn refuse(&mut self, name: Name, version: Version, again: bool, objection: Arc<Objection>) {
        self.ledger.put(&name, Row::Refused(version, again));
        self.rejections.hold_back(name, objection);
    }

    /// What stood in the way of rejected resources may be gone: each is tried once more, once for each content.
    pub(super) fn try_again(&mut self) {
        let held_back: Vec<Name> = self.rejections.held_back().cloned().collect();
        for name in held_back {
            if let Row::Refused(version, false) = self.ledger.get(&name) {
                self.rejections.forget(&name);
                self.ledger.put(&name, Row::Perhaps);
                self.rejections.try_again(name.clone(), version);
                self.agenda.look(name);
            }
        }
    }

    /// Nothing is due of any listed name.
    pub(super) fn clear(&mut self) {
        self.agenda.clear();
    }

    /// Nothing is due of this name until something changes. Returns whether it was listed.
    pub(super) fn pass(&mut self, name: &Name) -> bool {
        self.agenda.pass(name)
    }

    /// The same, until more is known of an alias.
    pub(super) fn hide(&mut self, name: &Name) -> bool {
        self.agenda.wait(name)
    }

    /// A removal is due of this name. Returns whether it was listed to be looked at.
    pub(super) fn leave(&mut self, name: &Name) -> bool {
        self.agenda.leave(name)
    }

    /// A walk has stopped: the next one begins there.
    pub(super) fn stop(&mut self, walk: &Walk) {
        self.agenda.stop(walk);
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.agenda.begin();
    }

    /// Names were listed, and later those from `next` on must be. Returns whether it is over.
    pub(super) fn swept(&mut self, of: &Option<Name>, next: Option<Name>) -> bool {
        self.agenda.swept(of, next)
    }

    /// A response is sent, in which a group is tried, or none.
    pub(super) fn send(&mut self, flight: Flight) {
        self.flights.send(flight);
    }

    /// This group is tried in the response with this nonce.
    pub(super) fn begin_try(&mut self, nonce: u64, group: &Group) {
        self.rejections.begin(nonce, group);
    }

    /// The client answers the response with this nonce, if that is on its way. Returns the response, and whether a group was tried in it
    /// for the second time.
    #[inline]
    pub(super) fn answer(&mut self, nonce: u64, accepts: bool) -> Option<(Flight, bool)> {
        let flight = self.flights.settle(nonce)?;
        if accepts {
            // What is only listed beside the news, it accepted before.
            let news = flight.batch.items().iter().filter(|item| item.form != Form::Repeated);
            self.rejections.note_settled(news.map(Item::name));
        }
        let again = self.rejections.end(nonce, accepts);
        Some((flight, again.unwrap_or_default()))
    }

    /// The client has rejected something of these names; `news`: it holds what it had of them before.
    pub(super) fn note_rejected<'a>(&mut self, names: impl Iterator<Item = &'a Name>, news: bool) {
        self.rejections.note_rejected(names, news);
    }

    /// Adds groups of a rejected response. Returns all names that are to be held back, if there were too many tries.
    pub(super) fn try_parts(
        &mut self,
        groups: Vec<Vec<(Name, Version)>>,
        objection: &Arc<Objection>,
    ) -> Vec<(Name, Version)> {
        self.rejections.add(groups, objection)
    }

    /// Returns the next names that are tried together, if none of them is on its way.
    pub(super) fn next_group(&mut self) -> Option<Group> {
        self.rejections.pop(|name| self.flights.has(name))
    }

    /// Whether what is rejected is held back as one: the client takes no response that leaves anything out (B-18).
    pub(super) fn holds_back_as_one(&self) -> bool {
        self.lists_all && !self.notes.omits()
    }

    /// Nothing of a name is rejected any more.
    fn absolve(&mut self, name: &Name) {
        self.rejections.note_settled([name].into_iter());
        self.hold_back_no_more(name);
    }

    /// A name is not held back any more. B-18: others may have been held back with it, and this may have been the bad one: they are
    /// sent again.
    fn hold_back_no_more(&mut self, name: &Name) {
        if self.rejections.forget(name) && self.holds_back_as_one() {
            for other in self.rejections.take_held_back() {
                self.ledger.put(&other, Row::Perhaps);
                self.agenda.look_again(other);
            }
        }
    }

    /// The client asks for a name itself, or does not any more.
    pub(super) fn mark(&mut self, name: &Name, asked: bool) {
        self.ledger.mark(name, asked);
    }

    /// C-12: the client says that it held this table before its stream.
    pub(super) fn bring_table(&mut self, table: Arc<State>) {
        // B-34: a table that another client has as well takes nothing more.
        if Arc::strong_count(&table) == 1 {
            self.notes.note_version_table(table.entries().len());
        }
        self.ledger.doubt(table);
    }

    /// The client may hold any version of all that it was sent by a wildcard.
    pub(super) fn doubt_shared(&mut self, doubted: Arc<State>) {
        self.ledger.doubt(doubted);
        self.agenda.set_cursor(None);
        self.agenda.set_rest(None);
    }

    /// The client has forgotten its wildcard. If it `keeps` what that brought, this is in rows of its own from now on.
    pub(super) fn forget_shared(&mut self, keeps: bool) {
        let base = self.ledger.forget_shared().filter(|_| keeps);
        self.notes.forget_version_table();
        self.agenda.set_cursor(None);
        self.agenda.set_rest(None);
        for (name, known) in base.iter().flat_map(|base| base.entries()) {
            let row = Row::from(known);
            if row.perhaps() && !self.ledger.get(name).perhaps() {
                self.ledger.put(name, row);
            }
        }
    }

    /// The client was sent all of this, and nothing else. `rest` is what the state has beside that, behind the `cursor`.
    #[inline]
    pub(super) fn share(&mut self, state: Arc<State>, cursor: Option<Name>, rest: Option<Arc<Difference>>) {
        self.ledger.share(Some(state));
        self.agenda.set_cursor(cursor);
        self.agenda.set_rest(rest);
    }

    /// The client was sent all of the state.
    #[inline]
    pub(super) fn arrive(&mut self, state: Arc<State>) {
        self.share(state, None, None);
        self.notes.forget_version_table();
    }

    /// What is left of a difference is this, or must be found anew.
    pub(super) fn set_rest(&mut self, rest: Option<Arc<Difference>>) {
        self.agenda.set_rest(rest);
    }

    /// The next response begins behind this name.
    pub(super) fn set_cursor(&mut self, cursor: Option<Name>) {
        self.agenda.set_cursor(cursor);
    }

    /// At rest, the client shares the state's own map.
    pub(super) fn meet(&mut self, state: &Arc<State>, difference: &Difference) {
        let masked = self.ledger.meet(state, difference);
        self.notes.note_table_as_rows(masked.len());
        masked.into_iter().for_each(|name| self.agenda.look(name));
    }
}

#[cfg(test)]
mod tests;
