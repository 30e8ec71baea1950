// SPDX-License-Identifier: Apache-2.0
//! What the writer of a view holds back for what its clients read of other servers (D-11, D-12), and what it does not hold any more.
//!
//! Owns the order of a turn, as the shell has it. Does not know what a control plane says.

use std::sync::Arc;
use std::time::Instant;

use cache::{Scopes, beside};
use xds::{Beside, Changes, GuardSettings, HoldReason, Name, TypeUrl};

use super::tally::{Rule, Tally};
use super::writer::Writer;

impl Writer {
    /// What clients read of other servers is found among these views.
    pub(crate) fn look_beside(&mut self, scopes: &Arc<Scopes>) {
        self.scopes = Some(scopes.clone());
    }

    pub(crate) const fn looks_beside(&self) -> bool {
        self.scopes.is_some()
    }

    /// What its clients read of other servers. If it is `watching`, the writer is woken when that changes.
    fn beside(&self, watching: bool) -> Option<Beside> {
        let scopes = self.scopes.as_ref()?;
        beside(scopes, &self.view, watching)
    }

    /// What waits and is not said again by a source that says all it has each time has been taken back.
    pub(crate) fn hold_again(&mut self, changes: &mut Vec<Changes>, now: Instant) {
        self.guard.handle_settings(GuardSettings {
            unready: self.view.guarded().settings().unready,
            ..GuardSettings::OFF
        });
        self.guard.hear_again(changes, &self.view.cut(), now);
    }

    /// Takes out of what is to be published next what must wait for other servers.
    pub(crate) fn cross(&mut self, changes: &mut [Changes], now: Instant) {
        let beside = self.beside(false);
        self.guard.cross(changes, &self.view.cut(), beside.as_ref(), now);
    }

    /// Takes what waits for nothing any more.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Changes> {
        let beside = if self.guard.is_empty() { None } else { self.beside(true) };
        let wanted = |type_url: &TypeUrl, name: &Name| match &beside {
            Some(beside) => beside.wants(type_url, name),
            None => self.view.demand().wants(type_url, name),
        };
        self.guard.look(&self.view.cut(), beside.as_ref(), wanted, now)
    }

    /// When `release` is due.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.guard.poll_timeout()
    }

    /// Publishes what is held now.
    pub(crate) fn note_holds(&mut self, tally: &mut Tally) {
        let Some((holds, events)) = self.guard.take_told() else {
            return;
        };
        self.view.publish_holds(holds);
        for event in events {
            tally.hit(match event.reason {
                HoldReason::Unready => Rule::D12,
                HoldReason::Mass | HoldReason::Referenced => Rule::Hold,
            });
        }
    }
}
