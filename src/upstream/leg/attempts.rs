// SPDX-License-Identifier: Apache-2.0
//! When a leg makes its next attempt.
//!
//! Owns the pauses, and its place among the opening streams. Neither dials nor decides in which dialect.

use std::time::{Duration, Instant};

use crate::protocol::Backoff;
use crate::upstream::doors::OpenPlace;
use crate::upstream::failure::Failure;

/// The attempts of one leg.
pub(super) struct Attempts {
    backoff: Backoff,
    /// The place among the opening streams, and when it is given up at the latest.
    place: Option<(OpenPlace, Instant)>,
    /// Whether the server had no room for the stream at the last attempt.
    exhausted: bool,
    /// Whether the current attempt was made early because the server answered another stream.
    early: bool,
    /// Whether another server has stood in since the last stream began.
    superseded: bool,
    /// Whether the stream is for types that end the shared one: its pauses are about them, not about the server.
    alone: bool,
}

/// The pause after an attempt.
pub(super) struct AttemptWait {
    pub(super) pause: Duration,
    /// Whether the next attempt is made early if the server answers another stream.
    pub(super) follows: bool,
}

/// How long an open stream without an answer keeps its place among the opening streams.
const OPENING: Duration = Duration::from_secs(1);

impl Attempts {
    /// `alone`: the stream is for types that end the shared one.
    pub(super) fn new(reconnect_max: Duration, alone: bool) -> Self {
        Self {
            backoff: Backoff::new(reconnect_max),
            place: None,
            exhausted: false,
            early: false,
            superseded: false,
            alone,
        }
    }

    /// An attempt begins. Returns the place that the last one has left, and whether the server had no room then.
    pub(super) fn begin(&mut self, reconnect_max: Duration) -> (Option<OpenPlace>, bool) {
        self.backoff.set_most(reconnect_max);
        (self.place.take().map(|(place, _)| place), self.exhausted)
    }

    /// The server was reached at this place. Returns whether another one has stood in since the last time.
    pub(super) fn reached(&mut self, place: OpenPlace, now: Instant) -> bool {
        self.place = Some((place, now + OPENING));
        std::mem::take(&mut self.superseded)
    }

    /// The server has answered.
    pub(super) fn answered(&mut self) {
        if !self.alone {
            self.backoff.handle_response();
        }
        self.place = None;
        (self.exhausted, self.early) = (false, false);
    }

    /// The stream has ended after an answer, which is no failure of the server (G-02).
    pub(super) fn ended(&mut self, lived: Duration, dice: f64) -> AttemptWait {
        let pause = if self.alone {
            self.backoff.handle_end_alone(lived, dice)
        } else {
            self.backoff.handle_end(lived, dice)
        };
        AttemptWait { pause, follows: false }
    }

    /// The attempt failed. An answer to another stream does not help if the failure concerns this stream alone, or if an early attempt
    /// has just failed.
    pub(super) fn failed(&mut self, failure: &Failure, dice: f64) -> AttemptWait {
        self.exhausted = failure.is_exhausted();
        let early = std::mem::take(&mut self.early);
        AttemptWait {
            pause: self.backoff.handle_failure(dice),
            follows: !(self.exhausted || failure.is_denied() || early),
        }
    }

    /// The server has answered another stream, so the pause is over.
    pub(super) const fn hurry(&mut self) {
        self.early = true;
    }

    /// Another server has stood in. Returns whether that makes the pauses short.
    pub(super) const fn supersede(&mut self) -> bool {
        self.superseded = true;
        if !self.alone {
            self.backoff.handle_superseded();
        }
        !self.alone
    }

    /// Gives up the place among the opening streams.
    pub(super) fn leave(&mut self) {
        self.place = None;
    }

    /// Gives up the place if it was held for long enough.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.place.take_if(|(_, until)| *until <= now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.place.as_ref().map(|(_, until)| *until)
    }
}
