// SPDX-License-Identifier: Apache-2.0
//! How a stream of a leg begins, until it is answered.
//!
//! Owns what follows from the dialect of an attempt. Does not choose it, and knows nothing of how a stream ends.

use super::live::LiveStream;
use super::{Leg, LegStage};
use crate::protocol::Why;
use crate::upstream::channel::Channel;
use crate::upstream::clock::now;
use crate::upstream::doors::OpenPlace;
use crate::upstream::status::StreamPhase;
use crate::xds::{Changes, Dialect};

impl Leg {
    /// Sets the dialect of the next attempt.
    pub(super) fn choose(&mut self, changes: &mut Vec<Changes>) {
        let (dialect, why) = self.trial.next(&self.dialer.target().dialects());
        if (dialect, &why) == (self.client.dialect(), &self.why) {
            return;
        }
        self.client.handle_dialect(dialect);
        if dialect == Dialect::Sotw && matches!(why, Why::Configured | Why::Refused(_)) {
            changes.extend(self.client.handle_no_delta(&why.to_string()));
        }
        self.why = why;
    }

    pub(super) fn open(&mut self) {
        self.board.enter(StreamPhase::Connecting, self.client.dialect());
        self.board.explain(self.why.clone());
        self.dialer.renew();
        let settings = self.dialer.settings();
        self.client.handle_settings(settings.client.clone());
        let (place, refused) = self.attempts.begin(settings.reconnect_max);
        self.stage = LegStage::Opening(self.dialer.dial(place, refused));
    }

    pub(super) fn opened(&mut self, place: OpenPlace, channel: Channel) {
        let (dialect, target) = (self.client.dialect(), self.dialer.target());
        if self.attempts.reached(place, now()) {
            self.client.handle_superseded();
        }
        self.client.handle_rhythm(target.rhythm());
        let round_trip = channel.round_trip();
        self.client.handle_connected(round_trip);
        self.board.enter(StreamPhase::Open, dialect);
        tracing::debug!(
            server = target.record.uri(), leg = ?self.dialer.which(), dialect = dialect.word(), ?round_trip, "stream opened"
        );
        let live = LiveStream::begin(channel, dialect, target, self.dialer.settings());
        self.stage = LegStage::Live(Box::new(live));
    }

    /// The first response was read.
    pub(super) fn answered(&mut self, changes: &mut Vec<Changes>) {
        let LegStage::Live(live) = &mut self.stage else {
            return;
        };
        let (target, dialect, why) = (self.dialer.target(), live.dialect(), self.why.clone());
        self.attempts.answered();
        target.returned();
        target.answered_in(dialect, &mut self.trial);
        live.count(target.record.metrics.stream_of(dialect.word(), why.word()));
        self.board.enter(StreamPhase::Answering, dialect);
        if let Some(suppressed) = target.record.away.answered(now()) {
            tracing::info!(
                server = target.record.uri(), leg = ?self.dialer.which(), dialect = dialect.word(), reason = %why, suppressed,
                "control plane answers"
            );
        }
        if dialect == Dialect::Sotw {
            changes.extend(self.client.handle_no_delta(&why.to_string()));
        }
    }
}
