//! What one client was sent of one type, and all that changes with it.
//!
//! Owns the rows: nobody else writes them, so whoever changes a row also changes what must be looked at, and what of its rejections is
//! over. Does not know what is current.

use std::sync::Arc;

use crate::server::agenda::Agenda;
use crate::server::flights::Flights;
use crate::server::ledger::{Ledger, Row};
use crate::server::notes::Notes;
use crate::server::rejections::{Group, Rejections};
use xds::{Difference, Name, Objection, Resource, State, Version};

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

    pub(super) const fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    pub(super) const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    pub(super) const fn rejections_mut(&mut self) -> &mut Rejections {
        &mut self.rejections
    }

    pub(super) const fn flights(&self) -> &Flights {
        &self.flights
    }

    pub(super) const fn flights_mut(&mut self) -> &mut Flights {
        &mut self.flights
    }

    pub(super) const fn notes(&self) -> &Notes {
        &self.notes
    }

    pub(super) const fn notes_mut(&mut self) -> &mut Notes {
        &mut self.notes
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
                self.agenda.look(other);
                self.agenda.set_short();
            }
        }
    }

    /// The client asks for a name itself, or does not any more.
    pub(super) fn mark(&mut self, name: &Name, asked: bool) {
        self.ledger.mark(name, asked);
    }

    /// The client may hold any version of all that it was sent by a wildcard.
    pub(super) fn doubt_shared(&mut self, doubted: Arc<State>) {
        self.ledger.doubt(doubted);
    }

    /// The client has forgotten its wildcard. If it `keeps` what that brought, this is in rows of its own from now on.
    pub(super) fn forget_shared(&mut self, keeps: bool) {
        let base = self.ledger.forget_shared().filter(|_| keeps);
        self.notes.forget_version_table();
        for (name, known) in base.iter().flat_map(|base| base.entries()) {
            let row = Row::from(known);
            if row.perhaps() && !self.ledger.get(name).perhaps() {
                self.ledger.put(name, row);
            }
        }
    }

    /// The client was sent all of this, and nothing else.
    pub(super) fn share(&mut self, state: Arc<State>) {
        self.ledger.share(Some(state));
    }

    /// At rest, the client shares the state's own map.
    pub(super) fn meet(&mut self, state: &Arc<State>, difference: &Difference) {
        let masked = self.ledger.meet(state, difference);
        self.notes.note_table_as_rows(masked.len());
        masked.into_iter().for_each(|name| self.agenda.look(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{ResourceParts, TypeUrl};

    fn books(lists_all: bool, names: &[&Name]) -> Books {
        let mut books = Books::new(lists_all);
        let objection = Arc::new(Objection::new(13, "bad", now()));
        for name in names {
            books.mark(name, true);
            books.refuse((*name).clone(), Version::EMPTY, false, objection.clone());
            books.agenda_mut().pass(name);
        }
        books
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn now() -> std::time::Instant {
        std::time::Instant::now()
    }

    fn listed(books: &Books) -> Vec<Name> {
        books.agenda().names().cloned().collect()
    }

    /// B-22: whatever ends the rejection of a name ends it in all books, and whoever must be told of a name is looked at.
    #[test]
    fn a_row_changes_with_all_that_belongs_to_it() {
        let name = Name::from("a");
        let parts = ResourceParts {
            type_url: &TypeUrl::new("t"),
            name: name.clone(),
            aliases: Vec::new(),
            passed_on: &[],
            body: &[],
            endpoints: None,
            received: now(),
        };
        let resource = Arc::new(Resource::new(parts, 0));
        type Verb = fn(&mut Books, &Name, &Arc<Resource>);
        let verbs: [(&str, Verb, bool, bool); 7] = [
            ("ask", |books, name, _| books.ask(name), false, true),
            ("drop", |books, name, _| books.drop(name, false), false, false),
            ("keep", |books, name, _| books.drop(name, true), false, true),
            ("sent", |books, name, resource| books.sent(name, resource), false, false),
            ("gone", |books, name, _| books.gone(name), false, false),
            (
                "settle",
                |books, name, _| _ = books.settle(name, Row::Nothing),
                false,
                false,
            ),
            ("doubt", |books, name, _| books.doubt(name), true, true),
        ];
        for (verb, act, is_held_back, is_listed) in verbs {
            let mut books = books(false, &[&name]);
            act(&mut books, &name, &resource);
            assert_eq!(
                books.rejections().held_back().any(|held| *held == name),
                is_held_back,
                "{verb}"
            );
            assert_eq!(listed(&books) == [name.clone()], is_listed, "{verb}");
        }
    }

    /// B-18: what was held back as one is sent again with any of it.
    #[test]
    fn secrets_are_held_back_as_one() {
        let (name, other) = (Name::from("a"), Name::from("b"));
        for (lists_all, expected) in [(true, vec![other.clone()]), (false, Vec::new())] {
            let mut books = books(lists_all, &[&name, &other]);
            books.gone(&name);
            assert_eq!(listed(&books), expected);
            assert_eq!(matches!(books.ledger().get(&other), Row::Perhaps), lists_all);
        }
    }
}
