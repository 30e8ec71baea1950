// SPDX-License-Identifier: Apache-2.0
//! The relay's snapshots: in worlds whose control planes forget, it restarts with what it knew, or with what it knew before.
//!
//! Owns what outlives a run of the relay (E-11). Knows nothing of files, and does not know what a later run makes of it.

use std::time::Instant;

use xds::{Changes, Cut, Known, Phase, Reason, State, TypeUrl, Update};

use super::course::Course;
use super::origins::Origins;
use super::tally::Rule;
use super::zone::Zone;

impl Origins {
    /// The relay writes snapshots for the last time, or is killed before it does so.
    pub(crate) fn save_views(&mut self, course: &mut Course) {
        if !course.besides.amnesia || course.rng.chance(30) {
            return;
        }
        for zone in self.zones.iter_mut().filter(|zone| zone.below.is_none()) {
            let saved = zone.save(course.clock.instant());
            (0..saved).for_each(|_| course.tally.hit(Rule::Warm));
        }
    }
}

impl Zone {
    /// Writes the snapshot of the view; returns how many types it has. One of which nothing is known replaces no earlier one.
    pub(crate) fn save(&mut self, now: Instant) -> usize {
        let known = self.writer.view.knowledge(now);
        if !self.writer.attached || known.is_empty() {
            return 0;
        }
        let whole = known.whole();
        let slots = whole.slots().flat_map(|(type_url, slot)| {
            let all = slot.wildcard.iter().map(|state| (state, true));
            all.chain([(&slot.named, false)])
                .map(move |(state, wildcard)| changes(type_url, state, wildcard))
        });
        let saved = slots.fold(Cut::default(), |cut, changes| cut.with(&changes).0);
        self.saved = Some(saved.with_holds(whole.holds().to_vec()));
        whole.slots().count()
    }
}

/// What a snapshot has of one half of a type: nothing that ends by itself, and no absence that nobody has said.
fn changes(type_url: &TypeUrl, state: &State, wildcard: bool) -> Changes {
    let outlives = |name| state.expiry(name).is_none();
    let updates = state.entries().iter().filter_map(|(name, known)| match known {
        Known::Present(resource) if outlives(name) => Some(Update::Put(resource.clone(), None)),
        Known::Absent(Reason::Said) => Some(Update::Absent(name.clone(), Reason::Said)),
        Known::Present(_) | Known::Absent(_) | Known::Held(_) => None,
    });
    let whole = state.complete() && state.resources().all(|resource| outlives(resource.name()));
    Changes {
        type_url: type_url.clone(),
        wildcard,
        updates: updates.collect(),
        complete: wildcard.then_some(whole),
        answered: None,
        phase: Phase::Steady,
    }
}
