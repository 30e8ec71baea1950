// SPDX-License-Identifier: Apache-2.0
//! A stream that the server refuses as a loop (K-25).
//!
//! Owns whether the server is asked again at once: only if the mark that it named was said on that stream and is not said any more.
//! Does not end the sessions that brought it.

use super::Leg;
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::xds::Changes;

/// The end of such a stream.
pub(super) struct Looped {
    mark: String,
    /// Whether the stream said that it comes through this relay.
    said: bool,
    failure: Failure,
}

impl Leg {
    /// The server has named a mark. Until [`Self::settle_loop`] there is neither a stream nor an attempt.
    pub(super) fn note_loop(&mut self, mark: String, failure: Failure) {
        let said = self.client.comes_through(&mark);
        self.looped = Some(Box::new(Looped { mark, said, failure }));
    }

    /// Returns the mark that the server has named.
    pub(in crate::upstream) fn looped(&self) -> Option<&str> {
        self.looped.as_ref().map(|looped| &*looped.mark)
    }

    /// The sessions that brought the mark have ended, and the client knows which relays are left. If that changes nothing, those who wait
    /// are told why the server does not answer.
    pub(in crate::upstream) fn settle_loop(&mut self, changes: &mut Vec<Changes>) {
        let Some(looped) = self.looped.take() else { return };
        let Looped { mark, said, failure } = *looped;
        if !said || self.client.comes_through(&mark) {
            changes.extend(self.client.handle_refused(&failure.to_string()));
            return self.failed(&failure);
        }
        let target = self.dialer.target();
        if let Some(suppressed) = target.record.away.ended(now()) {
            tracing::warn!(
                server = target.record.uri(), leg = ?self.dialer.which(), mark, reason = %failure, suppressed,
                "clients come through a relay that the server's own requests come through; their streams end, and the server is asked again"
            );
        }
        self.attempts.leave();
        self.rest();
    }
}
