//! The ACKs and NACKs of one type that the server has not been sent yet.
//!
//! Owns their order and when each may go out. Refuses to know what they are about.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::refusals::{Refusal, Refusals};

/// An ACK, or with a refusal a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) nonce: String,
    pub(super) refusal: Option<Refusal>,
}

/// Answers to be sent, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Acks {
    pending: VecDeque<Pending>,
    /// The nonce of the last ACK, and when that was sent.
    accepted: Option<(String, Instant)>,
    /// E-22: what was refused.
    refusals: Refusals,
}

/// An answer, and when it may go out; `None`: now.
#[derive(Debug)]
struct Pending {
    ack: Ack,
    at: Option<Instant>,
}

/// An ACK with a nonce that is not new waits this long.
const PACE: Duration = Duration::from_secs(1);
/// A server that has so many unanswered responses of one type under way has lost count of them itself.
const PENDING: usize = 256;

impl Acks {
    /// Every response gets its own answer (delta), within the bound.
    pub(super) fn push(&mut self, ack: Ack, now: Instant) {
        // E-22: of answers that say the same, only the newest is kept.
        self.pending.retain(|other| !ack.repeats(&other.ack));
        if self.pending.len() == PENDING {
            self.pending.pop_front();
        }
        let at = self.at(&ack, now);
        self.pending.push_back(Pending { ack, at });
    }

    /// The newest response's answer stands for all (SotW). E-21: the latest wins.
    pub(super) fn replace(&mut self, ack: Ack, now: Instant) {
        self.pending.clear();
        self.push(ack, now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether an answer may go out now.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.pending.iter().any(|pending| pending.due(now))
    }

    /// When the next one that must wait may go out.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.iter().filter_map(|pending| pending.at).min()
    }

    /// The next answer that may go out now; it counts as sent.
    pub(super) fn take(&mut self, now: Instant) -> Option<Ack> {
        let due = self.pending.iter().position(|pending| pending.due(now))?;
        let pending = self.pending.remove(due)?;
        Some(self.sent(pending.ack, now))
    }

    /// The newest answer, whether or not it may go out on its own; it counts as sent.
    pub(super) fn take_any(&mut self, now: Instant) -> Option<Ack> {
        let pending = self.pending.pop_back()?;
        Some(self.sent(pending.ack, now))
    }

    fn sent(&mut self, ack: Ack, now: Instant) -> Ack {
        let Some(refusal) = &ack.refusal else {
            self.accepted = Some((ack.nonce.clone(), now));
            return ack;
        };
        // What may go out now may do so whatever goes out before it.
        for pending in self.pending.iter_mut().filter(|pending| pending.due(now)) {
            pending.at = None;
        }
        self.refusals.said(refusal, now);
        let refusals = &self.refusals;
        for Pending { ack, at } in self.pending.iter_mut().filter(|pending| pending.at.is_some()) {
            if let Some(refusal) = &ack.refusal {
                *at = refusals.at(refusal, now);
            }
        }
        ack
    }

    fn at(&self, ack: &Ack, now: Instant) -> Option<Instant> {
        if let Some(refusal) = &ack.refusal {
            return self.refusals.at(refusal, now);
        }
        let (nonce, sent) = self.accepted.as_ref()?;
        (*nonce == ack.nonce).then(|| *sent + PACE)
    }
}

impl Pending {
    fn due(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| at <= now)
    }
}

impl Ack {
    /// Whether this says all that another says: it refuses for the same reasons, or acknowledges the same nonce.
    fn repeats(&self, other: &Self) -> bool {
        match (&self.refusal, &other.refusal) {
            (Some(a), Some(b)) => a.covers(b),
            (None, None) => self.nonce == other.nonce,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}
