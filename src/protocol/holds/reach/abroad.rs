//! What the clients of the view read of other servers (D-11).
//!
//! Owns what was read of that last. Does not know what it refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::waiting::{Half, Item};
use super::refers;
use xds::{Beside, Cut, HoldReason, Kind, Name, Owners, Resource, State, ViewPlace};

/// The cuts of other views that were read last.
#[derive(Debug, Default)]
pub(super) struct Abroad {
    owners: Owners,
    cuts: BTreeMap<ViewPlace, Arc<Cut>>,
}

/// What has changed.
pub(super) struct News {
    pub(super) found: Vec<Difference>,
    /// Something that directs traffic is a part of it.
    pub(super) directs: bool,
    /// What is held there has changed, or may have.
    pub(super) holds: bool,
    /// Where clients go on using other older contents, or may.
    pub(super) older: Vec<ViewPlace>,
}

/// A half of a type at a place, before and now, as far as that is read there.
pub(super) struct Difference {
    pub(super) place: ViewPlace,
    pub(super) half: Half,
    pub(super) before: Option<Arc<State>>,
    pub(super) now: Option<Arc<State>>,
}

impl Abroad {
    /// Reads the cuts as they are now, and returns what has changed.
    pub(super) fn read(&mut self, beside: Option<&Beside>) -> News {
        let (mut found, mut directs, mut holds, mut older) = (Vec::new(), false, false, Vec::new());
        let owners = beside.map(|beside| beside.owners().clone()).unwrap_or_default();
        if !owners.is(&self.owners) {
            // A type may be read elsewhere now, where nothing has changed.
            for (place, cut) in std::mem::take(&mut self.cuts) {
                compare(&self.owners, &place, Some(&cut), None, &mut found);
                older.push(place);
            }
            self.owners = owners;
        }
        let now = beside.map(Beside::all).unwrap_or_default();
        for place in self.cuts.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (self.cuts.get(place), now.get(place));
            let from = found.len();
            compare(&self.owners, place, old, new, &mut found);
            let mut changed = found.iter().skip(from);
            directs |= old.is_some() && changed.any(|change| change.half.0.kind().gated());
            holds |= old.map(|old| Arc::as_ptr(old.holds())) != new.map(|new| Arc::as_ptr(new.holds()));
            if old.map(|old| Arc::as_ptr(old.older())) != new.map(|new| Arc::as_ptr(new.older())) {
                older.push(place.clone());
            }
        }
        self.cuts = now;
        News {
            found,
            directs,
            holds,
            older,
        }
    }

    /// What is known at a place, as it was read last.
    pub(super) fn cut(&self, place: &ViewPlace) -> Option<&Cut> {
        self.cuts.get(place).map(|cut| &**cut)
    }

    /// Whether this name is read at a place.
    pub(super) fn has(&self, place: &ViewPlace, half: &Half, name: &Name) -> bool {
        place.has(&self.owners, &half.0, name)
    }

    /// The states of route configurations there, as they were read last.
    pub(super) fn route_states(&self) -> impl Iterator<Item = (Option<&ViewPlace>, Half, &Arc<State>)> {
        let all = self.cuts.iter();
        let all = all.flat_map(|(place, cut)| cut.slots().map(move |(of, _)| (place, cut, of)));
        let read = all.filter(|(place, _, of)| of.kind() == Kind::Rds && place.may_have(&self.owners, of));
        let halves =
            read.flat_map(|(place, cut, of)| [true, false].map(|wildcard| (place, cut, (of.clone(), wildcard))));
        halves.filter_map(|(place, cut, half)| {
            let state = cut.half(&half.0, half.1)?;
            Some((Some(place), half, state))
        })
    }

    /// Whether two names have the same owner. What one owner has, a client reads from one view.
    pub(super) fn have_one_owner(&self, one: (&Half, &Name), other: &Item) -> bool {
        self.owners.of(&one.0.0, Some(one.1)) == self.owners.of(&other.0.0, Some(&other.1))
    }

    pub(super) fn resource(&self, place: &ViewPlace, (half, name): &Item) -> Option<&Arc<Resource>> {
        self.cuts.get(place)?.half(&half.0, half.1)?.resource(name)
    }

    /// Whether the removal of a resource is held there.
    pub(super) fn is_held(&self, place: &ViewPlace, (half, name): &Item) -> bool {
        let holds = self.cuts.get(place).into_iter().flat_map(|cut| cut.holds().iter());
        let mut of_type = holds.filter(|hold| hold.type_url == half.0 && hold.reason != HoldReason::Unready);
        of_type.any(|hold| hold.removals.contains_key(name))
    }
}

/// Adds the halves that refer to something and differ.
fn compare(
    owners: &Owners,
    place: &ViewPlace,
    before: Option<&Arc<Cut>>,
    now: Option<&Arc<Cut>>,
    found: &mut Vec<Difference>,
) {
    let slots = before.into_iter().chain(now).flat_map(|cut| cut.slots());
    let types: BTreeSet<_> = slots.map(|(type_url, _)| type_url).collect();
    let read = types
        .into_iter()
        .filter(|type_url| refers(type_url.kind()) && place.may_have(owners, type_url));
    for half in read.flat_map(|type_url| [(type_url.clone(), true), (type_url.clone(), false)]) {
        let of = |cut: Option<&Arc<Cut>>| cut.and_then(|cut| cut.half(&half.0, half.1).cloned());
        let (before, now) = (of(before), of(now));
        if before.as_ref().map(|state| state.id()) != now.as_ref().map(|state| state.id()) {
            found.push(Difference {
                place: place.clone(),
                half,
                before,
                now,
            });
        }
    }
}
