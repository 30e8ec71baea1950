// SPDX-License-Identifier: Apache-2.0
//! Streams that hold much, and whose clients have acknowledged nothing.
//!
//! Owns which of them end when memory is short: the largest first. Does not know how memory is measured, and what a stream holds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// All such streams.
#[derive(Debug, Default)]
pub(super) struct Burdens(Mutex<Vec<Weak<Burden>>>);

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Burden {
    /// How many names and versions it holds.
    entries: AtomicUsize,
    /// Whether it was there at an earlier look. What has just come may still acknowledge.
    seen: AtomicBool,
    ends: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// From so many names and versions on a stream holds much.
const MUCH: usize = 4096;
/// About what one of them takes, in bytes.
const ENTRY_BYTES: usize = 200;

impl Burdens {
    /// Returns the burden of a stream with so many names and versions, if that is much.
    pub(super) fn of(&self, entries: usize) -> Option<Arc<Burden>> {
        if entries < MUCH {
            return None;
        }
        let burden = Arc::new(Burden::default());
        burden.weighs(entries);
        let mut all = self.0.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&burden));
        Some(burden)
    }

    /// Ends the largest, until about so many bytes will be free. Must be called once a second while memory is short.
    pub(super) fn relieve(&self, bytes: usize) {
        let mut all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        all.retain(|burden| burden.seen.swap(true, Ordering::Relaxed));
        all.sort_by_cached_key(|burden| std::cmp::Reverse(burden.entries.load(Ordering::Relaxed)));
        let mut freed = 0;
        for burden in all {
            if freed >= bytes {
                break;
            }
            freed += burden.entries.load(Ordering::Relaxed) * ENTRY_BYTES;
            burden.end();
        }
    }
}

impl Burden {
    /// It holds so many names and versions now.
    pub(super) fn weighs(&self, entries: usize) {
        self.entries.store(entries, Ordering::Relaxed);
    }

    fn end(&self) {
        self.ends.store(true, Ordering::Release);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// Ready when its stream must end.
    pub(super) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        *self.waker.lock() = Some(cx.waker().clone());
        match self.ends.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B-34: the largest ends first, no more than necessary, and none that has just come.
    #[test]
    fn the_largest_ends_first() {
        let burdens = Burdens::default();
        let cx = Context::from_waker(Waker::noop());
        assert!(burdens.of(MUCH - 1).is_none());
        let [small, large, middle] = [MUCH, 4 * MUCH, 2 * MUCH].map(|entries| burdens.of(entries).unwrap());
        let ends = || [&small, &large, &middle].map(|burden| burden.poll_end(&cx).is_ready());
        burdens.relieve(usize::MAX);
        assert_eq!(ends(), [false; 3]);
        let late = burdens.of(9 * MUCH).unwrap();
        burdens.relieve(5 * MUCH * ENTRY_BYTES);
        assert_eq!(ends(), [false, true, true]);
        assert!(late.poll_end(&cx).is_pending());
        drop((large, middle, late));
        assert!(burdens.of(MUCH).is_some() && burdens.0.lock().len() == 2);
    }
}
