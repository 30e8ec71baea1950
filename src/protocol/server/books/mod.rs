// SPDX-License-Identifier: Apache-2.0
//! What one client was sent of one type, and all that changes with it.
//!
//! Owns the rows: nobody else writes them, so whoever changes a row also changes what must be looked at, and what of its rejections is
//! over. Does not know what is current.

mod agenda;
mod answers;
mod base;
mod marks;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::rejections::Rejections;
use crate::server::flights::Flights;
use crate::server::ledger::{Entry, Ledger, Row};
pub(super) use agenda::{Agenda, AgendaWalk};
use marks::NameMarks;
use xds::{Name, Resource, ResourceError, Version};

/// The books on one type of one stream.
///
/// Invariant: a name whose row has changed is on the agenda, unless the change is what was just written, read, or found to be nothing.
#[derive(Debug, Default)]
pub(super) struct Books {
    ledger: Ledger,
    agenda: Agenda,
    rejections: Rejections,
    flights: Flights,
    marks: NameMarks,
    /// Whether what is rejected is held back as one: all responses list everything, and the client has accepted none that left out a secret
    /// which it asks for (B-18).
    as_one: bool,
}

/// What becomes of a name that was looked at, if nothing is sent of it now.
#[derive(Debug)]
pub(super) enum NameOutcome {
    /// Nothing is due of it until something changes.
    Quiet,
    /// The same, and its row is this from now on.
    As(Row),
    /// The same until more is known of an alias (C-20), or the stream was sent something else than an error (G-18).
    Hidden,
    /// A removal is due, which goes with others.
    Gone,
}

/// The next part of the names that must all be looked at.
#[derive(Debug)]
pub(super) struct Swept {
    /// The collection whose members they are; `None`: they are rows.
    pub(super) of: Option<Name>,
    pub(super) names: Vec<Name>,
    /// Whether the client must be told again of what it may hold.
    pub(super) asks: bool,
    /// Whether none is left.
    pub(super) ends: bool,
}

impl Books {
    /// `as_one`: all responses list everything.
    pub(super) fn new(as_one: bool) -> Self {
        Self {
            as_one,
            ..Self::default()
        }
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) const fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    /// Returns the same, to which names can be added.
    pub(super) const fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    pub(super) const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    /// Returns the same. What changes there changes no row.
    pub(super) const fn rejections_mut(&mut self) -> &mut Rejections {
        &mut self.rejections
    }

    pub(super) const fn flights(&self) -> &Flights {
        &self.flights
    }

    pub(super) const fn marks(&self) -> &NameMarks {
        &self.marks
    }

    /// All rows must be looked at. `asks`: the client must be told again of what it may hold.
    pub(super) fn look_at_rows(&mut self, asks: bool) {
        if !self.ledger.own().is_empty() {
            self.agenda.sweep(None, asks);
        }
    }

    /// Returns the next `max` names of which all must be looked at, if there are any: rows, or members of a collection. `members` returns
    /// so many known members of a collection, from the first one that is not less than a text.
    pub(super) fn sweep(&mut self, max: usize, members: impl FnOnce(&Name, &str, usize) -> Vec<Name>) -> Option<Swept> {
        let (of, sweep) = self.agenda.next_sweep()?;
        let from = sweep.from.as_ref().map_or("", Name::as_str);
        let mut names: Vec<Name> = match &of {
            None => self
                .ledger
                .own()
                .from(from)
                .map(Entry::name)
                .take(max + 1)
                .cloned()
                .collect(),
            Some(all) => {
                let held = self.ledger.within(all, from).map(Entry::name).take(max + 1).cloned();
                let names: BTreeSet<Name> = held.chain(members(all, from, max + 1)).collect();
                names.into_iter().take(max + 1).collect()
            }
        };
        let next = if names.len() > max { names.pop() } else { None };
        let ends = self.agenda.swept(&of, next);
        Some(Swept {
            of,
            names,
            asks: sweep.asks,
            ends,
        })
    }

    /// The client asks for a name itself from now on, and wants to be told of it.
    pub(super) fn begin(&mut self, name: &Name) {
        self.ledger.mark(name, true);
        self.ask(name);
    }

    /// The client does not ask for a name itself any more.
    pub(super) fn end(&mut self, name: &Name) {
        self.ledger.mark(name, false);
        self.marks.forget_error(name);
    }

