//! A question that is asked on a stream of its own: one that a server has passed over (E-27), or whether it reads versions (E-04).
//!
//! Owns how long that takes, and what its answer means: only content shows anything. Knows nothing of the stream that
//! the types share, and of the view: what it hears is not kept.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::clock::now;
use super::leg::Leg;
use crate::protocol::{PassedOver, Sample};
use crate::xds::{Changes, Update};

/// What is asked.
pub(super) enum Question {
    /// For what a server has passed over. Any content of it shows that the server was deaf.
    PassedOver(PassedOver),
    /// Whether the server sends again what it is sent the version of.
    Versions(Sample),
}

/// The question, and its stream.
pub(super) struct Probe {
    question: Question,
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
    pub(super) fn new(question: Question, mut leg: Leg) -> Self {
        match &question {
            Question::PassedOver(question) => question.wants.iter().for_each(|want| drop(leg.want(want))),
            Question::Versions(sample) => drop(leg.client().handle_sample(sample)),
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
        let shows = |update: &Update| match &self.question {
            Question::PassedOver(_) => matches!(update, Update::Put(..)),
            Question::Versions(sample) => sample.is_failed_by(update),
        };
        if updates.any(shows) {
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

    /// Returns the question, and whether content has come.
    pub(super) fn into_outcome(self) -> (Question, bool) {
        (self.question, self.answered.is_some())
    }
}
