//! How a stream of a view ends, and what follows.
//!
//! Owns the pause before the next attempt, and its reasons. Knows nothing of how a stream begins.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Leg, Stage};
use crate::protocol::{Declined, Next, Pause};
use crate::upstream::clock::{dice, now};
use crate::upstream::failure::Failure;
use crate::xds::{Changes, Dialect};

impl Leg {
    /// The stream ended, because of the server or the connection.
    pub(super) fn ended(&mut self, failure: Failure, changes: &mut Vec<Changes>) {
        let Stage::Live(live) = &self.stage else {
            return;
        };
        let opened = live.opened;
        let (dialect, answered, lived) = (live.dialect, live.answered, now().saturating_duration_since(opened));
        self.close(changes);
        if !self.offended(&failure) {
            self.accuse(&failure, answered);
        }
        if failure.is_too_many_pings() {
            self.target.calm_down(opened, now());
        }
        if answered {
            // G-02: a stream that ends after a response is not a failure of the server.
            let wait = if self.alone {
                self.backoff.handle_end_alone(lived, dice())
            } else {
                self.backoff.handle_end(lived, dice())
            };
            if let Some(suppressed) = self.target.ended() {
                tracing::info!(
                    server = self.target.uri(), leg = ?self.which, reason = %failure, ?lived, retry_in = ?wait, suppressed,
                    "stream ended"
                );
            }
            self.pause(wait, false, failure.to_string());
        } else {
            self.refused(failure, dialect, changes);
        }
    }

    /// E-23: the stream ended before its first response.
    fn refused(&mut self, failure: Failure, dialect: Dialect, changes: &mut Vec<Changes>) {
        let Some(ending) = failure.ending() else {
            return self.failed(&failure);
        };
        let words = Arc::from(failure.to_string());
        let declined = Declined { dialect, ending, words };
        let other = self.client.wanted_in(dialect.other());
        let next = self.target.declined(&mut self.trial, declined, other);
        if !other && self.trial.is_without_delta() {
            changes.extend(self.client.handle_no_delta(&failure.to_string()));
        }
        match next {
            Next::Other => {
                let (dialect, other) = (dialect.word(), dialect.other().word());
                if let Some(suppressed) = self.target.tries_other() {
                    tracing::info!(
                        server = self.target.uri(), leg = ?self.which, dialect, reason = %failure, other, suppressed,
                        "no answer in this dialect; trying the other one"
                    );
                }
                self.rest();
            }
            Next::Failed(before) => self.failed(&failure.after(before)),
        }
    }

    /// G-02: no connection, or a stream that ended before its first response.
    pub(super) fn failed(&mut self, failure: &Failure) {
        self.exhausted = failure.is_exhausted();
        if self.exhausted {
            self.target.doors.exhausted();
        }
        if self.board.fail(failure.is_refusal()) {
            self.target.metrics.lost.inc();
        }
        let wait = self.backoff.handle_failure(dice());
        self.target.metrics.failures.inc();
        if let Some(suppressed) = self.target.failed(failure.is_refusal()) {
            tracing::warn!(
                server = self.target.uri(), leg = ?self.which, error = %failure, retry_in = ?wait, suppressed,
                "control plane not reached"
            );
        }
        // An answer to another stream does not help if the failure concerns this stream alone, or if an early retry has just
        // failed.
        let follows = !(self.exhausted || failure.is_denied() || std::mem::take(&mut self.followed));
        self.pause(wait, follows, failure.to_string());
    }

    /// Records which types may have made the server end the stream.
    fn accuse(&mut self, failure: &Failure, answered: bool) {
        let ending = failure.ending();
        if ending.is_some_and(|ending| ending.accuses(true)) {
            self.trouble = Some(failure.to_string());
        }
        let suspected = self.suspects.handle_end(ending, answered, now()).into_iter();
        self.suspected
            .extend(suspected.map(|type_url| (type_url, failure.to_string())));
    }

    fn pause(&mut self, wait: Duration, follows: bool, error: String) {
        self.place = None;
        let pause = Pause::new(wait, now());
        self.board.wait(pause.due(self.client.lacks()), Some(error));
        let returned: Pin<Box<dyn Future<Output = ()> + Send>> = if follows {
            Box::pin(self.target.return_of())
        } else {
            Box::pin(std::future::pending())
        };
        self.stage = Stage::Waiting(pause, returned);
    }
}
