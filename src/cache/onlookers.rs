// SPDX-License-Identifier: Apache-2.0
//! Views whose writers wait for something outside their views.
//!
//! Owns that each is woken once, by the next change. Does not know for what it waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::view::View;

/// The views whose writers are woken at the next change.
#[derive(Default)]
pub(crate) struct Onlookers {
    views: Mutex<Vec<Weak<View>>>,
    /// Whether there are any: a change that nobody waits for costs no lock.
    any: AtomicBool,
}

impl Onlookers {
    /// The writer of this view is woken at the next change.
    pub(crate) fn add(&self, view: &Arc<View>) {
        let mut views = self.views.lock();
        let is_known = |known: &Weak<View>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(view));
        if !views.iter().any(is_known) {
            views.push(Arc::downgrade(view));
        }
        self.any.store(true, Ordering::Release);
    }

    /// Something has changed.
    pub(crate) fn wake(&self) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let views = {
            let mut views = self.views.lock();
            self.any.store(false, Ordering::Release);
            std::mem::take(&mut *views)
        };
        views
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|view| view.mailbox().wake());
    }
}
