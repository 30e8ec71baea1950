// SPDX-License-Identifier: Apache-2.0
//! Identities of values.
//!
//! Owns the counter. Does not know the values.

use std::sync::atomic::{AtomicU64, Ordering};

/// Returns an id that no other value in this process has; 0 means none.
pub(crate) fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
