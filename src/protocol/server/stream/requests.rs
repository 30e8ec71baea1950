// SPDX-License-Identifier: Apache-2.0
//! Requests on a client stream, taken at once or in slices.
//!
//! Owns the limits of what one stream may ask for. Does not know what a name means.

use std::time::Instant;

use super::Server;
use crate::end::End;
use crate::server::name_faults::{NameBound, NameFaults};
use crate::server::request::ClientRequest;
use crate::server::response::Receipt;
use crate::server::session::Entries;
use xds::Answers;

/// A request that is taken in slices. Until all of it is taken, the stream sends nothing and takes no other request, so the result
/// is the same as if it were taken at once.
#[derive(Debug)]
pub struct Progress {
    receipt: Receipt,
    entries: Option<Entries>,
}

impl Server {
    /// Takes a whole request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn handle(
        &mut self,
        request: impl Into<ClientRequest>,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Receipt, End> {
        let mut progress = self.begin(request.into(), answers, now)?;
        while self.go_on(&mut progress, answers, now)? {}
        self.finish(progress)
    }

    /// Begins to take a request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn begin(&mut self, request: ClientRequest, answers: &impl Answers, now: Instant) -> Result<Progress, End> {
        self.caller.greet(request.node.as_ref(), &self.settings, answers)?;
        for count in [request.lists.begun.len(), request.lists.versions.len()] {
            self.bound_names(count, 0, "names in one request")?;
        }
        let (nonces, bound) = (self.nonces, NameBound(self.settings.limits.name_bytes));
        let subscription = self.subscription(&request.type_url, answers, now)?;
        let (kind, entries) = subscription.begin(request, answers, nonces, now);
        let type_url = subscription.type_url().clone();
        self.retry(&type_url, &kind);
        let faults = NameFaults::default();
        Ok(Progress {
            receipt: Receipt { type_url, kind, faults },
            entries: entries.map(|entries| entries.within(bound)),
        })
    }

    /// Takes the next slice of a request. Returns whether there is more.
    ///
    /// # Errors
    /// If the stream must end, because too much is kept for it.
    pub fn go_on(&mut self, progress: &mut Progress, answers: &impl Answers, now: Instant) -> Result<bool, End> {
        let one = self.of_type(&progress.receipt.type_url);
        let entries = &mut progress.entries;
        let read = one.and_then(|one| entries.take_if(|entries| !one.go_on(entries, answers, now)));
        if let Some(read) = read {
            progress.receipt.faults = read.into_faults();
        }
        // Checked before the names over the limit are requested from any server. Names that end make room for new ones.
        self.check_count(progress.entries.as_ref())?;
        Ok(progress.entries.is_some())
    }

    /// Ends a request that was taken completely. Returns what it was.
    ///
    /// # Errors
    /// If the stream must end, because too much is kept for it.
    pub fn finish(&self, progress: Progress) -> Result<Receipt, End> {
        self.check_owed()?;
        Ok(progress.receipt)
    }

    /// Checks that the client has no more names than its limit and what is left of a request allow.
    fn check_count(&self, left: Option<&Entries>) -> Result<(), End> {
        let (spare, unread) = left.map_or((0, 0), |left| (left.spare(), left.versions()));
        self.bound_names(self.names() + unread, spare, "names on one stream")
    }

    /// K-21: a client that drops names faster than it acknowledges responses is owed an answer for each of them (C-08), so these
    /// are limited.
    fn check_owed(&self) -> Result<(), End> {
        let owed = self.types.iter().map(|one| one.agenda().len()).sum();
        self.bound_names(owed, self.settings.limits.names_per_stream, "names wait for an answer")
    }

    /// Checks that no more names than the limit are counted, and so many beside.
    fn bound_names(&self, count: usize, beside: usize, what: &str) -> Result<(), End> {
        let max = self.settings.limits.names_per_stream;
        if max == 0 || count <= max.saturating_add(beside) {
            return Ok(());
        }
        Err(End::limit("limits.names_per_stream", format_args!("{count} {what}")))
    }
}
