// SPDX-License-Identifier: Apache-2.0
//! All that waits, and the clocks by which it does.
//!
//! Owns the rows, which of them must be looked at, and that operators are told of each change. Does not know why one waits or goes.

mod judged;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::clocks::Clocks;
use super::ground::{Reason, Referring};
use super::told::Told;
use super::waiting::{Half, Item, Referrers, Row};
use super::word::Word;
use xds::{GuardSettings, Hold, HoldEnd, HoldEvent, HoldReason, Kind, Name, TypeUrl};

/// The table.
///
/// Invariant: what operators see of a row is what `show` told last.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: BTreeMap<Half, BTreeMap<Name, Row>>,
    /// Those that are changes.
    changes: BTreeSet<Item>,
    clocks: Clocks,
    /// For each endpoint assignment that removed clusters take their endpoints from: these clusters.
    endpoints: BTreeMap<Name, BTreeSet<Item>>,
    /// The removals that may wait for nothing any more, in the order in which they are looked at.
    agenda: BTreeSet<(Stage, Item)>,
    alarms: BTreeSet<(Instant, Item)>,
    told: Told,
}

/// What goes together goes in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Listeners, and whatever else nothing refers to.
    Listeners,
    Routes,
    /// Clusters that a listener or a route may name.
    Clusters,
    /// Clusters that only an aggregate cluster may name.
    Members,
    Endpoints,
}

