// SPDX-License-Identifier: Apache-2.0
//! What a client was sent of one type, by the name on the wire.
//!
//! Owns the map that the client shares with others, and the rows in which it differs. Does not know what is current, and what the
//! client should hold.

mod row;
mod table;

use std::sync::Arc;

pub(super) use row::Row;
pub(super) use table::Entry;
use table::RowTable;

use xds::{Difference, Known, Name, State};

/// What one client was sent of one type.
///
/// Invariant: a row changes only when a response is written, an answer to one is read, or a request is read; never because a view
/// changed. A client of a wildcard alone that has everything has no rows: it shares the map of the state itself.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    base: Option<Arc<State>>,
    own: RowTable,
}

impl Ledger {
    /// Returns the shared map.
    pub(super) const fn base(&self) -> Option<&Arc<State>> {
        self.base.as_ref()
    }

    /// Returns the rows in which the client differs from others.
    pub(super) const fn own(&self) -> &RowTable {
        &self.own
    }

    /// Returns what the client was sent under a name.
    pub(super) fn get(&self, name: &Name) -> Row {
        self.own
            .get(name.as_str())
            .map_or_else(|| self.shared(name), Entry::row)
    }

    fn shared(&self, name: &Name) -> Row {
        let known = self.base.as_ref().and_then(|base| base.entries().get(name));
        known.map_or(Row::Nothing, Row::from)
    }

    /// Notes what the client was sent under a name.
    pub(super) fn put(&mut self, name: &Name, row: Row) {
        let asked = self.asks(name);
        self.set(name, row, asked);
    }

    fn set(&mut self, name: &Name, row: Row, asked: bool) {
        let shared = self.base.as_ref().and_then(|base| base.entries().get(name));
        let same = match (&row, shared) {
            (Row::Sent(row), Some(shared)) => shared.is(row.version()),
            (Row::Brought(row), Some(Known::Held(shared))) => row == shared,
            (Row::Nothing, None | Some(Known::Absent(_))) => true,
            _ => false,
        };
        if same && !asked {
            self.own.remove(name);
        } else {
            self.own.put(name, row, asked);
        }
    }

    /// The client asks for a name, or does not ask for it any more.
    pub(super) fn mark(&mut self, name: &Name, asked: bool) {
        let row = self.get(name);
        self.set(name, row, asked);
    }

    /// Returns whether the client asks for this very name.
    pub(super) fn asks(&self, name: &Name) -> bool {
        self.own.get(name.as_str()).is_some_and(Entry::is_asked)
    }

    /// Returns all names of which the client may hold something.
    pub(super) fn held(&self) -> impl Iterator<Item = (&Name, Row)> {
        let shared = self.base.iter().flat_map(|base| base.entries());
        let shared = shared.filter(|(name, _)| self.own.get(name.as_str()).is_none());
        let shared = shared.map(|(name, known)| (name, Row::from(known)));
        let own = self.own.from("").filter(|entry| entry.perhaps());
        let own = own.map(|entry| (entry.name(), entry.row()));
        own.chain(shared.filter(|(_, row)| row.perhaps()))
    }

    /// Returns the rows of its own that a collection covers (F-10), from the first name that is not less than a text.
    pub(super) fn within<'a>(&'a self, collection: &'a Name, text: &'a str) -> impl Iterator<Item = Entry<'a>> {
        let rows = self.own.from(text.max(collection.prefix()));
        let rows = rows.take_while(|entry| entry.name().as_str().starts_with(collection.prefix()));
        let covers = collection.coverage();
        rows.filter(move |entry| covers(entry.name()))
    }

    /// Returns the names that the client asks for.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Name> {
        // K-21: if only members of collections have rows, this visits none.
        let rows = self.own.asks_any().then(|| self.own.from("")).into_iter().flatten();
        rows.filter(|entry| entry.is_asked()).map(Entry::name)
    }

    /// From now on the rows are relative to another map: the client was sent all of that, and nothing else.
    pub(super) fn share(&mut self, base: Arc<State>) {
        debug_assert!(self.own.is_empty(), "its own rows would change their meaning");
        self.base = Some(base);
    }

    /// Says the same relative to another map, to which this difference leads. Returns the names that have rows of their own from
    /// now on.
    pub(super) fn meet(&mut self, to: &Arc<State>, difference: &Difference) -> Vec<Name> {
        let masked = difference.names().filter(|name| self.own.get(name.as_str()).is_none());
        let masked: Vec<(Name, Row)> = masked.map(|name| (name.clone(), self.shared(name))).collect();
        self.base = Some(to.clone());
        for (name, row) in &masked {
            self.set(name, row.clone(), false);
        }
        for name in difference.names() {
            if let Some(entry) = self.own.get(name.as_str()).filter(|entry| !entry.is_asked()) {
                let row = entry.row();
                self.set(name, row, false);
            }
        }
        masked.into_iter().map(|(name, _)| name).collect()
    }

    /// The client was never sent anything by a wildcard, or has forgotten it. Its own rows stay.
    pub(super) fn forget_shared(&mut self) -> Option<Arc<State>> {
        let base = self.base.take();
        let idle = self
            .own
            .from("")
            .filter(|entry| !entry.is_asked() && matches!(entry.row(), Row::Nothing));
        let idle: Vec<Name> = idle.map(|entry| entry.name().clone()).collect();
        idle.iter().for_each(|name| self.own.remove(name));
        base
    }

    /// The same map, of which the client may hold any version.
    pub(super) fn doubt(&mut self, doubted: Arc<State>) {
        self.base = Some(doubted);
    }
}
