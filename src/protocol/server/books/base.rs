// SPDX-License-Identifier: Apache-2.0
//! The map that the client shares with others, and to which its rows are relative.
//!
//! Owns when it is another one, and where in the difference to the next one the client is. Does not know what is current.

use std::sync::Arc;

use super::Books;
use crate::server::ledger::Row;
use xds::{Difference, Name, State};

impl Books {
    /// C-12: the client says that it holds these versions of what only its wildcard covers.
    pub(in crate::server) fn bring_table(&mut self, table: Arc<State>) {
        // B-34: a table that another client has as well takes nothing more.
        if Arc::strong_count(&table) == 1 {
            self.marks.note_version_table(table.entries().len());
        }
        self.ledger.doubt(table);
    }

    /// Nothing is due of any listed name: the client has no rows, and what differs is not listed.
    pub(in crate::server) fn clear(&mut self) {
        debug_assert!(self.ledger.own().is_empty(), "something may be due of a row");
        self.agenda.clear();
    }

    /// The client may hold any version of all that it was sent by a wildcard.
    pub(in crate::server) fn doubt_shared(&mut self, doubted: Arc<State>) {
        self.ledger.doubt(doubted);
        self.agenda.put(None, None);
    }

    /// The client has forgotten its wildcard. If it `keeps` what that brought, this is in rows of its own from now on.
    pub(in crate::server) fn forget_shared(&mut self, keeps: bool) {
        let base = self.ledger.forget_shared().filter(|_| keeps);
        self.marks.forget_version_table();
        self.agenda.put(None, None);
        for (name, known) in base.iter().flat_map(|base| base.entries()) {
            let row = Row::from(known);
            if row.perhaps() && !self.ledger.get(name).perhaps() {
                self.ledger.put(name, row);
            }
        }
    }

    /// The client was sent all of this, and nothing else. `rest` is what the state has beside that, behind the `cursor`.
    #[inline]
    pub(in crate::server) fn share(&mut self, state: Arc<State>, cursor: Option<Name>, rest: Option<Arc<Difference>>) {
        self.ledger.share(state);
        self.agenda.put(cursor, rest);
    }

    /// The client was sent all of the state.
    #[inline]
    pub(in crate::server) fn arrive(&mut self, state: Arc<State>) {
        self.share(state, None, None);
        self.marks.forget_version_table();
    }

    /// At rest, the client shares the state's own map.
    pub(in crate::server) fn meet(&mut self, state: &Arc<State>, difference: &Difference) {
        let masked = self.ledger.meet(state, difference);
        self.marks.forget_version_table();
        self.agenda.look(masked);
    }
}
