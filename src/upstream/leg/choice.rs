// SPDX-License-Identifier: Apache-2.0
//! The dialect of a leg's attempts (E-23).
//!
//! Owns the present choice and its reason. What holds for all streams to the server is the target's.

use crate::protocol::{Declined, Next, Trial, Why};
use crate::upstream::target::ServerTarget;
use crate::xds::Dialect;

/// The dialect that a leg uses, and why.
pub(super) struct DialectChoice {
    trial: Trial,
    why: Why,
}

impl DialectChoice {
    /// With `decides`, what the leg learns holds for all streams to the server.
    pub(super) const fn new(decides: bool) -> Self {
        Self {
            trial: Trial::new(decides),
            why: Why::Preferred,
        }
    }

    pub(super) const fn why(&self) -> &Why {
        &self.why
    }

    /// Chooses the dialect of the next attempt. Returns it if the dialect or the reason is another one than `present` had.
    pub(super) fn next(&mut self, target: &ServerTarget, present: Dialect) -> Option<Dialect> {
        let (dialect, why) = target.next_dialect(&self.trial);
        if (dialect, &why) == (present, &self.why) {
            return None;
        }
        self.why = why;
        Some(dialect)
    }

    /// The server answers in this dialect.
    pub(super) fn answered(&mut self, target: &ServerTarget, dialect: Dialect) {
        target.answered(&mut self.trial, dialect);
    }

    /// The server ended a stream before it answered. With `other`, what is wanted can be asked for in the other dialect.
    pub(super) fn declined(&mut self, target: &ServerTarget, declined: Declined, other: bool) -> Next {
        target.declined(&mut self.trial, declined, other)
    }

    /// Whether the server seems not to speak delta.
    pub(super) const fn is_without_delta(&self) -> bool {
        self.trial.is_without_delta()
    }
}
