//! The guard of a view, driven as its shell drives it.
//!
//! Owns the order of its inputs, and which removals it keeps. Does not judge them.

use std::time::Instant;

use protocol::Guard;
use xds::{Changes, Cut, Name, Reason, Update};

use super::body::Type;
use super::feed::Zone;

/// A removal in one half of a type.
pub(crate) type Removal = (Type, bool, String);

impl Zone {
    /// Takes out of what the control plane has said what must wait.
    pub(crate) fn hold(&mut self, guard: &mut Guard, changes: &mut Vec<Changes>, now: Instant) {
        let settings = self.view.guard();
        guard.handle_settings(settings);
        for order in self.view.take_orders() {
            guard.handle_order(&order, now);
        }
        if Guard::asks_for_inheritance(changes)
            && let Some(served) = self.view.served_before()
        {
            guard.inherit(served);
        }
        let cut = self.view.cut();
        self.waiting.retain(|removal, _| serves(&cut, removal));
        // What is put instead may be held as well: an assignment without endpoints.
        for (kind, wildcard, update) in updates(changes).filter(|(.., update)| matches!(update, Update::Put(..))) {
            self.waiting
                .remove(&(kind, wildcard, update.name().as_str().to_owned()));
        }
        let said = removals(changes);
        guard.hold(changes, &cut, now);
        let passed = removals(changes);
        let kept = said.into_iter().filter(|removal| !passed.contains(removal));
        for removal in kept {
            self.waiting.entry(removal).or_insert(now);
        }
    }

    /// Publishes what the guard holds now; returns whether it has begun or ceased to hold anything.
    pub(crate) fn note_holds(&mut self, guard: &mut Guard) -> bool {
        let Some((holds, events)) = guard.take_holds() else {
            return false;
        };
        self.view.publish_holds(holds);
        !events.is_empty()
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
