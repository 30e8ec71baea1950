//! All removals that wait, and the judgements that hold some of them.
//!
//! Owns them, which of them must be looked at, and that operators are told of each change. Does not know why one waits or goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::judgements::Judgements;
use super::ledger::{Ledger, Reason};
use super::removal::{Half, Item, Judged, Order, Removal};
use xds::{Hold, HoldEnd, HoldEvent, HoldReason, HoldTimes, Kind, Name, ReferenceHold, TypeUrl, Update};

/// The waiting removals.
///
/// Invariant: no half is empty; what operators see of a removal is what `show` told last.
#[derive(Debug, Default)]
pub(super) struct Held {
    removals: BTreeMap<Half, BTreeMap<Name, Removal>>,
    judgements: Judgements,
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

    /// Returns these removals of these halves.
    pub(super) fn select(&self, of: impl Fn(&Half) -> bool, which: impl Fn(&Removal) -> bool) -> Vec<Item> {
        let halves = self.removals.iter().filter(|(half, _)| of(half));
        let items = halves.flat_map(|(half, names)| {
            let names = names.iter().filter(|(_, removal)| which(removal));
            names.map(|(name, _)| (half.clone(), name.clone()))
        });
        items.collect()
    }

    /// Returns all of them.
    pub(super) fn items(&self) -> Vec<Item> {
        self.select(|_| true, |_| true)
    }

    /// Returns what a judgement holds; without a number, what all judgements of the type hold.
    fn judged(&self, type_url: &TypeUrl, number: Option<u32>) -> Vec<Item> {
        let of_type = |half: &Half| half.0 == *type_url;
        self.select(of_type, |removal| {
            let by = removal.judgement();
            by.is_some_and(|by| number.is_none_or(|number| number == by))
        })
    }

    /// Returns what operators see as held for this reason.
    pub(super) fn held_for(&self, type_url: &TypeUrl, reason: HoldReason, number: Option<u32>) -> Vec<Item> {
        match reason {
            HoldReason::Mass => self.judged(type_url, number),
            HoldReason::Unready => Vec::new(),
            HoldReason::Referenced => {
                let of_type = |half: &Half| half.0 == *type_url;
                self.select(of_type, |removal| removal.reason() == Some((reason, None)))
            }
        }
    }

    /// Whether a held cluster takes its endpoints from this assignment.
    pub(super) fn takes_endpoints(&self, endpoints: &Name) -> bool {
        self.endpoints.contains_key(endpoints)
    }

    /// Returns the held clusters that take their endpoints from this assignment.
    pub(super) fn clusters_of(&self, endpoints: &Name) -> impl Iterator<Item = &Item> {
        self.endpoints.get(endpoints).into_iter().flatten()
    }

    /// A removal begins to wait. `endpoints`: what the cluster takes its endpoints from.
    pub(super) fn enter(&mut self, item: &Item, removal: Removal, endpoints: Option<&Name>) {
        let of_half = self.removals.entry(item.0.clone()).or_default();
        of_half.insert(item.1.clone(), removal);
        self.take_endpoints(item, endpoints);
        self.look(item.clone());
        self.show(item, None, HoldEnd::Gone);
    }

    /// The control plane says a removal again, or for the first time to this run of the relay.
    pub(super) fn repeat(&mut self, item: &Item, update: Update, endpoints: Option<&Name>) {
        self.change(item, HoldEnd::Free, |removal| removal.repeat(update));
        self.take_endpoints(item, endpoints);
    }

    fn take_endpoints(&mut self, item: &Item, endpoints: Option<&Name>) {
        if let Some(removal) = self.get_mut(item) {
            removal.set_endpoints(endpoints.cloned());
        }
        if let Some(endpoints) = endpoints {
            let clusters = self.endpoints.entry(endpoints.clone()).or_default();
            clusters.insert(item.clone());
        }
    }

    /// A removal changes, and must be looked at; `end`: what ended its hold, if it is not held for the same reason any more.
    pub(super) fn change(&mut self, item: &Item, end: HoldEnd, change: impl FnOnce(&mut Removal)) {
        let Some(removal) = self.get_mut(item) else { return };
        let before = removal.reason();
        change(removal);
        self.look(item.clone());
        self.show(item, before, end);
    }

    /// This refers to a removal, or it is not known any more what does.
    pub(super) fn refer(&mut self, item: &Item, source: Option<(Item, bool)>) {
        let Some(removal) = self.get_mut(item) else { return };
        if removal.by() != source.as_ref().map(|(source, said)| (source, *said)) {
            let before = removal.reason();
            removal.refer(source);
            self.show(item, before, HoldEnd::Free);
        }
    }

