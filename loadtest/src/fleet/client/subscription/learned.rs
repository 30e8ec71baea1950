// SPDX-License-Identifier: Apache-2.0
//! Resources of another control plane: what a client gets is learned, and timed from what caused the change, from the mark in it, or
//! behind the first client that saw it.

use std::sync::Arc;

use super::Subscription;
use crate::fleet::client::arrival::Eye;
use crate::fleet::held::Held;
use crate::fleet::violation::Violation;

impl Subscription {
    /// Takes a content that the ledger learns from it.
    pub(super) fn learn(
        &mut self,
        (index, at): (u32, usize),
        body: Option<&[u8]>,
        eye: &mut Eye<'_>,
    ) -> Result<(), Violation> {
        let ledger = Arc::clone(&self.ledger);
        let held = self.held.get(at).copied().unwrap_or_default();
        let Some(lesson) = ledger.learn(index, held.serial(), body, eye.now) else {
            return Ok(());
        };
        let (bell, differs) = (ledger.bell(), held != Held::of(&lesson.content));
        if !eye.awaited || !differs {
            return self.move_to((index, at), &lesson.content, &[], eye);
        }
        if !bell.trials.is_active() {
            if let Some(since) = lesson.since {
                eye.tally.deliver(eye.now.saturating_duration_since(since));
                self.delivered += 1;
            }
        } else if eye.complete && bell.trials.arrive(eye.tried, eye.now, eye.tally) {
            bell.delivered.notify_waiters();
        }
        self.move_to((index, at), &lesson.content, &[], eye)
    }

    /// Whether it lacks a change that another client, which held the same, has seen.
    pub(crate) fn lacks_a_change(&self) -> bool {
        let held = self.held.iter().enumerate();
        let mut serials = held.filter_map(|(at, held)| Some((self.index_at(at)?, held.serial()?)));
        self.ledger.is_learning() && serials.any(|(index, serial)| self.ledger.is_superseded(index, serial))
    }
}
