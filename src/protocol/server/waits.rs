// SPDX-License-Identifier: Apache-2.0
//! What of one type of a stream waits, and since or until when.
//!
//! Owns its storage, so that it takes no memory where nothing waits. Does not know what follows from it, and knows no names.

use std::time::Instant;

/// What waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Rejected listeners until then: by then an address is free that one of them takes. Changed endpoints until then, for the routes of the
    /// same burst.
    Again,
    /// Removals since then, while other names are added.
    Removals,
}

/// What waits of a type. Mostly that is nothing, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Waits(Option<Box<[Option<Instant>; 2]>>);

impl Waits {
    /// Returns since or until when this waits.
    pub(super) fn get(&self, wait: Wait) -> Option<Instant> {
        *self.0.as_ref()?.get(wait as usize)?
    }

    /// This waits since or until then; `None`: it does not wait.
    pub(super) fn set(&mut self, wait: Wait, at: Option<Instant>) {
        if at.is_none() && self.0.is_none() {
            return;
        }
        if let Some(place) = self.0.get_or_insert_default().get_mut(wait as usize) {
            *place = at;
        }
        self.0.take_if(|waits| waits.iter().all(Option::is_none));
    }

    /// Takes note of the time. Returns whether this has waited until now.
    pub(super) fn is_over(&mut self, wait: Wait, now: Instant) -> bool {
        let over = self.get(wait).is_some_and(|until| until <= now);
        if over {
            self.set(wait, None);
        }
        over
    }
}
