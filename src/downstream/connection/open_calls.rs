// SPDX-License-Identifier: Apache-2.0
//! The open calls of a connection.
//!
//! Owns their places and their numbers in the agenda, and which of them have times to look at after the transport had its turn.
//! Knows nothing of the transport.

use std::time::Instant;

use super::open_call::OpenCall;
use super::places::Places;
use crate::downstream::stream::Allowance;

/// Each call has two numbers in the agenda: the second one for its requests, the first one for everything else.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: Vec<Option<OpenCall>>,
    /// The streams that gave the transport a response in this turn.
    givers: Places,
}

impl OpenCalls {
    /// Returns the first number of the next call, unless there are too many.
    pub(super) fn next_number(&mut self) -> Option<u32> {
        let free = self.calls.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            if self.calls.len() == self.calls.capacity() {
                self.calls.reserve_exact((self.calls.len() / 2).max(1));
            }
            self.calls.push(None);
            self.calls.len() - 1
        });
        u32::try_from(2 * at + 1).ok()
    }

    /// Adds the call with this number, which [`Self::next_number`] has returned.
    pub(super) fn add(&mut self, number: u32, call: OpenCall) {
        if let Some(place) = self.calls.get_mut(place_of(number)) {
            *place = Some(call);
        }
    }

    /// Polls the call with this number, if it is still open.
    #[inline]
    pub(super) fn poll(&mut self, number: u32, allowance: &mut Allowance, now: Instant) {
        let at = place_of(number);
        let Some(Some(call)) = self.calls.get_mut(at) else {
            return;
        };
        // Only the first streams of a connection are noted as givers; the others look at their times at once.
        let mut over = call.poll(number.is_multiple_of(2), allowance, now);
        if allowance.take_gave() && !self.givers.insert(at) && over.is_pending() {
            over = call.poll_times(now);
        }
        if over.is_ready() {
            self.close(at);
        }
    }

    /// The transport had its turn: what it still has of a response waits for the client.
    #[inline]
    pub(super) fn poll_givers(&mut self, now: Instant) {
        while let Some(at) = self.givers.pop() {
            let call = self.calls.get_mut(at).and_then(Option::as_mut);
            if call.is_some_and(|call| call.poll_times(now).is_ready()) {
                self.close(at);
            }
        }
    }

    /// Tells the call with this number that it has left the line.
    pub(super) fn come_forward(&mut self, number: u32) {
        if let Some(Some(call)) = self.calls.get_mut(place_of(number)) {
            call.come_forward();
        }
    }

    /// Lets each stream end in good order.
    pub(super) fn drain(&mut self) {
        for call in self.calls.iter_mut().flatten() {
            call.drain();
            call.wake();
        }
    }

    /// Counts and logs that each stream ends because its client does not answer pings.
    pub(super) fn silent(&self, now: Instant) {
        self.calls.iter().flatten().for_each(|call| call.silent(now));
    }

    /// Counts and logs that each stream ends because its client does not read.
    pub(super) fn stalled(&self, now: Instant) {
        self.calls.iter().flatten().for_each(|call| call.stalled(now));
    }

    /// Whether the client has accepted everything that was sent on its streams.
    pub(super) fn are_settled(&self) -> bool {
        self.calls.iter().flatten().all(OpenCall::is_settled)
    }

    fn close(&mut self, at: usize) {
        if let Some(place) = self.calls.get_mut(at) {
            *place = None;
        }
        while matches!(self.calls.last(), Some(None)) {
            self.calls.pop();
        }
        if self.calls.is_empty() {
            self.calls = Vec::new();
        }
    }
}

/// Returns the place of the call with this number.
const fn place_of(number: u32) -> usize {
    (number as usize - 1) / 2
}
