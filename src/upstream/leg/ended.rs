// SPDX-License-Identifier: Apache-2.0
//! How a stream of a leg ends, and what follows.
//!
//! Owns what an end means for the server, its types and its dialects. Knows nothing of how a stream begins.

use std::pin::Pin;
use std::sync::Arc;

use super::attempts::AttemptWait;
use super::{Leg, LegStage};
use crate::protocol::{Declined, Next, Pause};
use crate::upstream::clock::{dice, now};
use crate::upstream::failure::Failure;
use crate::upstream::status::StreamPhase;
use crate::xds::{Changes, Dialect};

impl Leg {
    /// The stream ended, because of the server or the connection.
    pub(super) fn ended(&mut self, failure: Failure, changes: &mut Vec<Changes>) {
        let LegStage::Live(live) = &self.stage else {
            return;
        };
        let (dialect, answered, opened) = (live.dialect(), live.is_answered(), live.opened());
        let open = self.client.unanswered().collect();
        self.close(changes);
        if let Some(mark) = failure.looped().map(str::to_owned) {
            return self.note_loop(mark, failure);
        }
        if !self.offended(&failure) {
            self.blame.ended(&failure, answered, open, now());
        }
        let target = self.dialer.target();
        if failure.is_too_many_pings() {
            target.forbid_pings(self.dialer.settings().ping);
        }
        if !answered {
            return self.refused(failure, dialect, changes);
        }
        let lived = now().saturating_duration_since(opened);
        let wait = self.attempts.ended(lived, dice());
        if let Some(suppressed) = target.record.away.ended(now()) {
            tracing::info!(
                server = target.record.uri(), leg = ?self.dialer.which(), reason = %failure, ?lived, retry_in = ?wait.pause, suppressed,
                "stream ended"
            );
        }
        self.wait(&wait, failure.to_string());
    }

    /// E-23: the stream ended before its first response.
    fn refused(&mut self, failure: Failure, dialect: Dialect, changes: &mut Vec<Changes>) {
        let Some(ending) = failure.ending() else {
            return self.failed(&failure);
        };
        let words = Arc::from(failure.to_string());
        let declined = Declined { dialect, ending, words };
        let other = self.client.wanted_in(dialect.other());
        let target = self.dialer.target();
        let next = self.trial.handle_end(declined, other, &target.dialects());
        if !other && self.trial.is_without_delta() {
            changes.extend(self.client.handle_no_delta(&failure.to_string()));
        }
        match next {
            Next::Other => {
                let (dialect, other) = (dialect.word(), dialect.other().word());
                if let Some(suppressed) = target.record.away.declined(now()) {
                    tracing::info!(
                        server = target.record.uri(), leg = ?self.dialer.which(), dialect, reason = %failure, other, suppressed,
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
        let target = self.dialer.target();
        let wait = self.attempts.failed(failure, dice());
        if failure.is_exhausted() {
            target.doors.exhausted();
        }
        if self.board.fail(failure.is_refusal()) {
            target.record.metrics.lost.inc();
        }
        target.record.metrics.failures.inc();
        if let Some(suppressed) = target.record.away.failed(failure.is_refusal(), now()) {
            tracing::warn!(
                server = target.record.uri(), leg = ?self.dialer.which(), error = %failure, retry_in = ?wait.pause, suppressed,
                "control plane not reached"
            );
        }
        self.wait(&wait, failure.to_string());
    }

    fn wait(&mut self, wait: &AttemptWait, error: String) {
        self.attempts.leave();
        let pause = Pause::new(wait.pause, now());
        self.board.wait(pause.due(self.client.lacks()), Some(error));
        let returned: Pin<Box<dyn Future<Output = ()> + Send>> = if wait.follows {
            Box::pin(self.dialer.target().return_of())
        } else {
            Box::pin(std::future::pending())
        };
        self.stage = LegStage::Waiting(pause, returned);
    }

    pub(super) fn close(&mut self, changes: &mut Vec<Changes>) {
        if let LegStage::Live(_) = std::mem::replace(&mut self.stage, LegStage::Rest) {
            changes.extend(self.client.handle_disconnected());
        }
    }

    pub(super) fn rest(&mut self) {
        self.stage = LegStage::Rest;
        self.board.enter(StreamPhase::Idle, self.client.dialect());
    }
}
