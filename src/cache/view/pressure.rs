// SPDX-License-Identifier: Apache-2.0
//! What a view keeps: the figures for people, and the bound on it.
//!
//! Owns the figures, and which sessions must keep less or end when there is too much old content. Only tells them so.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{View, ViewSettings};
use classes::Class;
use xds::{Slot, TypeUrl};

/// How many bytes of old content laggards may hold back in a view while memory is short.
const SHORT: usize = 16 << 20;

/// The bound on old content, and where the last check of it was.
pub(super) struct Pressure {
    /// The most bytes of old content that sessions may keep in memory; 0: no bound.
    most: AtomicUsize,
    /// The generation at the last check.
    checked: AtomicU64,
}

impl Pressure {
    pub(super) fn new(settings: ViewSettings) -> Self {
        Self {
            most: AtomicUsize::new(settings.pinned_bytes_per_view),
            checked: AtomicU64::new(0),
        }
    }

    pub(super) fn set(&self, settings: ViewSettings) {
        self.most.store(settings.pinned_bytes_per_view, Ordering::Relaxed);
    }
}

/// The figures of a view, for people.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The class of clients that share it.
    pub class: Class,
    /// How many sessions.
    pub seats: usize,
    /// How many names and wildcards they want.
    pub wanted: usize,
    /// How many different sets of them, as far as sessions are settled.
    pub sets: usize,
    /// How many are requested upstream: more than are wanted, while some linger.
    pub leased: usize,
    /// Bytes of old content that sessions keep in memory.
    pub pinned: usize,
    /// For each type: how many resources, and their bytes.
    pub types: Vec<(TypeUrl, usize, usize)>,
}

impl View {
    /// How many bytes are in memory of content that was replaced since the oldest change that some session has not dealt with. It
    /// includes what the library still keeps of that time, which has a bound of its own.
    #[must_use]
    pub fn pinned(&self) -> usize {
        let oldest = self.demand.laggards().first().map(|(since, _)| *since);
        oldest.map_or(0, |oldest| self.head.bytes_since(oldest))
    }

    /// K-21: must be called about every second. If more is pinned than allowed, tells as many as necessary of the longest laggards to
    /// end. Spares sessions that began to lag after the last call. Returns whether any session was told.
    pub fn relieve(&self) -> bool {
        let checked = self.pressure.checked.swap(self.head.generation(), Ordering::Relaxed);
        let most = self.pressure.most.load(Ordering::Relaxed);
        most > 0 && self.dismiss_over(most, checked)
    }

    /// Does the same, whatever is allowed, if more is pinned than there may be while memory is short.
    pub fn release_laggards(&self) {
        self.dismiss_over(SHORT, self.pressure.checked.load(Ordering::Relaxed));
    }

    /// Tells the longest laggards to end until no more than `most` bytes are pinned, but none that began to lag after the generation
    /// `checked`. Returns whether any was told.
    fn dismiss_over(&self, most: usize, checked: u64) -> bool {
        let mut laggards = self.demand.laggards();
        laggards.retain(|(since, _)| *since <= checked);
        let over = self.head.count_over(most, &laggards);
        self.demand.dismiss(laggards.iter().take(over).map(|(_, seat)| *seat))
    }

    /// Returns the figures for people.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (wanted, leased) = self.demand.leases().count();
        let cut = self.cut();
        Summary {
            class: self.class().clone(),
            seats: self.demand.seats(),
            wanted,
            sets: self.demand.sets(),
            leased,
            pinned: self.pinned(),
            types: cut.slots().map(|(type_url, slot)| sizes(type_url, slot)).collect(),
        }
    }
}

fn sizes(type_url: &TypeUrl, slot: &Slot) -> (TypeUrl, usize, usize) {
    let halves = slot.wildcard.iter().chain([&slot.named]);
    let (count, bytes) = halves.fold((0, 0), |(count, bytes), state| {
        (count + state.present(), bytes + state.bytes())
    });
    (type_url.clone(), count, bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Whoever reads the sessions twice at once waits for ever if another thread begins to wait for writing in between.
    #[test]
    fn the_figures_read_the_sessions_one_after_the_other() {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
            names_per_view: 0,
        };
        let view = View::new(Class::default(), settings);
        let _seat = view.enter();
        assert_eq!(view.summary().seats, 1);
    }
}