    /// B-14, C-08, C-11: the client wants to be told of a name (again).
    pub(super) fn ask(&mut self, name: &Name) {
        let mut row = self.ledger.get(name).again();
        if matches!(row, Row::Asked) && self.flights.brings(name) {
            row = Row::Perhaps;
        }
        self.ledger.put(name, row);
        self.free(name);
        self.agenda.look([name.clone()]);
    }

    /// The client has given up a name and forgets it, unless it `keeps` it. What is on its way it may still take.
    pub(super) fn drop(&mut self, name: &Name, keeps: bool) {
        let stays = keeps || self.flights.brings(name);
        self.ledger.put(name, if stays { Row::Perhaps } else { Row::Nothing });
        self.absolve(name);
        self.marks.forget(name);
        if stays {
            self.agenda.look([name.clone()]);
        } else {
            self.agenda.pass(name);
        }
    }

    /// The client may hold anything under a name.
    pub(super) fn doubt(&mut self, name: &Name) {
        self.ledger.put(name, Row::Perhaps);
        self.agenda.look([name.clone()]);
    }

    /// C-12, C-13: the client says that it holds this version of a name; none: any version. `unasked`: it does not ask for the name.
    pub(super) fn bring(&mut self, name: Name, version: Version, unasked: bool) {
        let row = match version {
            Version::EMPTY if !unasked => Row::Perhaps,
            version => Row::Brought(version.into()),
        };
        self.ledger.put(&name, row);
        self.agenda.look([name]);
    }

    /// A resource is sent under a name, with this heartbeat if it has a time to live that the client reads (K-17).
    pub(super) fn sent(&mut self, name: &Name, resource: &Arc<Resource>, beat: Option<u32>) {
        self.ledger.put(name, Row::Sent(resource.clone()));
        // Until it has accepted that, it holds what it had when it rejected something.
        let held_back = self.rejections.send(name, resource.version());
        self.free_others(held_back);
        self.marks.forget_error(name);
        self.marks.note_beat(resource.name(), beat);
    }

    /// A heartbeat is sent of what the client holds; `None`: it has no time to live any more (E-11).
    pub(super) fn beat(&mut self, resource: &Resource, beat: Option<u32>) {
        self.marks.note_beat(resource.name(), beat);
    }

    /// The error of a name is sent (B-31).
    pub(super) fn told(&mut self, name: &Name, error: Arc<ResourceError>) {
        self.marks.note_error(name.clone(), error);
    }

    /// What a name stands for is sent under another one: the resource of an alias, a member of a collection. Or a full state leaves out what
    /// is held back: the client holds nothing of it any more.
    pub(super) fn answered(&mut self, name: &Name) {
        self.ledger.put(name, Row::Nothing);
    }

    /// The client is told that a name is gone.
    pub(super) fn gone(&mut self, name: &Name) {
        self.ledger.put(name, Row::Nothing);
        self.agenda.pass(name);
        self.absolve(name);
        self.marks.note_beat(name, None);
    }

    /// A name was looked at. Returns whether it was listed.
    pub(super) fn settle(&mut self, name: &Name, settled: NameOutcome) -> bool {
        match settled {
            NameOutcome::Quiet => self.agenda.pass(name),
            NameOutcome::As(row) => {
                if matches!(row, Row::Perhaps) {
                    self.free(name);
                } else {
                    self.absolve(name);
                }
                self.ledger.put(name, row);
                self.marks.note_beat(name, None);
                self.agenda.pass(name)
            }
            NameOutcome::Hidden => self.agenda.wait(name),
            NameOutcome::Gone => self.agenda.leave(name),
        }
    }

    /// Whether what is rejected is held back as one (B-18).
    pub(super) const fn holds_back_as_one(&self) -> bool {
        self.as_one
    }

    /// A name is not held back or tried any more. What the client holds of it is as it was.
    fn free(&mut self, name: &Name) {
        let held_back = self.rejections.release(name);
        self.free_others(held_back);
    }

    /// Nothing of a name is rejected any more.
    fn absolve(&mut self, name: &Name) {
        let held_back = self.rejections.forget(name);
        self.free_others(held_back);
    }

    /// A name is not held back any more. B-18: others may have been held back with it, and this may have been the bad one: they are
    /// sent again.
    fn free_others(&mut self, held_back: bool) {
        if held_back && self.as_one {
            for other in self.rejections.release_all() {
                self.ledger.put(&other, Row::Perhaps);
            }
            // A walk may have come past them.
            self.look_at_rows(false);
        }
    }
}

#[cfg(test)]
mod tests;