impl Stage {
    const fn of(kind: Kind) -> Self {
        match kind.is_referred() {
            false => Self::Listeners,
            true if kind.is_routes() => Self::Routes,
            true if kind.is_assignment() => Self::Endpoints,
            true => Self::Clusters,
        }
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    /// Whether no removal waits.
    pub(super) fn removes_nothing(&self) -> bool {
        self.going_halves().next().is_none()
    }

    pub(super) fn get(&self, (half, name): &Item) -> Option<&Row> {
        self.rows.get(half)?.get(name)
    }

    fn get_mut(&mut self, (half, name): &Item) -> Option<&mut Row> {
        self.rows.get_mut(half)?.get_mut(name)
    }

    /// The removal of this name.
    pub(super) fn removal(&self, item: &Item) -> Option<&Row> {
        self.get(item).filter(|row| !row.is_change())
    }

    /// Whether it is removed.
    pub(super) fn is_going(&self, item: &Item) -> bool {
        self.removal(item).is_some()
    }

    pub(super) fn has_half(&self, half: &Half) -> bool {
        self.rows.get(half).is_some_and(|rows| !rows.is_empty())
    }

    /// Returns the halves in which a removal waits.
    pub(super) fn going_halves(&self) -> impl Iterator<Item = &Half> {
        let going = self.rows.iter();
        let going = going.filter(|(_, rows)| rows.values().any(|row| !row.is_change()));
        going.map(|(half, _)| half)
    }

    /// Returns the removals of a name in the types of this kind.
    pub(super) fn named(&self, kind: Kind, name: &Name) -> impl Iterator<Item = (Item, &Row)> {
        let halves = self.rows.iter().filter(move |((of, _), _)| of.kind() == kind);
        halves.filter_map(move |(half, rows)| {
            let (name, row) = rows.get_key_value(name)?;
            (!row.is_change()).then(|| ((half.clone(), name.clone()), row))
        })
    }

    /// Returns these rows of these halves.
    pub(super) fn select(&self, of: impl Fn(&Half) -> bool, which: impl Fn(&Row) -> bool) -> Vec<Item> {
        let halves = self.rows.iter().filter(|(half, _)| of(half));
        let items = halves.flat_map(|(half, rows)| {
            let rows = rows.iter().filter(|(_, row)| which(row));
            rows.map(|(name, _)| (half.clone(), name.clone()))
        });
        items.collect()
    }

    /// Returns all of them.
    pub(super) fn items(&self) -> Vec<Item> {
        self.select(|_| true, |_| true)
    }

    /// Returns the changes.
    pub(super) fn changes(&self) -> Vec<Item> {
        self.changes.iter().cloned().collect()
    }

    /// When a row goes at the latest.
    pub(super) fn until(&self, item: &Item) -> Option<Instant> {
        self.get(item)?.until(&item.0.0, &self.clocks)
    }

    pub(super) const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Returns what operators see as held for this reason.
    pub(super) fn held_for(&self, type_url: &TypeUrl, reason: HoldReason, number: Option<u32>) -> Vec<Item> {
        let is_it = |(own, by): Reason| own == reason && (number.is_none() || number == by);
        self.select(|half| half.0 == *type_url, |row| row.reason().is_some_and(is_it))
    }

    /// Whether a held cluster takes its endpoints from this assignment.
    pub(super) fn takes_endpoints(&self, endpoints: &Name) -> bool {
        self.endpoints.contains_key(endpoints)
    }

    /// Returns the held clusters that take their endpoints from this assignment.
    pub(super) fn clusters_of(&self, endpoints: &Name) -> impl Iterator<Item = &Item> {
        self.endpoints.get(endpoints).into_iter().flatten()
    }

    /// Something begins to wait. `endpoints`: what a removed cluster takes its endpoints from.
    pub(super) fn enter(&mut self, item: &Item, row: Row, endpoints: Option<&Name>) {
        if row.is_change() {
            self.changes.insert(item.clone());
        }
        let of_half = self.rows.entry(item.0.clone()).or_default();
        of_half.insert(item.1.clone(), row);
        self.take_endpoints(item, endpoints);
        self.look(item);
        self.show(item, None, HoldEnd::Gone);
    }

    /// The control plane says a removal again, or for the first time to this run of the relay.
    pub(super) fn say(&mut self, item: &Item, word: Word, endpoints: Option<&Name>, referrers: Referrers) {
        self.change(item, HoldEnd::Free, |row| row.say(word, referrers));
        self.take_endpoints(item, endpoints);
    }

    fn take_endpoints(&mut self, item: &Item, endpoints: Option<&Name>) {
        if let Some(row) = self.get_mut(item) {
            row.set_endpoints(endpoints.cloned());
        }
        if let Some(endpoints) = endpoints {
            let clusters = self.endpoints.entry(endpoints.clone()).or_default();
            clusters.insert(item.clone());
        }
    }

    /// A row changes, and must be looked at; `end`: what ended its hold, if it is not held for the same reason any more.
    pub(super) fn change(&mut self, item: &Item, end: HoldEnd, change: impl FnOnce(&mut Row)) {
        let Some(removal) = self.get_mut(item) else { return };
        let before = removal.reason();
        change(removal);
        self.look(item);
        self.show(item, before, end);
    }

    /// This refers to a removal, or may, or it is not known any more what does. Whoever sees nothing new must not be told again: an alarm
    /// that is over would make the removal be looked at without end.
    pub(super) fn refer(&mut self, item: &Item, referring: Option<Referring>) {
        let Some(removal) = self.get_mut(item) else { return };
        let before = removal.reason();
        if removal.refer(referring) {
            self.show(item, before, HoldEnd::Free);
        }
    }

    /// The control plane is there, or away from now on: then the time stands in which it could say a route that is not known yet.
    pub(super) fn handle_server(&mut self, there: bool, now: Instant) {
        let before = self.clocks.away;
        if before.is_none() == there {
            return;
        }
        self.clocks.away = (!there).then_some(now);
        let stood = before.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        for item in self.perhaps_referred() {
            self.change(&item, HoldEnd::Free, |row| row.prolong(stood));
        }
    }

    /// Returns the clusters to which something may refer.
    fn perhaps_referred(&self) -> Vec<Item> {
        self.select(
            |half| half.0.kind().names_endpoints(),
            |row| row.perhaps_until().is_some(),
        )
    }

    /// It may be known now what refers to them.
    pub(super) fn look_at_clusters(&mut self) {
        self.perhaps_referred().iter().for_each(|item| self.look(item));
    }

    /// A removal does not wait any more, because of `end`.
    pub(super) fn leave(&mut self, item: &Item, end: HoldEnd) -> Option<Row> {
        let removal = self.rows.get_mut(&item.0)?.remove(&item.1)?;
        self.changes.remove(item);
        if let Some(endpoints) = removal.endpoints()
            && let Some(clusters) = self.endpoints.get_mut(endpoints)
        {
            clusters.remove(item);
            if clusters.is_empty() {
                self.endpoints.remove(endpoints);
            }
        }
        self.told.show(item, removal.reason(), None, end);
        Some(removal)
    }

    /// The clocks of these have changed.
    fn show_again(&mut self, items: Vec<Item>) {
        for item in items {
            let reason = self.get(&item).and_then(Row::reason);
            self.show(&item, reason, HoldEnd::Clock);
        }
    }

    /// What operators see of a row, that was held for the reason `before`, may have changed.
    fn show(&mut self, item: &Item, before: Option<Reason>, end: HoldEnd) {
        let Some(row) = self.get(item) else { return };
        let of = &item.0.0;
        let judgement = row.judgement().map(|number| (of.clone(), number));
        let order = judgement.as_ref().and_then(|key| self.clocks.judgements.order(key));
        let shown = |reason| (reason, row.shown(&item.0, &self.clocks, order));
        let shown = row.reason().map(shown);
        let alarms = row.alarms(of, &self.clocks).filter(|_| !row.is_change());
        let alarms: Vec<Instant> = alarms.collect();
        self.alarms.extend(alarms.into_iter().map(|at| (at, item.clone())));
        self.told.show(item, before, shown, end);
    }

    /// Sets how long what waits does so. What a judgement holds keeps its clock.
    pub(super) fn set(&mut self, bound: Duration, settings: GuardSettings) {
        let clocks = &mut self.clocks;
        if (clocks.bound, clocks.settings) != (bound, settings) {
            (clocks.bound, clocks.settings) = (bound, settings);
            self.items().iter().for_each(|item| self.look(item));
        }
    }

    /// The row must be looked at, if it is a removal. Changes are looked at each time.
    pub(super) fn look(&mut self, item: &Item) {
        if self.is_going(item) {
            self.look_at(Stage::of(item.0.0.kind()), item.clone());
        }
    }

    /// The removal must be looked at once more, at this stage.
    pub(super) fn look_at(&mut self, stage: Stage, item: Item) {
        self.agenda.insert((stage, item));
    }

    /// Returns the next removal to look at.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Stage, Item)> {
        while let Some((_, item)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            self.look(&item);
        }
        self.agenda.pop_first()
    }

    /// Nothing is to be looked at: no removal waits.
    pub(super) fn rest(&mut self) {
        self.alarms.clear();
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let changes = self.changes.iter().filter_map(|item| self.until(item));
        changes.chain(alarm).chain(self.clocks.judgements.poll_timeout()).min()
    }

    /// Returns all holds, and what has happened to them since the last call, if anything has changed.
    pub(super) fn take_told(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        let judgements = &mut self.clocks.judgements;
        judgements.retain(|(type_url, number)| self.told.has_judgement(type_url, *number));
        let clock = |type_url: &TypeUrl, number| judgements.clock(&(type_url.clone(), number));
        self.told.take(clock)
    }
}
