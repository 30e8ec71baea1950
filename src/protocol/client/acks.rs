// SPDX-License-Identifier: Apache-2.0
//! The ACKs and NACKs of one type on the present stream.
//!
//! Owns their order, when each may be sent, and what the server was acknowledged last. Knows nothing of the content of responses.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arcstr::ArcStr;

use super::refusals::{Refusal, Refusals};
use xds::Dialect;

/// An ACK; with a refusal, a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) nonce: String,
    pub(super) refusal: Option<Refusal>,
    /// Whether removals in the response do not count, because it was rejected.
    pub(super) left_out: bool,
    /// When it may be sent; `None`: now.
    pub(super) at: Option<Instant>,
}

/// The answers to the responses of one type.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// The nonce of the newest response.
    nonce: String,
    /// SotW: the version of the last response that was accepted as a whole.
    version: ArcStr,
    /// What is to be sent, the oldest first.
    pending: VecDeque<Ack>,
    /// The nonce of the last ACK, and when that ACK was sent.
    accepted: Option<(String, Instant)>,
    /// E-22: the faults that the server was sent.
    refusals: Refusals,
}

/// An ACK waits this long if its nonce is that of the last ACK.
const PACE: Duration = Duration::from_secs(1);
/// A server with this many unanswered responses of one type has lost count of them itself.
const PENDING: usize = 256;

impl Acks {
    /// E-03: in SotW, every further request of the type carries the newest nonce.
    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// SotW: returns the version of the last response that was accepted as a whole.
    pub(super) const fn version(&self) -> &ArcStr {
        &self.version
    }

    /// A response with this version was accepted as a whole.
    pub(super) fn accept(&mut self, version: ArcStr) {
        self.version = version;
    }

    /// A response was received, and this is its answer.
    pub(super) fn received(&mut self, mut ack: Ack, dialect: Dialect, now: Instant) {
        self.nonce.clone_from(&ack.nonce);
        match dialect {
            // In SotW it replaces earlier ones. E-21: the latest wins.
            Dialect::Sotw => self.pending.clear(),
            // C-02: without a nonce, the response cannot be acknowledged.
            Dialect::Delta if ack.nonce.is_empty() => return,
            Dialect::Delta => {}
        }
        // Every delta response gets its own answer, within the bound. E-22: of answers with the same content, only the newest is kept.
        self.pending.retain(|other| !ack.repeats(other));
        if self.pending.len() == PENDING {
            self.pending.pop_front();
        }
        ack.at = self.at(&ack, now);
        self.pending.push_back(ack);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns whether the newest response was acknowledged, and no answer is to be sent.
    pub(super) fn acknowledged(&self) -> bool {
        let newest = |(accepted, _): &(String, Instant)| *accepted == self.nonce;
        !self.nonce.is_empty() && self.is_empty() && self.accepted.as_ref().is_some_and(newest)
    }

    /// Returns whether any answer may be sent now.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.pending.iter().any(|ack| ack.due(now))
    }

    /// Returns when the next waiting answer may be sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.iter().filter_map(|ack| ack.at).min()
    }

    /// Takes the next answer that may be sent now; with `any`, also one that should still wait. It counts as sent.
    pub(super) fn take(&mut self, any: bool, now: Instant) -> Option<Ack> {
        let due = self.pending.iter().position(|ack| any || ack.due(now))?;
        let ack = self.pending.remove(due)?;
        let Some(refusal) = &ack.refusal else {
            self.accepted = Some((ack.nonce.clone(), now));
            return Some(ack);
        };
        self.pass(now);
        self.refusals.said(refusal, now);
        let refusals = &self.refusals;
        for other in self.pending.iter_mut().filter(|other| other.at.is_some()) {
            if let Some(refusal) = &other.refusal {
                other.at = refusals.at(refusal, now);
            }
        }
        Some(ack)
    }

    /// An answer that may be sent now stays so, whatever is sent before it.
    pub(super) fn pass(&mut self, now: Instant) {
        for ack in self.pending.iter_mut().filter(|ack| ack.due(now)) {
            ack.at = None;
        }
    }

    fn at(&self, ack: &Ack, now: Instant) -> Option<Instant> {
        if let Some(refusal) = &ack.refusal {
            return self.refusals.at(refusal, now);
        }
        let (nonce, sent) = self.accepted.as_ref()?;
        (*nonce == ack.nonce).then(|| *sent + PACE)
    }
}

impl Ack {
    fn due(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| at <= now)
    }

    /// Whether this answer makes the other one superfluous: it refuses for at least the same reasons, or acknowledges the same
    /// nonce. What did not count of another response, the server learns only by that response's own answer.
    fn repeats(&self, other: &Self) -> bool {
        match (&self.refusal, &other.refusal) {
            (Some(a), Some(b)) => !other.left_out && a.covers(b),
            (None, None) => self.nonce == other.nonce,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}
