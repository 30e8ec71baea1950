//! How much memory new names and views may take until somebody looks at the memory of the process again.
//!
//! Owns the room, over all views. A name that nobody had asked for takes some hundred bytes, a view some hundred kilobytes, and many come
//! within a second. Does not know how memory is measured.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Full;

/// Room for new names and views, in all views together.
#[derive(Debug)]
pub(super) struct Vacancy {
    bytes: AtomicUsize,
    /// The limit of memory from which it follows, in bytes.
    memory: AtomicUsize,
}

/// The memory of a name that is new, generously: its text, its lease, what the view asks its control plane for, and what is known of it.
/// With names of 30 bytes that was some 300 bytes, and twice that while the names came.
pub(super) const NAME_BYTES: usize = 1024;
/// The memory of a view that is new, generously: its tables and its upstream stream take some 57 KiB, six copies of the longest key 24 KiB,
/// and the largest node by default 64 KiB.
pub(super) const VIEW_BYTES: usize = 160 * 1024;

impl Default for Vacancy {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(usize::MAX),
            memory: AtomicUsize::new(0),
        }
    }
}

impl Vacancy {
    /// So many bytes are left of this limit of memory; 0 is no limit.
    pub(super) fn set(&self, left: usize, memory: usize) {
        self.memory.store(memory, Ordering::Relaxed);
        self.bytes
            .store(if memory == 0 { usize::MAX } else { left }, Ordering::Relaxed);
    }

    /// Takes room for what is new, for a connection that has `own` of its kind.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn take(&self, bytes: usize, own: usize) -> Result<(), Full> {
        let taken = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Full {
            limit: "memory",
            value: self.memory.load(Ordering::Relaxed),
            own,
            left: 0,
        })
    }
}
