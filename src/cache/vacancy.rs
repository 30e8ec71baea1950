// SPDX-License-Identifier: Apache-2.0
//! How much memory new names, views and versions may take until somebody looks at the memory of the process again.
//!
//! Owns the room, over all views. A name that nobody had asked for takes some hundred bytes, a view some hundred kilobytes, and many come
//! within a second. Does not know how memory is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Full;

/// Room for new names, views and versions, in all views together.
#[derive(Debug)]
pub(super) struct Vacancy {
    bytes: AtomicUsize,
    /// What of it requests have taken that are still being read: whoever looks at the memory cannot see all of that yet.
    reserved: AtomicUsize,
    /// The limit of memory from which it follows, in bytes.
    memory: AtomicUsize,
}

/// The memory of a name that is new, generously: its text, its lease, what the view asks its control plane for, and what is known of it.
/// With names of 30 bytes that was some 300 bytes, and twice that while the names came.
pub(super) const NAME_BYTES: usize = 1024;
/// The memory of a view that is new, generously: its tables and its upstream stream take some 57 KiB, six copies of the longest key 24 KiB,
/// and the largest node by default 64 KiB.
pub(super) const VIEW_BYTES: usize = 160 * 1024;

/// The memory of a version that a client brings, generously. With names of 40 bytes that was some 160 bytes, and three times that while they
/// came.
const VERSION_BYTES: usize = 512;
/// From so many names on a connection has many.
const MANY: usize = 4096;
/// What versions, and the names of a connection that has many, leave free beside what the names of others leave free: so much of the limit
/// in percent, from where on new clients are refused...
const NEWCOMERS_PART: usize = 7;
/// ... and so many bytes, or a quarter of the limit, for what is read and sorted of the requests that bring them.
const REQUESTS_BYTES: usize = 64 << 20;

/// Room for the versions of one request. What is not kept of it is free again when this is dropped.
#[derive(Debug)]
pub struct Room {
    vacancy: Arc<Vacancy>,
    bytes: usize,
    kept: usize,
}

impl Default for Vacancy {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(usize::MAX),
            reserved: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
        }
    }
}

impl Vacancy {
    /// So many bytes are left of this limit of memory; 0 is no limit.
    pub(super) fn set(&self, left: usize, memory: usize) {
        self.memory.store(memory, Ordering::Relaxed);
        let left = left.saturating_sub(self.reserved.load(Ordering::Relaxed));
        self.bytes
            .store(if memory == 0 { usize::MAX } else { left }, Ordering::Relaxed);
    }

    /// Takes room for what is new, for a connection that has `own` names.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn take(&self, bytes: usize, own: usize) -> Result<(), Full> {
        let memory = self.memory.load(Ordering::Relaxed);
        let spare = if own < MANY { 0 } else { spare(memory) };
        self.shrink(bytes, spare).map_err(|()| Full {
            limit: "memory",
            value: memory,
            own,
            left: 0,
        })
    }

    /// Takes room for versions that a client brings (B-34).
    ///
    /// # Errors
    /// There is none, under this limit of memory.
    pub(super) fn bring(self: &Arc<Self>, versions: usize) -> Result<Room, usize> {
        let (memory, bytes) = (
            self.memory.load(Ordering::Relaxed),
            versions.saturating_mul(VERSION_BYTES),
        );
        let spare = if bytes == 0 { 0 } else { spare(memory) };
        self.shrink(bytes, spare).map_err(|()| memory)?;
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        let vacancy = self.clone();
        Ok(Room {
            vacancy,
            bytes,
            kept: 0,
        })
    }

    /// Takes so many bytes, if so many are left then.
    fn shrink(&self, bytes: usize, spare: usize) -> Result<(), ()> {
        let take = |left: usize| left.checked_sub(bytes).filter(|left| *left >= spare);
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(drop)
    }
}

/// Returns how many bytes are left free of this limit of memory by what comes in large numbers.
fn spare(memory: usize) -> usize {
    memory / 100 * NEWCOMERS_PART + REQUESTS_BYTES.min(memory / 4)
}

impl Room {
    /// So many of the versions are kept.
    pub fn keep(&mut self, versions: usize) {
        self.kept = versions.saturating_mul(VERSION_BYTES).min(self.bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.vacancy.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        let give = |left: usize| Some(left.saturating_add(self.bytes - self.kept));
        let _ = self
            .vacancy
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }
}
