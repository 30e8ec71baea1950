// SPDX-License-Identifier: Apache-2.0
//! What one stream tells its server of the rejections of clients (E-24).
//!
//! Owns what the server was told, and whether a stream ended because of it. Does not know the form.

use std::time::{Duration, Instant};

use super::Leg;
use crate::protocol::Reported;
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::xds::{Rejection, TypeUrl};

/// What the server was told on the present stream.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Those that `take_reported` has not returned yet.
    new: Vec<Reported>,
    /// When it was last told, if it has not sent anything since.
    last: Option<Instant>,
}

/// A stream that ends so soon after the server was told ends because of it.
const SOON: Duration = Duration::from_secs(1);

impl Reports {
    /// The server is told this.
    pub(super) fn told(&mut self, reported: Reported) {
        self.last = Some(reported.at);
        self.new.push(reported);
    }

    /// The server has sent something.
    pub(super) const fn tolerated(&mut self) {
        self.last = None;
    }

    /// The stream ended. Returns whether that is because the server was told what clients reject.
    pub(super) fn ended(&mut self, failure: &Failure, now: Instant) -> bool {
        let soon = self.last.take().is_some_and(|at| now < at + SOON);
        soon && failure.ending().is_some_and(|ending| ending.accuses(true))
    }
}

impl Leg {
    /// A client has rejected something of this type.
    pub(in crate::upstream) fn rejected(&mut self, type_url: &TypeUrl) {
        if self.dialer.target().hears_rejections() {
            self.client.handle_rejected(type_url, now());
        }
    }

    /// Returns the types of which the clients are to be asked what they reject.
    pub(in crate::upstream) fn take_questions(&mut self) -> impl Iterator<Item = TypeUrl> + use<> {
        let questions = self.client.take_questions().into_iter();
        let hears = self.dialer.target().hears_rejections();
        questions.filter(move |_| hears)
    }

    /// Takes all that clients reject of a type.
    pub(in crate::upstream) fn take_rejections(&mut self, type_url: &TypeUrl, rejections: &[Rejection]) {
        self.client.handle_rejections(type_url, rejections);
    }

    /// Returns what the server was told since the last call.
    pub(in crate::upstream) fn take_reported(&mut self) -> Vec<Reported> {
        std::mem::take(&mut self.reports.new)
    }

    /// The request that is sent tells the server this.
    pub(super) fn report(&mut self, reported: Reported, words: &str) {
        let target = self.dialer.target();
        target.record.metrics.rejections_reported.inc();
        tracing::debug!(
            server = target.record.uri(), leg = ?self.dialer.which(), r#type = %reported.type_url, reason = words,
            "the server is told what clients reject"
        );
        self.reports.told(reported);
    }

    /// The stream ended. Returns whether that is because the server was told what clients reject.
    pub(super) fn offended(&mut self, failure: &Failure) -> bool {
        let (offended, target) = (self.reports.ended(failure, now()), self.dialer.target());
        if offended && target.stop_reporting() {
            tracing::warn!(
                server = target.record.uri(), leg = ?self.dialer.which(), reason = %failure,
                "the server ended the stream when it was told what clients reject; it is told no more; write `rejections: keep` in its \
                 entry"
            );
        }
        offended
    }
}
