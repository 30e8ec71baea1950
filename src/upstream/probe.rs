// SPDX-License-Identifier: Apache-2.0
//! A question that is asked on a stream of its own, because a server leaves something open (E-04, E-27).
//!
//! Owns how long that takes. Knows nothing of the stream that the types share, and of the view: what it hears is not kept.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::clock::now;
use super::leg::Leg;
use crate::protocol::Doubt;
use crate::xds::Changes;

/// The question, and its stream.
pub(super) struct Probe {
    doubt: Doubt,
    leg: Leg,
    /// When the answer has shown what was doubted.
    shown: Option<Instant>,
    /// When it is given up.
    until: Instant,
}

/// What may have been created at this moment comes on both streams, at nearly the same time.
const BOTH: Duration = Duration::from_secs(1);

impl Probe {
    /// Asks the question on this stream.
    pub(super) fn new(doubt: Doubt, mut leg: Leg) -> Self {
        leg.client().handle_question(&doubt);
        Self {
            doubt,
            until: now() + leg.patience(),
            leg,
            shown: None,
        }
    }

    pub(super) fn turn(&mut self) {
        let mut said = Vec::new();
        self.leg.turn(&mut said);
        self.note(&said);
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut said = Vec::new();
        let poll = self.leg.poll(cx, &mut said);
        self.note(&said);
        poll
    }

    fn note(&mut self, said: &[Changes]) {
        let dialect = self.leg.client().dialect();
        let mut updates = said.iter().flat_map(|changes| &changes.updates);
        if updates.any(|update| self.doubt.is_shown_by(update, dialect)) {
            self.shown.get_or_insert_with(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.leg.poll_timeout().into_iter().chain([self.ends()]).min()
    }

    fn ends(&self) -> Instant {
        self.shown.map_or(self.until, |shown| shown + BOTH)
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends() <= now()
    }

    /// Returns the doubt, and whether the answer has shown it.
    pub(super) fn into_outcome(self) -> (Doubt, bool) {
        (self.doubt, self.shown.is_some())
    }
}
