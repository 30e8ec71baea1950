// SPDX-License-Identifier: Apache-2.0
//! The relay's writer of one view, driven as its shell drives it.
//!
//! Owns what the view wants, what it was given, and which removals wait. Does not know how the control plane is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::View;
use protocol::{Demand, Holds, LegKind};
use xds::{
    Changes, Cut, GuardSettings, Hold, HoldTimes, Name, Reason, ServerState, Target, TypeUrl, Update, Want, Within,
};

use super::body::Type;
use super::book::Book;
use super::classes::nobody;
use super::course::Alarm;
use super::tally::{Rule, Tally};
use super::words::Words;

/// The writer of a view.
pub(crate) struct Writer {
    pub(crate) view: Arc<View>,
    /// Whether there is a view.
    pub(crate) attached: bool,
    pub(crate) book: Book,
    /// What the view has asked for.
    pub(crate) wanted: BTreeSet<(Type, Target)>,
    pub(crate) demand: Demand,
    /// D-03, D-09, D-10, D-12: removals and changes that wait.
    pub(crate) guard: Holds,
    /// The same, and since when.
    pub(crate) waiting: BTreeMap<Removal, Instant>,
    /// What an earlier run of the relay held, until the writer's first turn.
    earlier: Vec<Hold>,
    /// The names in it.
    remembered: BTreeSet<(TypeUrl, Name)>,
    /// What was said that may end a hold.
    pub(crate) words: Words,
    /// Whether a person has released something that may be referred to.
    pub(crate) forced: bool,
    /// For all that the writer waits for.
    pub(crate) alarm: Alarm,
}

/// A removal in one half of a type.
pub(crate) type Removal = (Type, bool, String);

/// By which settings the relay holds removals. A loss is held for less time than a world takes to heal.
pub(crate) const GUARD: GuardSettings = GuardSettings {
    references: true,
    within: Within::FirstState,
    hold: HoldTimes {
        endpoints: Duration::from_secs(1),
        other: Duration::from_secs(2),
    },
    unready: Duration::from_secs(60),
};
/// How long nothing that directs traffic must have come before a removal goes out.
const REMOVAL_QUIET: Duration = Duration::from_millis(100);
/// How long a removal waits for that at most.
pub(crate) const ORDER_GATE: Duration = Duration::from_secs(2);

impl Writer {
    /// The writer of a new view. An earlier run of the relay knew what is `saved`.
    pub(crate) fn new(view: Arc<View>, saved: Option<&Cut>) -> Self {
        let earlier = saved.map(|cut| cut.holds().to_vec()).unwrap_or_default();
        let guard = Holds::new(REMOVAL_QUIET, ORDER_GATE, GUARD);
        if let Some(cut) = saved {
            view.set_restored(cut.clone());
        }
        Self {
            view,
            attached: true,
            book: Book::default(),
            wanted: BTreeSet::new(),
            demand: Demand::default(),
            guard,
            waiting: BTreeMap::new(),
            remembered: names(&earlier).collect(),
            earlier,
            words: Words::default(),
            forced: false,
            alarm: Alarm::default(),
        }
    }

    /// There is no view.
    pub(crate) fn none() -> Self {
        Self {
            attached: false,
            ..Self::new(nobody(), None)
        }
    }

    /// The view begins or ceases to want something.
    pub(crate) fn note_want(&mut self, want: &Want) {
        let Some(kind) = Type::of(want.type_url.url()) else {
            return;
        };
        let target = (kind, want.target.clone());
        if want.wanted {
            self.wanted.insert(target);
        } else {
            self.wanted.remove(&target);
            self.guard.handle_unwanted(&want.type_url, &want.target);
        }
    }

    /// The same, for the machines; returns what they must be told.
    pub(crate) fn demand(&mut self, want: &Want) -> Vec<(LegKind, Want)> {
        self.note_want(want);
        self.demand.handle_want(want, &self.view.cut())
    }

    /// Whether the view wants this of its control plane: with a wildcard, or by its name or collection.
    pub(crate) fn wants(&self, kind: Type, name: &Name, wildcard: bool) -> bool {
        let named = std::iter::once(name.clone()).chain(name.collection());
        let named = named.map(Target::Name).filter(|_| !wildcard);
        let all = [Target::Wildcard].into_iter().filter(|_| wildcard);
        let mut targets = named.chain(all);
        targets.any(|target| self.wanted.contains(&(kind, target)))
    }

    /// Publishes changes, and notes them in the book.
    pub(crate) fn publish(&mut self, changes: &[Changes]) {
        self.note(changes);
        self.view.publish(changes);
    }

    /// Publishes what an earlier run of the relay knew; returns what the machines must be told.
    pub(crate) fn publish_restored(&mut self, restored: &[Changes]) -> Vec<(LegKind, Want)> {
        self.note(restored);
        drop(self.view.publish_restored(restored));
        self.demand.handle_cut(&self.view.cut())
    }

