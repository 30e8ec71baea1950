//! How far a request with many names was taken: it is taken in slices, so that other streams are served in between.
//!
//! Owns what is kept of a request until all of it is taken, and the order of its names. Does not know who is served in between, and what a name means.

use std::collections::{BTreeMap, BTreeSet};

use super::name_faults::{NameBound, NameFaults};
use super::response::ReceiptKind;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
use xds::{Name, TypeUrl, Version};

/// The progress of a request. Until all of it is taken, the stream sends nothing and takes no other request, so the result is the
/// same as if it were taken at once.
#[derive(Debug)]
pub struct Progress<W> {
    pub(super) type_url: TypeUrl,
    pub(super) kind: ReceiptKind,
    pub(super) faults: NameFaults,
    pub(super) way: Option<W>,
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
    /// The names that were read.
    pub(super) listed: BTreeSet<Name>,
    pub(super) dropped: Option<std::vec::IntoIter<Name>>,
}

/// The progress of a delta request: subscriptions, unsubscriptions, and declared versions.
#[derive(Debug, Default)]
pub struct Changing {
    /// Whether it is the first request of its type.
    pub(super) first: bool,
    /// Names over this bound are not kept.
    pub(super) bound: NameBound,
    pub(super) subscribed: usize,
    pub(super) unsubscribed: usize,
    /// The last declared name that was taken.
    pub(super) remembered: Option<String>,
    /// Declared resources that only the wildcard covers.
    pub(super) held: BTreeMap<Name, Version>,
}

/// How many names are a slice: some milliseconds of work.
pub const SLICE: usize = 1024;

/// Returns the names that a SotW request lists, without the first few.
pub(super) fn listed(request: &DiscoveryRequest, first: usize) -> impl Iterator<Item = &String> {
    names(&request.resource_names, &request.resource_locators, first)
}

/// Returns the names that a delta request subscribes to, without the first few.
pub(super) fn subscribed(request: &DeltaDiscoveryRequest, first: usize) -> impl Iterator<Item = &String> {
    names(
        &request.resource_names_subscribe,
        &request.resource_locators_subscribe,
        first,
    )
}

/// Returns the names that a delta request unsubscribes from, without the first few.
pub(super) fn unsubscribed(request: &DeltaDiscoveryRequest, first: usize) -> impl Iterator<Item = &String> {
    names(
        &request.resource_names_unsubscribe,
        &request.resource_locators_unsubscribe,
        first,
    )
}

/// TP2: a locator counts as its name; they come after the other names.
fn names<'a>(names: &'a [String], locators: &'a [ResourceLocator], first: usize) -> impl Iterator<Item = &'a String> {
    let located = locators.iter().skip(first.saturating_sub(names.len()));
    names.iter().skip(first).chain(located.map(|locator| &locator.name))
}
