//! A question that a server has passed over, asked anew on a stream of its own (E-27).
//!
//! Owns how long that takes, and what its answer means: only content proves that the server was deaf. Knows nothing of the stream that
//! the types share, and of the view: what it hears is not kept.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::clock::now;
use super::leg::Leg;
use crate::protocol::PassedOver;
use crate::xds::{Changes, Update};

/// The question, and its stream.
pub(super) struct Probe {
    question: PassedOver,
    leg: Leg,
    /// When the server has sent something of what it was asked for.
    answered: Option<Instant>,
    /// When it is given up.
    until: Instant,
}

/// What may have been created at this moment comes on both streams, at nearly the same time.
const BOTH: Duration = Duration::from_secs(1);

impl Probe {
    /// Asks the question on this stream.
    pub(super) fn new(question: PassedOver, mut leg: Leg) -> Self {
        for want in &question.wants {
            leg.want(want);
        }
        Self {
            question,
            until: now() + leg.patience(),
            leg,
            answered: None,
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
        let mut updates = said.iter().flat_map(|changes| &changes.updates);
        if updates.any(|update| matches!(update, Update::Put(..))) {
            self.answered.get_or_insert_with(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.leg.poll_timeout().into_iter().chain([self.ends()]).min()
    }

    fn ends(&self) -> Instant {
        self.answered.map_or(self.until, |answered| answered + BOTH)
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends() <= now()
    }

    /// Returns the question if it was answered here.
    pub(super) fn into_answered(self) -> Option<PassedOver> {
        self.answered.map(|_| self.question)
    }
}
