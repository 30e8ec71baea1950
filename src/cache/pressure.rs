//! What a view keeps: for people who ask, and for the bound on it.
//!
//! Owns the figures, and who must keep less or end when too much is held back. Refuses to do that itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::view::View;
use crate::xds::{Class, Slot, TypeUrl};

/// So many calls are waited for what was let go to leave memory: longer than the library keeps what nobody asks for.
const IN_VAIN_MAX: u32 = 60;

/// So many leases are looked at in one call.
const SETTLE_AT_ONCE: usize = 1 << 18;

/// What a person is told of a view.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Who shares it.
    pub class: Class,
    /// How many sessions.
    pub seats: usize,
    /// How many names and wildcards they want.
    pub wanted: usize,
    /// How many different sets of them, as far as they are settled.
    pub sets: usize,
    /// How many are asked for upstream; more than are wanted while some linger.
    pub leased: usize,
    /// Bytes of old content that sessions hold back.
    pub pinned: usize,
    /// Each type: how many resources, and their bytes.
    pub types: Vec<(TypeUrl, usize, usize)>,
}

impl View {
    /// Who has not dealt with a change for longest, and since which generation.
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

    /// How many bytes of old content are in memory since the oldest change that some session has not dealt with, and of
    /// hashes that laggards keep instead. It includes what the library still keeps of that time, which has a bound of its own.
    #[must_use]
    pub fn pinned(&self) -> usize {
        let oldest = self.laggards().first().map(|(since, _)| *since);
        oldest.map_or(0, |oldest| self.writer.lock().bytes_since(oldest)) + self.baselines.bytes()
    }

    /// To be called about every second. Where more is pinned than allowed, those that lag longest are told to keep only hashes
    /// of what they hold, as many as it takes; where these alone are more than allowed, or after a minute in which that
    /// did not help, those that lag longest are told to end. Who began to lag only after the last call is spared. Gives whether
    /// anybody was told to end.
    pub fn relieve(&self) -> bool {
        let checked = self.checked.swap(self.generation(), Ordering::Relaxed);
        let most = self.settings.pinned_bytes_per_view;
        let mut laggards = self.laggards();
        laggards.retain(|(since, _)| most > 0 && *since <= checked);
        let kept = self.baselines.bytes();
        let writer = self.writer.lock();
        let over = laggards.partition_point(|(since, _)| writer.bytes_since(*since) + kept > most);
        drop(writer);
        laggards.truncate(over);
        let sets = self.sets.read();
        let seated = laggards.iter().filter_map(|(_, seat)| sets.seated(*seat).cloned());
        let seated: Vec<_> = seated.collect();
        drop(sets);
        let heavy: Vec<_> = seated.iter().filter(|laggard| !laggard.bell.is_light()).collect();
        let in_vain = if over > 0 && heavy.is_empty() {
            self.in_vain.fetch_add(1, Ordering::Relaxed)
        } else {
            self.in_vain.swap(0, Ordering::Relaxed)
        };
        if kept > most || in_vain >= IN_VAIN_MAX {
            self.in_vain.store(0, Ordering::Relaxed);
            // Those at the same point hold the same: it is gone when all of them are.
            let first = laggards.first().map(|(since, _)| *since);
            let oldest = laggards.partition_point(|(since, _)| Some(*since) == first);
            seated.iter().take(oldest).for_each(|laggard| laggard.bell.dismiss());
            return oldest > 0;
        }
        heavy.into_iter().for_each(|laggard| laggard.bell.lighten());
        false
    }

    /// To be called about every second. Sessions that have not changed their mind since the last call are given the sets
    /// that equal theirs; the rest is done at later calls, so that each takes only moments.
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
            // With its turn in hand nobody else changes what it has; but it may have gone, and its number be another's.
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

    /// What a person is told.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (wanted, leased) = self.leases.count();
        let cut = self.cut();
        Summary {
            class: self.class().clone(),
            seats: self.seats(),
            wanted,
            sets: self.sets.read().sets(),
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
