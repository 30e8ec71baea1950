//! All removals that wait.
//!
//! Owns them, which of them must be looked at, and that operators are told of each change. Does not know why one waits or goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::judgements::Judgements;
use super::ledger::{Ledger, Reason};
use super::removal::{Half, Item, Judged, Removal};
use xds::{Hold, HoldEnd, HoldEvent, Kind, Name, ReferenceHold, Update};

/// The waiting removals.
///
/// Invariant: no half is empty; what operators see of a removal is what `shown` was told last.
#[derive(Debug, Default)]
pub(super) struct Held {
    removals: BTreeMap<Half, BTreeMap<Name, Removal>>,
    /// For each endpoint assignment that removed clusters take their endpoints from: these clusters.
    endpoints: BTreeMap<Name, BTreeSet<Item>>,
    /// Those that may wait for nothing any more, in the order in which they are looked at.
    agenda: BTreeSet<(Stage, Item)>,
    alarms: BTreeSet<(Instant, Item)>,
    ledger: Ledger,
    references: ReferenceHold,
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
        match kind {
            Kind::Rds => Self::Routes,
            Kind::Cds => Self::Clusters,
            Kind::Eds => Self::Endpoints,
            Kind::Lds | Kind::Srds | Kind::Vhds | Kind::Leds | Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Other => {
                Self::Listeners
            }
        }
    }
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.removals.is_empty()
    }

    pub(super) fn get(&self, (half, name): &Item) -> Option<&Removal> {
        self.removals.get(half)?.get(name)
    }

    fn get_mut(&mut self, (half, name): &Item) -> Option<&mut Removal> {
        self.removals.get_mut(half)?.get_mut(name)
    }

    pub(super) fn contains(&self, item: &Item) -> bool {
        self.get(item).is_some()
    }

    pub(super) fn has_half(&self, half: &Half) -> bool {
        !self.is_empty() && self.removals.contains_key(half)
    }

    pub(super) fn halves(&self) -> impl Iterator<Item = &Half> {
        self.removals.keys()
    }

    /// Returns the removals of one half.
    pub(super) fn of_half(&self, half: &Half) -> impl Iterator<Item = (&Name, &Removal)> {
        self.removals.get(half).into_iter().flatten()
    }

    /// Returns the removals of a name in the types of this kind.
    pub(super) fn named(&self, kind: Kind, name: &Name) -> impl Iterator<Item = (Item, &Removal)> {
        let halves = self.removals.iter().filter(move |((of, _), _)| of.kind() == kind);
        halves.filter_map(move |(half, names)| {
            let (name, removal) = names.get_key_value(name)?;
            Some(((half.clone(), name.clone()), removal))
        })
    }

    /// Returns the listeners that wait for the quiet time.
    pub(super) fn quiet_listeners(&self) -> Vec<Item> {
        let halves = self.removals.iter().filter(|((of, _), _)| of.kind() == Kind::Lds);
        let quiet = halves.flat_map(|(half, names)| {
            let quiet = names.iter().filter(|(_, removal)| removal.quiet_since().is_some());
            quiet.map(|(name, _)| (half.clone(), name.clone()))
        });
        quiet.collect()
    }

    /// Returns all of them.
    pub(super) fn items(&self) -> Vec<Item> {
        let halves = self.removals.iter();
        let items = halves.flat_map(|(half, names)| names.keys().map(|name| (half.clone(), name.clone())));
        items.collect()
    }

    /// Returns the held clusters that take their endpoints from this assignment.
    pub(super) fn clusters_of(&self, endpoints: &Name) -> impl Iterator<Item = &Item> {
        self.endpoints.get(endpoints).into_iter().flatten()
    }

    /// A removal begins to wait. `endpoints`: what the cluster takes its endpoints from.
    pub(super) fn enter(&mut self, item: &Item, removal: Removal, endpoints: Option<&Name>, judgements: &Judgements) {
        let of_half = self.removals.entry(item.0.clone()).or_default();
        of_half.insert(item.1.clone(), removal);
        self.take_endpoints(item, endpoints);
        self.look(item.clone());
        self.show(item, None, HoldEnd::Gone, judgements);
    }

    /// The control plane says a removal again, or for the first time to this run of the relay.
    pub(super) fn repeat(&mut self, item: &Item, update: Update, endpoints: Option<&Name>, judgements: &Judgements) {
        self.change(item, HoldEnd::Free, judgements, |removal| removal.repeat(update));
        self.take_endpoints(item, endpoints);
    }

    fn take_endpoints(&mut self, item: &Item, endpoints: Option<&Name>) {
        if let Some(removal) = self.get_mut(item) {
            removal.set_endpoints(endpoints.cloned());
        }
        if let Some(endpoints) = endpoints {
            self.endpoints
                .entry(endpoints.clone())
                .or_default()
                .insert(item.clone());
        }
    }

    /// A removal changes, and must be looked at; `end`: what ended its hold, if it is not held for the same reason any more.
    pub(super) fn change(
        &mut self,
        item: &Item,
        end: HoldEnd,
        judgements: &Judgements,
        change: impl FnOnce(&mut Removal),
    ) {
        let Some(removal) = self.get_mut(item) else { return };
        let before = removal.reason();
        change(removal);
        self.look(item.clone());
        self.show(item, before, end, judgements);
    }

    /// This refers to a removal, or it is not known any more what does.
    pub(super) fn refer(&mut self, item: &Item, source: Option<(Item, bool)>, judgements: &Judgements) {
        let Some(removal) = self.get_mut(item) else { return };
        if removal.by() != source.as_ref().map(|(source, said)| (source, *said)) {
            let before = removal.reason();
            removal.refer(source);
            self.show(item, before, HoldEnd::Free, judgements);
        }
    }

    /// This listener names a route that is not known yet, and may refer to a removal by it.
    pub(super) fn suspect(&mut self, item: &Item, source: Item, until: Instant, judgements: &Judgements) {
        if let Some(removal) = self.get_mut(item) {
            let before = removal.reason();
            removal.suspect(source, until);
            self.show(item, before, HoldEnd::Free, judgements);
        }
    }

    /// A removal does not wait any more, because of `end`.
    pub(super) fn leave(&mut self, item: &Item, end: HoldEnd) -> Option<Removal> {
        let names = self.removals.get_mut(&item.0)?;
        let removal = names.remove(&item.1)?;
        if names.is_empty() {
            self.removals.remove(&item.0);
        }
        if self.removals.is_empty() {
            self.agenda.clear();
            self.alarms.clear();
        }
        if let Some(endpoints) = removal.endpoints()
            && let Some(clusters) = self.endpoints.get_mut(endpoints)
        {
            clusters.remove(item);
            if clusters.is_empty() {
                self.endpoints.remove(endpoints);
            }
        }
        self.ledger.show(item, removal.reason(), None, end);
        Some(removal)
    }

    /// The clock of a removal has changed.
    pub(super) fn show_clock(&mut self, item: &Item, judgements: &Judgements) {
        let reason = self.get(item).and_then(Removal::reason);
        self.show(item, reason, HoldEnd::Clock, judgements);
    }

    /// What operators see of a removal, that was held for the reason `before`, may have changed.
    fn show(&mut self, item: &Item, before: Option<Reason>, end: HoldEnd, judgements: &Judgements) {
        let Some(removal) = self.get(item) else { return };
        let clock = match removal.judged() {
            Judged::By(number) => judgements.until(&item.0.0, number),
            Judged::Not | Judged::Undecided => self.limit(removal),
        };
        let shown = removal.reason().map(|reason| (reason, removal.shown(item.0.1, clock)));
        let alarms: Vec<Instant> = removal.alarms().chain(self.limit(removal)).collect();
        self.alarms.extend(alarms.into_iter().map(|at| (at, item.clone())));
        self.ledger.show(item, before, shown, end);
    }

    /// Returns when references hold a removal no longer.
    pub(super) fn limit(&self, removal: &Removal) -> Option<Instant> {
        match self.references {
            ReferenceHold::For(time) => Some(removal.said() + time),
            ReferenceHold::UntilFree | ReferenceHold::Off => None,
        }
    }

    /// Sets how long references hold removals.
    pub(super) fn set_references(&mut self, references: ReferenceHold, judgements: &Judgements) {
        self.references = references;
        for item in self.items() {
            self.look(item.clone());
            self.show_clock(&item, judgements);
        }
    }

    /// The removal must be looked at.
    pub(super) fn look(&mut self, item: Item) {
        self.agenda.insert((Stage::of(item.0.0.kind()), item));
    }

    /// The removal must be looked at once more, at this stage.
    pub(super) fn look_at(&mut self, stage: Stage, item: Item) {
        self.agenda.insert((stage, item));
    }

    /// Returns the next removal to look at.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Stage, Item)> {
        while let Some((_, item)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            if self.contains(&item) {
                self.look(item);
            }
        }
        self.agenda.pop_first()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        for item in self.items() {
            self.leave(&item, HoldEnd::Gone);
        }
    }

    pub(super) fn take_holds(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        self.ledger.take()
    }
}
