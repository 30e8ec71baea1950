// SPDX-License-Identifier: Apache-2.0
//! What is known in a view now, what was known before it, and what an earlier run of the relay knew.
//!
//! Owns that there is one current cut with a generation, who replaces it, and what is kept of older content. Does not know who reads it.

mod earlier;
mod knowledge;
mod replaced;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard};

pub use knowledge::Knowledge;
use replaced::Replaced;

use xds::{Brief, Changes, Cut, Hold, Name, Older, Resource, ServerState, TypeUrl};

/// The current cut of a view, and its past.
///
/// Invariant: only who has the pen replaces the cut.
#[derive(Default)]
pub struct Head {
    cut: ArcSwap<Cut>,
    generation: AtomicU64,
    /// How many have replaced the cut, or are about to, and have not rung all bells for that.
    ringing: AtomicUsize,
    replaced: Mutex<Replaced>,
    /// What an earlier run of the relay knew, as long as it may be needed.
    restored: ArcSwapOption<Cut>,
}

/// The right to replace the cut, which one at a time has.
pub(super) struct Pen<'a> {
    head: &'a Head,
    replaced: MutexGuard<'a, Replaced>,
}

/// The bells are rung for a new cut. Dropping it says that all have rung.
pub(super) struct Ringing<'a>(&'a Head);

impl Drop for Ringing<'_> {
    fn drop(&mut self) {
        self.0.ringing.fetch_sub(1, Ordering::Release);
    }
}

impl<'a> Pen<'a> {
    /// Notes what the changes are about to replace in the cut.
    pub(super) fn note(&mut self, cut: &Cut, changes: &Changes, history_bytes: usize) {
        let generation = self.head.generation() + 1;
        self.replaced.note(cut, changes, generation, history_bytes);
    }

    /// Replaces the cut by one with other content. The caller rings the bells.
    pub(super) fn advance(&self, cut: Cut) -> Ringing<'a> {
        // Who reads the new cut must find that not all bells have rung.
        self.head.ringing.fetch_add(1, Ordering::AcqRel);
        let generation = self.head.generation() + 1;
        self.put(cut);
        self.head.generation.store(generation, Ordering::Relaxed);
        Ringing(self.head)
    }

    /// Replaces the cut by one with the same content.
    pub(super) fn put(&self, cut: Cut) -> Arc<Cut> {
        let cut = Arc::new(cut);
        self.head.cut.store(cut.clone());
        cut
    }
}

impl Head {
    /// Waits until nobody else replaces the cut.
    pub(super) fn take_pen(&self) -> Pen<'_> {
        Pen {
            head: self,
            replaced: self.replaced.lock(),
        }
    }

    /// Returns what is known now.
    #[must_use]
    pub fn cut(&self) -> Arc<Cut> {
        self.cut.load_full()
    }

    /// Whether bells are yet to be rung for what the cut shows.
    pub(super) fn is_ringing(&self) -> bool {
        self.ringing.load(Ordering::Acquire) > 0
    }

    /// The state of the server now.
    #[must_use]
    pub fn server_state(&self) -> ServerState {
        self.cut.load().server_state()
    }

    /// How many times something was published.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Returns the holds.
    #[must_use]
    pub fn holds(&self) -> Arc<Vec<Hold>> {
        self.cut.load().holds().clone()
    }

    /// Returns the older contents that clients go on using, as far as what they name is kept for them.
    #[must_use]
    pub fn older(&self) -> Arc<Vec<Older>> {
        self.cut.load().older().clone()
    }

    /// The writer publishes why the server has not answered on its present stream. Wakes nobody: a session that waits for an
    /// answer reads it when its time is over.
    pub fn publish_reason(&self, reason: Option<&str>) {
        let pen = self.take_pen();
        let cut = self.cut();
        if cut.reason() != reason {
            pen.put(cut.with_reason(reason));
        }
    }

    /// Returns the content of a name with this version that was replaced, if it is kept.
    pub(super) fn replaced_version(&self, type_url: &TypeUrl, name: &Name, version: Brief) -> Option<Arc<Resource>> {
        let mut replaced = self.replaced.lock();
        let mut all = replaced.earlier().of_name(type_url, name);
        let found = all.find(|(content, _)| Brief::from(content.version()) == version);
        found.map(|(content, _)| content.clone())
    }

    /// Returns what was replaced of a name after a time, if clients have accepted it.
    pub(super) fn accepted(&self, type_url: &TypeUrl, name: &Name, after: Option<Instant>) -> Vec<Arc<Resource>> {
        let mut replaced = self.replaced.lock();
        let all = replaced.earlier().of_name(type_url, name);
        let all = all.filter(|(content, at)| content.accepted() != 0 && after.is_none_or(|after| *at > after));
        all.map(|(content, _)| content.clone()).collect()
    }

    /// Returns what was replaced after a time, if clients have accepted it.
    pub(super) fn all_accepted(&self, after: Option<Instant>) -> Vec<Older> {
        let mut replaced = self.replaced.lock();
        let all = replaced.earlier().all();
        all.filter(|older| after.is_none_or(|after| older.since > after))
            .collect()
    }

    /// How many bytes of content that was replaced in this generation or later are still in memory.
    pub(super) fn bytes_since(&self, generation: u64) -> usize {
        self.replaced.lock().bytes_since(generation)
    }

    /// Returns how many of these generations, the oldest first, have more than `most` bytes of later content in memory.
    pub(super) fn count_over(&self, most: usize, generations: &[(u64, u32)]) -> usize {
        let replaced = self.replaced.lock();
        generations.partition_point(|(since, _)| replaced.bytes_since(*since) > most)
    }

    /// Keeps what an earlier run knew.
    pub(super) fn set_restored(&self, restored: Cut) {
        self.restored.store(Some(Arc::new(restored)));
    }

    /// Returns what an earlier run knew, until the server can provide all of it.
    #[must_use]
    pub fn restored(&self) -> Option<Arc<Cut>> {
        self.restored.load_full()
    }

    /// Drops what an earlier run knew: the server can provide all of it. Returns whether there was anything.
    pub fn forget_restored(&self) -> bool {
        self.restored.load().is_some() && self.restored.swap(None).is_some()
    }

    /// Returns the types that are served without the server's word: those with content of an earlier run, for which the server has
    /// not answered since, and those with any content while the server is away.
    #[must_use]
    pub fn stale(&self) -> Vec<TypeUrl> {
        let cut = self.cut();
        let away = cut.server_state() == ServerState::Failing;
        let stale = cut
            .slots()
            .filter(|(_, slot)| slot.stale() || away && slot.present() > 0);
        stale.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// Returns all that a later run may begin with, and these older contents.
    pub(super) fn knowledge(&self, older: Vec<Older>) -> Knowledge {
        Knowledge::new(self.cut(), self.restored(), older)
    }
}
