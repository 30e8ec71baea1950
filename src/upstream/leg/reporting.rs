//! What one stream tells its server of the rejections of clients (E-24).
//!
//! Owns that a server which ends streams because of it is told no more. Does not know the form.

use std::time::{Duration, Instant};

use super::Leg;
use crate::protocol::Reported;
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::xds::TypeUrl;

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
    /// The server has sent something.
    pub(super) const fn tolerated(&mut self) {
        self.last = None;
    }
}

impl Leg {
    /// A client has rejected something of this type.
    pub(in crate::upstream) fn rejected(&mut self, type_url: &TypeUrl) {
        if self.target.hears_rejections() {
            self.client.handle_rejected(type_url, now());
        }
    }

    /// Returns the types of which the clients are to be asked what they reject.
    pub(in crate::upstream) fn take_questions(&mut self) -> impl Iterator<Item = TypeUrl> + use<> {
        let questions = self.client.take_questions().into_iter();
        let hears = self.target.hears_rejections();
        questions.filter(move |_| hears)
    }

    /// Returns what the server was told since the last call.
    pub(in crate::upstream) fn take_reported(&mut self) -> Vec<Reported> {
        std::mem::take(&mut self.reports.new)
    }

    /// The request that is sent tells the server this.
    pub(super) fn report(&mut self, reported: Reported, words: &str) {
        self.target.metrics.rejections_reported.inc();
        tracing::debug!(
            server = self.target.uri(), leg = ?self.which, r#type = %reported.type_url, reason = words,
            "the server is told what clients reject"
        );
        self.reports.last = Some(reported.at);
        self.reports.new.push(reported);
    }

    /// The stream ended. Returns whether that is because the server was told what clients reject.
    pub(super) fn offended(&mut self, failure: &Failure) -> bool {
        let soon = self.reports.last.take().is_some_and(|at| now() < at + SOON);
        let offended = soon && failure.ending().is_some_and(|ending| ending.accuses(true));
        if offended && self.target.stop_reporting() {
            tracing::warn!(
                server = self.target.uri(), leg = ?self.which, reason = %failure,
                "the server ended the stream when it was told what clients reject; it is told no more; write `rejections: keep` in its \
                 entry"
            );
        }
        offended
    }
}
