//! The guard of a view, driven as its shell drives it.
//!
//! Owns the order of its inputs, and which removals it keeps. Does not judge them.

use std::time::{Duration, Instant};

use protocol::Guard;
use xds::{Changes, Cut, GuardSettings, MassHold, Name, Reason, ReferenceHold, TypeUrl, Update, Within};

use super::body::Type;
use super::feed::Zone;
use super::tally::{Rule, Tally};

/// A removal in one half of a type.
pub(crate) type Removal = (Type, bool, String);

/// By which settings the relay holds removals. A loss is held for less time than a world takes to heal.
pub(crate) const GUARD: GuardSettings = GuardSettings {
    references: ReferenceHold::UntilFree,
    mass: MassHold {
        hold: Duration::from_secs(2),
        within: Within::FirstState,
        ..GuardSettings::OFF.mass
    },
};
/// How long nothing that directs traffic must have come before a removal goes out.
const REMOVAL_QUIET: Duration = Duration::from_millis(100);
/// How long a removal waits for that at most.
pub(crate) const ORDER_GATE: Duration = Duration::from_secs(2);

/// The guard of a new view.
pub(crate) fn guard(files: bool) -> Guard {
    let settings = if files { GuardSettings::OFF } else { GUARD };
    Guard::new(REMOVAL_QUIET, ORDER_GATE, settings)
}

impl Zone {
    /// Takes out of what the control plane has said what must wait.
    pub(crate) fn hold(&mut self, changes: &mut Vec<Changes>, now: Instant) {
        self.guard.handle_settings(self.view.guard());
        for order in self.view.take_orders() {
            self.guard.handle_order(&order, now);
        }
        if Guard::asks_for_inheritance(changes)
            && let Some(served) = self.view.served_before()
        {
            self.guard.inherit(served);
        }
        let cut = self.view.cut();
        self.waiting.retain(|removal, _| serves(&cut, removal));
        // What is put instead may be held as well: an assignment without endpoints.
        for (kind, wildcard, update) in updates(changes).filter(|(.., update)| matches!(update, Update::Put(..))) {
            self.waiting
                .remove(&(kind, wildcard, update.name().as_str().to_owned()));
        }
        let said = removals(changes);
        self.guard.hold(changes, &cut, now);
        let passed = removals(changes);
        let kept = said.into_iter().filter(|removal| !passed.contains(removal));
        for removal in kept {
            self.waiting.entry(removal).or_insert(now);
        }
    }

    /// Publishes what the guard holds now.
    pub(crate) fn note_holds(&mut self, tally: &mut Tally) {
        if let Some((holds, events)) = self.guard.take_holds() {
            self.view.publish_holds(holds);
            if !events.is_empty() {
                tally.hit(Rule::Hold);
            }
        }
    }

    /// Takes the removals that wait for nothing any more.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Changes> {
        let wanted = |type_url: &TypeUrl, name: &Name| self.view.wants(type_url, name);
        self.guard.release(&self.view.cut(), wanted, now)
    }

    /// Whether something is held that the control plane has removed or emptied.
    pub(crate) fn holds(&self, kind: Type, name: &str) -> bool {
        let holds = self.view.holds();
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