    fn note(&mut self, changes: &[Changes]) {
        for change in changes {
            let Some(kind) = Type::of(change.type_url.url()) else {
                continue;
            };
            for update in &change.updates {
                let name = update.name().as_str();
                if let Update::Put(resource, _) = update {
                    self.book.note(kind, resource, change.wildcard);
                } else if matches!(update, Update::Absent(..) | Update::Forget(_)) {
                    self.book.gone(kind, name, change.wildcard);
                }
            }
        }
    }

    /// Takes out of what the control plane has said what must wait.
    pub(crate) fn hold(&mut self, changes: &mut Vec<Changes>, now: Instant) {
        self.guard.remember(&std::mem::take(&mut self.earlier), now);
        self.guard.handle_settings(self.view.guarded().settings());
        for (order, _heard) in self.view.mailbox().take_orders() {
            self.guard.handle_order(&order, now);
            self.words.order(order, now);
        }
        let cut = self.view.cut();
        self.waiting.retain(|removal, _| serves(&cut, removal));
        // What is put instead may be held as well: an assignment without endpoints.
        for (kind, wildcard, update) in updates(changes).filter(|(.., update)| matches!(update, Update::Put(..))) {
            self.waiting
                .remove(&(kind, wildcard, update.name().as_str().to_owned()));
        }
        self.words.hear(changes, now);
        let said = removals(changes);
        let elsewhere = || self.view.served_elsewhere();
        self.guard.hear(changes, &cut, elsewhere, now);
        let passed = removals(changes);
        let kept = said.into_iter().filter(|removal| !passed.contains(removal));
        for removal in kept {
            self.waiting.entry(removal).or_insert(now);
        }
    }

    /// Takes out of what is to be published next what must wait.
    pub(crate) fn cross(&mut self, changes: &mut [Changes], now: Instant) {
        self.guard.cross(changes, &self.view.cut(), None, now);
    }

    /// Takes what waits for nothing any more.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Changes> {
        let wanted = |type_url: &TypeUrl, name: &Name| self.view.demand().wants(type_url, name);
        self.guard.look(&self.view.cut(), None, wanted, now)
    }

    /// Publishes what is held now.
    pub(crate) fn note_holds(&mut self, tally: &mut Tally) {
        let Some((holds, events)) = self.guard.take_told() else {
            return;
        };
        self.view.publish_holds(holds);
        events.iter().for_each(|_| tally.hit(Rule::Hold));
    }

    /// The end of a turn: nothing more is to be published. Tells what the server's state is, and what is held.
    pub(crate) fn rest(&mut self, server_state: ServerState, now: Instant, tally: &mut Tally) {
        if server_state == ServerState::Up && self.view.head().forget_restored() {
            self.guard.forget_unserved(&self.view.cut());
        }
        self.guard.handle_server(server_state.reachable(), now);
        self.note_holds(tally);
        self.view.publish_server_state(server_state);
    }

    /// Whether an earlier run of the relay has held this.
    pub(crate) fn remembers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.remembered.contains(&(type_url.clone(), name.clone()))
    }

    /// Whether something is held that the control plane has removed or emptied.
    pub(crate) fn holds(&self, kind: Type, name: &str) -> bool {
        let holds = self.view.head().holds();
        let mut of_kind = holds.iter().filter(|hold| hold.type_url == *kind.type_url());
        of_kind.any(|hold| hold.removals.contains_key(name))
    }
}

/// Whether a half of a view has the resource that a removal is about.
pub(crate) fn serves(cut: &Cut, (kind, wildcard, name): &Removal) -> bool {
    let slot = cut.slot(kind.type_url());
    let half = slot.and_then(|slot| match wildcard {
        true => slot.wildcard.as_ref(),
        false => Some(&slot.named),
    });
    half.is_some_and(|state| state.resource(&Name::from(name.as_str())).is_some())
}

/// The names that are held.
fn names(holds: &[Hold]) -> impl Iterator<Item = (TypeUrl, Name)> {
    let names = |hold: &Hold| hold.removals.keys().cloned().collect::<Vec<_>>();
    holds
        .iter()
        .flat_map(move |hold| names(hold).into_iter().map(|name| (hold.type_url.clone(), name)))
}

fn updates(changes: &[Changes]) -> impl Iterator<Item = (Type, bool, &Update)> {
    let of_type = |change: &Changes| Type::of(change.type_url.url()).map(|kind| (kind, change.wildcard));
    let all = changes
        .iter()
        .filter_map(move |change| Some((of_type(change)?, change)));
    all.flat_map(|((kind, wildcard), change)| change.updates.iter().map(move |update| (kind, wildcard, update)))
}

fn removals(changes: &[Changes]) -> Vec<Removal> {
    let removes = |update: &Update| matches!(update, Update::Forget(_) | Update::Absent(_, Reason::Said));
    let all = updates(changes).filter(|(.., update)| removes(update));
    all.map(|(kind, wildcard, update)| (kind, wildcard, update.name().as_str().to_owned()))
        .collect()
}
