// SPDX-License-Identifier: Apache-2.0
//! What the clients of the view read of other servers (D-11).
//!
//! Owns what was read of that last. Does not know what it refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::table::Table;
use super::super::waiting::{Half, Item, Row};
use super::Reach;
use xds::{Cut, HoldReason, Name, OtherViews, Owners, ViewPlace};

/// The cuts of other views that were read last.
#[derive(Debug, Default)]
pub(super) struct Abroad {
    pub(super) owners: Owners,
    cuts: BTreeMap<ViewPlace, Arc<Cut>>,
}

impl Abroad {
    /// Whether two names have the same owner. What one owner has, a client reads from one view.
    pub(super) fn have_one_owner(&self, one: (&Half, &Name), other: &Item) -> bool {
        self.owners.of(&one.0.0, Some(one.1)) == self.owners.of(&other.0.0, Some(&other.1))
    }

    /// Whether the removal of a resource is held there.
    pub(super) fn is_held(&self, place: &ViewPlace, (half, name): &Item) -> bool {
        let holds = self.cuts.get(place).into_iter().flat_map(|cut| cut.holds().iter());
        let mut of_type = holds.filter(|hold| hold.type_url == half.0 && hold.reason != HoldReason::Unready);
        of_type.any(|hold| hold.removals.contains_key(name))
    }
}

impl Reach {
    /// Reads what has changed in what clients read of other servers. Returns whether something that directs traffic has.
    pub(in super::super) fn read_other_views(&mut self, others: Option<&OtherViews>, table: &mut Table) -> bool {
        let owners = others.map(|others| others.owners().clone()).unwrap_or_default();
        if !owners.is(&self.abroad.owners) {
            // A type may be read elsewhere now, where nothing has changed.
            for place in std::mem::take(&mut self.abroad.cuts).into_keys() {
                self.read_at(Some(&place), None, table);
            }
            self.abroad.owners = owners;
        }
        let now = others.map(OtherViews::all).unwrap_or_default();
        let before = std::mem::replace(&mut self.abroad.cuts, now.clone());
        let (mut directs, mut holds) = (false, false);
        for place in before.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (before.get(place), now.get(place).map(|cut| &**cut));
            directs |= self.read_at(Some(place), new, table) && old.is_some();
            holds |= old.map(|old| Arc::as_ptr(old.holds())) != new.map(|new| Arc::as_ptr(new.holds()));
        }
        if holds {
            let of_cluster = |row: &Row| row.by().is_some_and(|(by, _)| by.0.0.kind().names_endpoints());
            let assignments = table.select(|half| half.0.kind().is_assignment(), of_cluster);
            assignments.iter().for_each(|item| table.look(item));
        }
        directs
    }
}
