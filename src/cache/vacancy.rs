//! How many names may be new until somebody looks at the memory of the process again.
//!
//! Owns the count, over all views. A name that nobody had asked for takes some hundred bytes, and many come within a second. Does not
//! know how memory is measured.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for new names, in all views together.
#[derive(Debug)]
pub(super) struct Vacancy {
    names: AtomicUsize,
    /// The limit of memory from which it follows, in bytes.
    memory: AtomicUsize,
}

/// The memory of a name that is new, generously: its text, its lease, what the view asks its control plane for, and what is known of it.
/// With names of 30 bytes that was some 300 bytes, and twice that while the names came.
const NAME_BYTES: usize = 1024;

impl Default for Vacancy {
    fn default() -> Self {
        Self {
            names: AtomicUsize::new(usize::MAX),
            memory: AtomicUsize::new(0),
        }
    }
}

impl Vacancy {
    /// So many bytes are left of this limit of memory; 0 is no limit.
    pub(super) fn set(&self, left: usize, memory: usize) {
        let names = if memory == 0 { usize::MAX } else { left / NAME_BYTES };
        self.memory.store(memory, Ordering::Relaxed);
        self.names.store(names, Ordering::Relaxed);
    }

    /// Takes room for a new name.
    ///
    /// # Errors
    /// There is none; returns the limit of memory.
    pub(super) fn take(&self) -> Result<(), usize> {
        let taken = self
            .names
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |names| names.checked_sub(1));
        taken.map(drop).map_err(|_| self.memory.load(Ordering::Relaxed))
    }
}
