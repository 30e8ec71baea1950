//! Requests on a client stream, taken at once or in slices.
//!
//! Owns the limits of what one stream may ask for. Does not know what a name means.

use std::time::Instant;

use super::Server;
use crate::end::End;
use crate::server::name_faults::{NameBound, NameFault, NameFaults};
use crate::server::response::Receipt;
use crate::server::session::Subscription;
use crate::server::slices::{Changing, Listing, Progress, listed, subscribed};
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::Answers;

impl Server {
    /// Takes a whole SotW request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn handle_sotw(
        &mut self,
        request: &DiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Receipt, End> {
        let mut progress = self.begin_sotw(request, answers, now)?;
        while self.go_on_sotw(request, &mut progress, answers, now)? {}
        self.finish(progress)
    }

    /// Takes a whole delta request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn handle_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Receipt, End> {
        let mut progress = self.begin_delta(request, answers, now)?;
        while self.go_on_delta(request, &mut progress, answers, now)? {}
        self.finish(progress)
    }

    /// Begins to take a SotW request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn begin_sotw(
        &mut self,
        request: &DiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Progress<Listing>, End> {
        self.caller.greet(request.node.as_ref(), &self.settings, answers)?;
        let mut faults = NameFaults::default();
        let bound = self.check_names(listed(request, 0), &mut faults)?;
        let nonces = self.nonces;
        let subscription = self.subscription(&request.type_url, answers, now)?;
        let (kind, way) = subscription.begin_sotw(request, bound, answers, nonces, now);
        let type_url = subscription.type_url().clone();
        Ok(Progress {
            type_url,
            kind,
            faults,
            way,
        })
    }

    /// Begins to take a delta request.
    ///
    /// # Errors
    /// If the stream must end.
    pub fn begin_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Progress<Changing>, End> {
        self.caller.greet(request.node.as_ref(), &self.settings, answers)?;
        let mut faults = NameFaults::default();
        let bound = self.check_names(subscribed(request, 0), &mut faults)?;
        self.check_names(request.initial_resource_versions.keys(), &mut faults)?;
        let nonces = self.nonces;
        let subscription = self.subscription(&request.type_url, answers, now)?;
        let (kind, way) = subscription.begin_delta(request, bound, answers, nonces, now);
        let type_url = subscription.type_url().clone();
        Ok(Progress {
            type_url,
            kind,
            faults,
            way: Some(way),
        })
    }

    /// Takes the next slice of a SotW request. Returns whether there is more.
    ///
    /// # Errors
    /// If the stream must end, because too much is kept for it.
    pub fn go_on_sotw(
        &mut self,
        request: &DiscoveryRequest,
        progress: &mut Progress<Listing>,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<bool, End> {
        let go_on = |one: &mut Subscription, way: &mut Listing, faults: &mut NameFaults| {
            one.go_on_sotw(request, way, faults, answers, now)
        };
        // Names that are not dropped yet make room for new ones.
        self.go_on(progress, go_on, |way| {
            way.dropped.as_ref().map_or(0, ExactSizeIterator::len)
        })
    }

    /// Takes the next slice of a delta request. Returns whether there is more.
    ///
    /// # Errors
    /// If the stream must end, because too much is kept for it.
    pub fn go_on_delta(
        &mut self,
        request: &DeltaDiscoveryRequest,
        progress: &mut Progress<Changing>,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<bool, End> {
        let go_on = |one: &mut Subscription, way: &mut Changing, faults: &mut NameFaults| {
            one.go_on_delta(request, way, faults, answers, now)
        };
        // Unsubscriptions that are not taken yet make room for subscriptions that are.
        let ends = request.resource_names_unsubscribe.len() + request.resource_locators_unsubscribe.len();
        self.go_on(progress, go_on, |_| ends)
    }

    fn go_on<W>(
        &mut self,
        progress: &mut Progress<W>,
        go_on: impl FnOnce(&mut Subscription, &mut W, &mut NameFaults) -> bool,
        spare: impl FnOnce(&W) -> usize,
    ) -> Result<bool, End> {
        let found = self.position(&progress.type_url);
        let Some(subscription) = found.ok().and_then(|at| self.types.get_mut(at)) else {
            return Ok(false);
        };
        let Progress { way, faults, .. } = progress;
        let more = way.as_mut().is_some_and(|way| go_on(subscription, way, faults));
        let spare = way.as_ref().filter(|_| more).map_or(0, spare);
        if !more {
            progress.way = None;
        }
        // Checked before the names over the limit are requested from any server.
        self.check_count(spare)?;
        Ok(more)
    }

    /// Ends a request that was taken completely. Returns what it was.
    ///
    /// # Errors
    /// If the stream must end, because too much is kept for it.
    pub fn finish<W>(&self, progress: Progress<W>) -> Result<Receipt, End> {
        self.check_owed()?;
        let Progress {
            type_url, kind, faults, ..
        } = progress;
        Ok(Receipt { type_url, kind, faults })
    }

    /// Checks the number of names in a request. B-32: names over the returned bound are noted as `faults`, and must be skipped.
    fn check_names<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        faults: &mut NameFaults,
    ) -> Result<NameBound, End> {
        let limits = &self.settings.limits;
        let bound = NameBound(limits.name_bytes);
        let mut count = 0;
        for name in names {
            count += 1;
            if !bound.admits(name) {
                faults.note(NameFault::Long, name);
            }
        }
        if limits.names_per_stream > 0 && count > limits.names_per_stream {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{count} names in one request"),
            ));
        }
        Ok(bound)
    }

    /// Checks that the client has no more names than its limit and `spare` allow.
    fn check_count(&self, spare: usize) -> Result<(), End> {
        let count = self.names();
        let max = self.settings.limits.names_per_stream;
        if max > 0 && count > max.saturating_add(spare) {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{count} names on one stream"),
            ));
        }
        Ok(())
    }

    /// K-21: a client that drops names faster than it acknowledges responses is owed an answer for each of them (C-08), so these
    /// are limited.
    fn check_owed(&self) -> Result<(), End> {
        let max = self.settings.limits.names_per_stream;
        let owed: usize = self.types.iter().map(Subscription::waiting).sum();
        if max > 0 && owed > max.saturating_mul(2) {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{owed} names wait for an answer"),
            ));
        }
        Ok(())
    }
}
