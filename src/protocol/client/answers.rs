//! The ACKs and NACKs of one type that the server has not been sent yet.
//!
//! Owns their order and their pace. Refuses to know what they are about.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An ACK, or with an error a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) nonce: String,
    /// What the answered response called its version.
    pub(super) version: Arc<str>,
    pub(super) error: Option<String>,
}

/// Answers that are due, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pending: VecDeque<Answer>,
    last: Option<(Answer, Instant)>,
}

/// E-22: an answer that says the same as the last one waits this long.
const PACE: Duration = Duration::from_secs(1);
/// A server that has so many unanswered responses of one type under way has lost count of them itself.
const PENDING: usize = 256;

impl Answers {
    /// Every response gets its own answer (delta), within the bound.
    pub(super) fn push(&mut self, answer: Answer) {
        // E-22: of answers that say the same, only the newest is kept.
        self.pending.retain(|other| !other.repeats(&answer));
        if self.pending.len() == PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back(answer);
    }

    /// The newest response's answer stands for all (SotW). E-21: the latest wins.
    pub(super) fn replace(&mut self, answer: Answer) {
        self.pending.clear();
        self.pending.push_back(answer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether an answer may go out now.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.pending
            .iter()
            .any(|answer| self.at(answer).is_none_or(|at| at <= now))
    }

    /// When the next one that must wait may go out.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.iter().filter_map(|answer| self.at(answer)).min()
    }

    /// The next answer that may go out now; it counts as sent.
    pub(super) fn take(&mut self, now: Instant) -> Option<Answer> {
        let due = self
            .pending
            .iter()
            .position(|answer| self.at(answer).is_none_or(|at| at <= now))?;
        let answer = self.pending.remove(due)?;
        self.last = Some((answer.clone(), now));
        Some(answer)
    }

    /// The newest answer, whether or not it may go out on its own; it counts as sent.
    pub(super) fn take_any(&mut self, now: Instant) -> Option<Answer> {
        let answer = self.pending.pop_back()?;
        self.last = Some((answer.clone(), now));
        Some(answer)
    }

    fn at(&self, answer: &Answer) -> Option<Instant> {
        let (last, sent) = self.last.as_ref()?;
        last.repeats(answer).then(|| *sent + PACE)
    }
}

impl Answer {
    /// Whether this says again what another said: a refusal for the same reason, or an ACK with a nonce that is not new.
    fn repeats(&self, other: &Self) -> bool {
        match (&self.error, &other.error) {
            (Some(a), Some(b)) => a == b && self.version == other.version,
            (None, None) => self.nonce == other.nonce,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}
