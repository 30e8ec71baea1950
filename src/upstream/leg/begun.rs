//! How a stream of a view begins, until it is answered.
//!
//! Owns the dialect of each attempt, and what follows from it. Knows nothing of how a stream ends.

use super::{Leg, Stage};
use crate::protocol::Why;
use crate::upstream::ads_stream::AdsStream;
use crate::upstream::channel::Channel;
use crate::upstream::doors::Doors;
use crate::upstream::status::Phase;
use crate::xds::{Changes, Dialect};

impl Leg {
    /// Sets the dialect of the next attempt.
    pub(super) fn choose(&mut self, changes: &mut Vec<Changes>) {
        let (dialect, why) = self.target.next_dialect(&self.trial);
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
        self.board.enter(Phase::Connecting, self.client.dialect());
        self.board.explain(self.why.clone());
        self.settings = self.target.settings(&self.settings);
        self.client.handle_settings(self.settings.client.clone());
        self.backoff.set_most(self.settings.reconnect_max);
        let (target, access, settings) = (self.target.clone(), self.access.clone(), self.settings.clone());
        let (place, exhausted) = (self.place.take(), self.exhausted);
        self.stage = Stage::Opening(Box::pin(async move {
            let place = match place {
                Some((place, _)) => place,
                None => Doors::enter(target.doors.clone(), exhausted).await,
            };
            (place, Channel::open(&target, &access, &settings).await)
        }));
    }

    pub(super) fn opened(&mut self, channel: Channel) {
        let dialect = self.client.dialect();
        if std::mem::take(&mut self.superseded) {
            self.client.handle_superseded();
        }
        self.client.handle_rhythm(self.target.rhythm());
        self.client.handle_connected(channel.round_trip);
        self.board.enter(Phase::Open, dialect);
        tracing::debug!(
            server = self.target.uri(), leg = ?self.which, dialect = dialect.word(), round_trip = ?channel.round_trip, "stream opened"
        );
        self.stage = Stage::Live(Box::new(AdsStream::begin(
            channel,
            dialect,
            &self.target,
            &self.settings,
        )));
    }

    /// The first response has arrived.
    pub(super) fn answered(&mut self, changes: &mut Vec<Changes>) {
        let Stage::Live(live) = &mut self.stage else {
            return;
        };
        if !self.alone {
            self.backoff.handle_response();
        }
        self.place = None;
        (self.exhausted, self.followed) = (false, false);
        self.target.returned();
        let (dialect, why) = (live.dialect.word(), &self.why);
        self.target.answered(&mut self.trial, live.dialect);
        self.target.metrics.stream_opened();
        live.counted = Some(self.target.metrics.stream_of(dialect, why.word()));
        self.board.enter(Phase::Answering, live.dialect);
        if let Some(suppressed) = self.target.greeted() {
            tracing::info!(
                server = self.target.uri(), leg = ?self.which, dialect, reason = %why, suppressed, "control plane answers"
            );
        }
        if live.dialect == Dialect::Sotw {
            changes.extend(self.client.handle_no_delta(&why.to_string()));
        }
    }

    /// Reports the types that the server is not asked for, if they have changed.
    pub(super) fn show_unserved(&mut self) {
        let Some(unserved) = self.client.take_unserved() else {
            return;
        };
        for (type_url, why) in &unserved {
            self.target.leave_out(type_url, why);
        }
        self.unserved.extend(unserved.keys().cloned());
        self.board.leave_out(unserved);
    }
}
