// SPDX-License-Identifier: Apache-2.0
//! The present stream, as far as the control plane has answered there.
//!
//! Owns from when on clocks count. Does not know what was said.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use xds::TypeUrl;

/// After this time, a server that has answered something counts as there for the types of which it says nothing.
const SILENT: Duration = Duration::from_secs(30);
/// So many streams in a row may end before any first state is over. On the next one clocks count from its first answer on.
const SHORT_STREAMS: u8 = 2;

/// What was answered there.
#[derive(Debug, Default)]
pub(super) struct AnsweredStream {
    /// When it answered first.
    first: Option<Instant>,
    answered: BTreeSet<TypeUrl>,
    /// Whether a first state is over.
    settled: bool,
    /// How many streams in a row have ended before that.
    short: u8,
}

impl AnsweredStream {
    /// When the control plane answered first.
    pub(super) const fn first(&self) -> Option<Instant> {
        self.first
    }

    /// Whether the control plane has answered for this type on the present stream.
    pub(super) fn hear(&mut self, of: &TypeUrl, answered: Option<bool>, now: Instant) {
        match answered {
            Some(true) => {
                self.first.get_or_insert(now);
                self.answered.insert(of.clone());
            }
            Some(false) if self.answered.remove(of) && self.answered.is_empty() => {
                self.short = if self.settled { 0 } else { self.short + 1 };
                (self.first, self.settled) = (None, false);
            }
            Some(false) | None => {}
        }
    }

    /// The first states of these types are over.
    pub(super) fn settle(&mut self, is_over: impl Fn(&TypeUrl) -> bool) {
        let mut judged = self.answered.iter().filter(|of| of.kind().is_judged());
        self.settled |= judged.any(is_over);
    }

    /// Returns from when on the clocks of the type's judgements count time: the control plane has said on its present stream what it has of
    /// the type, or says nothing of it. `None`: it has not spoken there at all. `open`: the first state of the type is not over.
    pub(super) fn counted_from(&self, of: &TypeUrl, open: bool) -> Option<Instant> {
        let first = self.first?;
        let counts = self.answered.contains(of) && !open || self.short >= SHORT_STREAMS;
        Some(if counts { first } else { first + SILENT })
    }
}
