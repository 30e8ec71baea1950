// SPDX-License-Identifier: Apache-2.0
//! The sessions that must be woken because of a publication.
//!
//! Owns that none is forgotten, and how many are woken at once. Does not know why.

use std::task::Waker;

/// Sessions whose bells have rung, but that were not woken yet.
///
/// One publication may concern every session. A caller with other work on its thread can wake some of them, let other tasks
/// run, and go on. Dropping this wakes those that are left.
#[derive(Debug)]
pub struct Woken(std::vec::IntoIter<Waker>);

/// How many are woken before other tasks may run.
const AT_ONCE: usize = 256;

impl Woken {
    pub(crate) fn new(wakers: Vec<Waker>) -> Self {
        Self(wakers.into_iter())
    }

    /// Wakes some. Returns whether there are more.
    pub fn wake_some(&mut self) -> bool {
        self.0.by_ref().take(AT_ONCE).for_each(Waker::wake);
        self.0.len() > 0
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.by_ref().for_each(Waker::wake);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts wakes.
    #[derive(Default)]
    pub(crate) struct Count(AtomicUsize);

    impl Count {
        pub(crate) fn wakes(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn some_at_a_time_and_in_the_end_all() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let woken = || count.wakes();
        let mut all = Woken::new(vec![waker; 3 * AT_ONCE]);
        assert_eq!(woken(), 0);
        assert!(all.wake_some());
        assert_eq!(woken(), AT_ONCE);
        assert!(all.wake_some());
        assert!(!all.wake_some(), "no turn for nobody");
        assert_eq!(woken(), 3 * AT_ONCE);

        let mut rest = Woken::new(vec![Waker::from(count.clone()); AT_ONCE + 1]);
        assert!(rest.wake_some());
        drop(rest);
        assert_eq!(woken(), 4 * AT_ONCE + 1);
    }
}
