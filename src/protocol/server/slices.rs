//! A request with many names is taken in slices, so that other streams are served in between.
//!
//! Owns how much of a request was taken. Does not know who is served in between, and what a name means.

use std::collections::BTreeMap;
use std::time::Instant;

use super::flight::{Receipt, ReceiptKind};
use super::name_faults::{NameBound, NameFaults};
use super::stream::Server;
use super::subscription::Subscription;
use crate::end::End;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::{Answers, Held, Name, TypeUrl};

/// The progress of a request. Until all of it is taken, the stream sends nothing and takes no other request, so the result is the
/// same as if it were taken at once.
#[derive(Debug)]
pub struct Progress<W> {
    type_url: TypeUrl,
    kind: ReceiptKind,
    faults: NameFaults,
    way: Option<W>,
}

/// The progress of a SotW request: first its names are read, then new ones are added, then those that it leaves out are dropped.
#[derive(Debug, Default)]
pub struct Listing {
    /// Whether the client's first request had a version.
    pub(super) remembers: bool,
    /// Names over this bound are skipped.
    pub(super) bound: NameBound,
    /// Whether the request names the wildcard.
    pub(super) all: bool,
    pub(super) read: usize,
    /// The names that were read, with the positions of their texts in the request.
    pub(super) listed: BTreeMap<Name, Vec<usize>>,
    pub(super) dropped: Option<std::vec::IntoIter<Name>>,
}

/// The progress of a delta request: subscriptions, unsubscriptions, and declared versions.
#[derive(Debug, Default)]
pub struct Changing {
    /// Whether it is the first request of its type.
    pub(super) first: bool,
    /// Names over this bound are skipped.
    pub(super) bound: NameBound,
    pub(super) subscribed: usize,
    pub(super) unsubscribed: usize,
    /// The last declared name that was taken.
    pub(super) remembered: Option<String>,
    /// Declared resources that the client does not ask for.
    pub(super) extra: BTreeMap<Name, Held>,
}

/// How many names are a slice: some milliseconds of work.
pub const SLICE: usize = 1024;

/// Returns the names that a SotW request lists. F-16: a locator counts as its name; these come last.
pub(super) fn listed(request: &DiscoveryRequest) -> impl Iterator<Item = &String> {
    let located = request.resource_locators.iter().map(|locator| &locator.name);
    request.resource_names.iter().chain(located)
}

/// Returns the names to which a delta request subscribes, in the same way.
pub(super) fn subscribed(request: &DeltaDiscoveryRequest) -> impl Iterator<Item = &String> {
    let located = request.resource_locators_subscribe.iter().map(|locator| &locator.name);
    request.resource_names_subscribe.iter().chain(located)
}

/// Returns the names from which a delta request unsubscribes, in the same way.
pub(super) fn unsubscribed(request: &DeltaDiscoveryRequest) -> impl Iterator<Item = &String> {
    let located = request
        .resource_locators_unsubscribe
        .iter()
        .map(|locator| &locator.name);
    request.resource_names_unsubscribe.iter().chain(located)
}

impl Listing {
    /// Returns all names of the request within the bound.
    pub(super) fn texts<'a>(&'a self, request: &'a DiscoveryRequest) -> impl Iterator<Item = &'a str> {
        listed(request)
            .map(String::as_str)
            .filter(|text| self.bound.admits(text))
    }

    /// Returns one of them.
    pub(super) fn text<'a>(&'a self, request: &'a DiscoveryRequest, at: usize) -> Option<&'a str> {
        let names = &request.resource_names;
        let located = |at: usize| Some(&request.resource_locators.get(at.checked_sub(names.len())?)?.name);
        names.get(at).or_else(|| located(at)).map(String::as_str)
    }
}

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
        self.greet(request.node.as_ref(), answers)?;
        let mut faults = NameFaults::default();
        let bound = self.check_names(listed(request), &mut faults)?;
        let nonces = self.nonces;
        let subscription = self.subscription(&request.type_url, answers, now)?;
        let (kind, way) = subscription.begin_sotw(request, bound, answers, nonces, now);
        let type_url = subscription.type_url.clone();
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
        self.greet(request.node.as_ref(), answers)?;
        let mut faults = NameFaults::default();
        let bound = self.check_names(subscribed(request), &mut faults)?;
        self.check_names(request.initial_resource_versions.keys(), &mut faults)?;
        let nonces = self.nonces;
        let subscription = self.subscription(&request.type_url, answers, now)?;
        let (kind, way) = subscription.begin_delta(request, bound, answers, nonces, now);
        let type_url = subscription.type_url.clone();
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
}
