// SPDX-License-Identifier: Apache-2.0
//! By which settings the removals of a view are held, and which are not held any more.
//!
//! Owns these settings and the last ends. Holds nothing itself.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;

use xds::{GuardSettings, HoldEvent};

/// What is kept of the guard of a view. The holds themselves are published with the content.
#[derive(Default)]
pub struct Guarded {
    settings: Mutex<GuardSettings>,
    /// What is not held any more, the last of it.
    ended: Mutex<VecDeque<(Instant, HoldEvent)>>,
}

/// How many ends of holds are kept.
const ENDED_MAX: usize = 100;

impl Guarded {
    /// Returns by which settings removals are held.
    #[must_use]
    pub fn settings(&self) -> GuardSettings {
        *self.settings.lock()
    }

    /// Replaces these settings. Returns whether they are others.
    pub(super) fn set(&self, settings: GuardSettings) -> bool {
        std::mem::replace(&mut *self.settings.lock(), settings) != settings
    }

    /// The writer notes that removals are not held any more.
    pub fn note_ended(&self, event: HoldEvent, now: Instant) {
        let mut ended = self.ended.lock();
        if ended.len() == ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back((now, event));
    }

    /// Returns what is not held any more, and since when: the last of it, oldest first.
    #[must_use]
    pub fn ended(&self) -> Vec<(Instant, HoldEvent)> {
        self.ended.lock().iter().cloned().collect()
    }
}