    /// This listener names a route that is not known yet, and may refer to a removal by it.
    pub(super) fn suspect(&mut self, item: &Item, source: Item, until: Instant) {
        let Some(removal) = self.get_mut(item) else { return };
        // Whoever sees nothing new must not be told again: an alarm that is over would make the removal be looked at without end.
        if removal.suspected_until().is_none() || removal.by() != Some((&source, true)) {
            let before = removal.reason();
            removal.suspect(source, until);
            self.show(item, before, HoldEnd::Free);
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

    /// A judgement holds these: the one with this number, if it holds anything still. Returns its number.
    pub(super) fn condemn(&mut self, type_url: &TypeUrl, number: Option<u32>, items: &[Item], now: Instant) -> u32 {
        let number = self.judgements.make(type_url, number, now);
        for item in items {
            self.change(item, HoldEnd::Free, |removal| removal.judge(Judged::By(number)));
        }
        number
    }

    /// No judgement holds this any more.
    pub(super) fn acquit(&mut self, item: &Item, end: HoldEnd) {
        self.change(item, end, |removal| removal.judge(Judged::Not));
    }

    /// An earlier run has made this judgement.
    pub(super) fn remember(&mut self, hold: &Hold, now: Instant) {
        if let (Some(number), Some(since)) = (hold.judgement, hold.since()) {
            let times = (since, hold.until().unwrap_or(now));
            self.judgements.remember((hold.type_url.clone(), number), times, now);
        }
    }

    /// Whether the control plane is there: the clocks of judgements stand while it is not.
    pub(super) fn handle_server(&mut self, there: bool, now: Instant) {
        if self.judgements.handle_server(there, now) {
            self.show_again(self.select(|_| true, |removal| removal.judgement().is_some()));
        }
    }

    /// A person holds these judgements until then.
    pub(super) fn extend(&mut self, type_url: &TypeUrl, number: Option<u32>, order: &Order) {
        self.judgements.extend(type_url, number, order);
        self.show_again(self.judged(type_url, number));
    }

    /// Ends the judgements whose time is over. A person may hold single names for longer.
    pub(super) fn end_judgements(&mut self, now: Instant) {
        while let Some(key) = self.judgements.over(now) {
            let names = self.judged(&key.0, Some(key.1));
            let ordered = |item: &Item| {
                self.get(item)
                    .and_then(Removal::ordered_until)
                    .filter(|until| *until > now)
            };
            let longer = names.iter().filter_map(ordered).max();
            let over: Vec<Item> = names.into_iter().filter(|item| ordered(item).is_none()).collect();
            self.judgements.end(&key, longer);
            over.iter().for_each(|item| self.acquit(item, HoldEnd::Clock));
        }
    }

    /// The clocks of these have changed.
    fn show_again(&mut self, items: Vec<Item>) {
        for item in items {
            let reason = self.get(&item).and_then(Removal::reason);
            self.show(&item, reason, HoldEnd::Clock);
        }
    }

    /// What operators see of a removal, that was held for the reason `before`, may have changed.
    fn show(&mut self, item: &Item, before: Option<Reason>, end: HoldEnd) {
        let Some(removal) = self.get(item) else { return };
        let judgement = removal.judgement().map(|number| (item.0.0.clone(), number));
        let limit = self.limit(removal);
        let (clock, order) = match &judgement {
            Some(key) => (self.judgements.until(key), self.judgements.order(key)),
            None => (limit, None),
        };
        let shown = removal
            .reason()
            .map(|reason| (reason, removal.shown(item.0.1, clock, order)));
        let alarms: Vec<Instant> = removal.alarms().chain(limit).collect();
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

    /// Sets how long references and judgements hold removals. What a judgement holds keeps its clock.
    pub(super) fn set(&mut self, references: ReferenceHold, times: HoldTimes) {
        self.judgements.set(times);
        self.references = references;
        let items = self.items();
        items.iter().for_each(|item| self.look(item.clone()));
        self.show_again(items);
    }

    /// The removal must be looked at.
    pub(super) fn look(&mut self, item: Item) {
        self.look_at(Stage::of(item.0.0.kind()), item);
    }

    /// The removal must be looked at once more, at this stage.
    pub(super) fn look_at(&mut self, stage: Stage, item: Item) {
        self.agenda.insert((stage, item));
    }

    /// Returns the next removal to look at.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Stage, Item)> {
        while let Some((_, item)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            self.look(item);
        }
        self.agenda.pop_first()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        alarm.into_iter().chain(self.judgements.poll_timeout()).min()
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        for item in self.items() {
            self.leave(&item, HoldEnd::Gone);
        }
    }

    /// Returns all holds, and what has happened to them since the last call, if anything has changed.
    pub(super) fn take_holds(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        self.judgements
            .retain(|(type_url, number)| self.ledger.has_judgement(type_url, *number));
        self.ledger.take()
    }
}
