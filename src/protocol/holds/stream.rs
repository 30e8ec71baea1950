// SPDX-License-Identifier: Apache-2.0
//! The present stream, as far as the control plane has answered there.
//!
//! Owns from when on clocks count. Does not know what was said.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::waiting::Half;
use xds::{Cut, TypeUrl};

/// After this time, a server that has answered something counts as there for the types of which it says nothing.
const SILENT: Duration = Duration::from_secs(30);
/// So many streams in a row may end before any first state is over. On the next one clocks count from its first answer on.
const SHORT_STREAMS: u8 = 2;

/// What was answered there.
#[derive(Debug, Default)]
pub(super) struct AnsweredStream {
    /// When it answered first.
    first: Option<Instant>,
    answered: BTreeSet<Half>,
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

    /// Whether the control plane has answered for this half on the present stream.
    pub(super) fn has_answered(&self, half: &Half) -> bool {
        self.answered.contains(half)
    }

    /// It has answered for this half from now on, or its stream has ended. Once the view, at `cut`, has given a type up, nobody says that
    /// the stream of that type has ended.
    pub(super) fn hear(&mut self, half: &Half, answered: Option<bool>, cut: &Cut, now: Instant) {
        match answered {
            Some(true) => {
                self.first.get_or_insert(now);
                self.answered.insert(half.clone());
            }
            Some(false) if self.answered.remove(half) => {
                self.answered.retain(|(of, _)| cut.slot(of).is_some());
                if self.answered.is_empty() {
                    self.short = if self.settled { 0 } else { self.short + 1 };
                    (self.first, self.settled) = (None, false);
                }
            }
            Some(false) | None => {}
        }
    }

    /// The first states of these types are over.
    pub(super) fn settle(&mut self, is_over: impl Fn(&TypeUrl) -> bool) {
        let mut judged = self.answered.iter().filter(|(of, _)| of.kind().is_judged());
        self.settled |= judged.any(|(of, _)| is_over(of));
    }

    /// Returns from when on the clocks of the type's judgements count time: the control plane has said on its present stream what it has of
    /// the type, or says nothing of it. `None`: it has not spoken there at all. `open`: the first state of the type is not over.
    pub(super) fn counted_from(&self, of: &TypeUrl, open: bool) -> Option<Instant> {
        let first = self.first?;
        let counts = self.answered.iter().any(|half| half.0 == *of) && !open || self.short >= SHORT_STREAMS;
        Some(if counts { first } else { first + SILENT })
    }
}
