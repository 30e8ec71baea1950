//! What a view keeps: the figures for people, and the bound on it.
//!
//! Owns the figures, and which sessions must keep less or end when there is too much old content. Only tells them so.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::View;
use classes::Class;
use xds::{Slot, TypeUrl};

/// How many bytes of old content laggards may hold back in a view while memory is short.
const SHORT: usize = 16 << 20;

/// How many leases one call looks at.
const SETTLE_AT_ONCE: usize = 1 << 18;

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
    /// Returns the sessions that have not dealt with a change, the longest first, each with the generation of that change.
    #[must_use]
    pub fn laggards(&self) -> Vec<(u64, u32)> {
        let seats = self.sets.read();
        let laggards = seats
            .iter()
            .filter_map(|(number, seated)| Some((seated.bell.since()?, number)));
        let mut laggards: Vec<_> = laggards.collect();
        laggards.sort_unstable();
        laggards
    }

    /// How many bytes are in memory of content that was replaced since the oldest change that some session has not dealt with. It
    /// includes what the library still keeps of that time, which has a bound of its own.
    #[must_use]
    pub fn pinned(&self) -> usize {
        let oldest = self.laggards().first().map(|(since, _)| *since);
        oldest.map_or(0, |oldest| self.writer.lock().bytes_since(oldest))
    }

    /// K-21: must be called about every second. If more is pinned than allowed, tells as many as necessary of the longest laggards to
    /// end. Spares sessions that began to lag after the last call. Returns whether any session was told.
    pub fn relieve(&self) -> bool {
        let checked = self.checked.swap(self.generation(), Ordering::Relaxed);
        let most = self.pinned_bytes_max.load(Ordering::Relaxed);
        most > 0 && self.dismiss_over(most, checked)
    }

    /// Does the same, whatever is allowed, if more is pinned than there may be while memory is short.
    pub fn release_laggards(&self) {
        self.dismiss_over(SHORT, self.checked.load(Ordering::Relaxed));
    }

    /// Tells the longest laggards to end until no more than `most` bytes are pinned, but none that began to lag after the generation
    /// `checked`. Returns whether any was told.
    fn dismiss_over(&self, most: usize, checked: u64) -> bool {
        let mut laggards = self.laggards();
        laggards.retain(|(since, _)| *since <= checked);
        let writer = self.writer.lock();
        let over = laggards.partition_point(|(since, _)| writer.bytes_since(*since) > most);
        drop(writer);
        let sets = self.sets.read();
        let slowest = laggards.iter().take(over);
        let seated: Vec<_> = slowest.filter_map(|(_, seat)| sets.seated(*seat).cloned()).collect();
        drop(sets);
        seated.iter().for_each(|laggard| laggard.bell.dismiss());
        !seated.is_empty()
    }

    /// Must be called about every second. Sessions whose wants have not changed since the last call get equal shared sets, if
    /// there are any. Each call does a bounded amount of work and leaves the rest to later calls.
    pub fn settle(&self) {
        let unsettled = std::mem::take(&mut *self.unsettled.lock());
        let (mut work, mut later) = (0, Vec::new());
        for seat in unsettled {
            if work >= SETTLE_AT_ONCE {
                later.push(seat);
                continue;
            }
            let Some(seated) = self.sets.read().seated(seat).cloned() else {
                continue;
            };
            let mut review = seated.review.lock();
            if std::mem::take(&mut review.changed) {
                later.push(seat);
                continue;
            }
            // While `review` is locked, nobody else changes the session's sets. But the session may have gone, and another may
            // have its number.
            let same = self
                .sets
                .read()
                .seated(seat)
                .is_some_and(|now| Arc::ptr_eq(now, &seated));
            review.noted = false;
            if same {
                let (looked_at, left) = self.sets.settle(seat, usize::MAX);
                work += looked_at;
                left.iter().for_each(|set| self.dissolve(set));
            }
        }
        later.shrink_to_fit();
        self.unsettled.lock().append(&mut later);
    }

    /// Returns the figures for people.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (wanted, leased) = self.leases.count();
        let cut = self.cut();
        // Not inside of the expression below: what is locked there stays locked until its end, and `pinned` locks the same.
        let sets = self.sets.read().sets();
        Summary {
            class: self.class().clone(),
            seats: self.seats(),
            wanted,
            sets,
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
    use crate::ViewSettings;

    /// Whoever reads the sessions twice at once waits for ever if another thread begins to wait for writing in between.
    #[test]
    fn the_figures_read_the_sessions_one_after_the_other() {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            pinned_bytes_per_view: 0,
            names_per_view: 0,
        };
        let view = View::new(Class::default(), settings);
        let _seat = view.enter();
        assert_eq!(view.summary().seats, 1);
    }
}
