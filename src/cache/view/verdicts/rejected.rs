//! What clients of a view reject, between the sessions, the writer (E-24) and whoever judges.
//!
//! Owns which types the writer has to ask about, who is to be asked what, and what the server was told. Nothing is kept of clients that
//! reject nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use parking_lot::Mutex;

use xds::{Cut, Known, Name, Slot, TypeUrl, Version};

/// What clients of a view reject.
#[derive(Debug, Default)]
pub struct Rejected {
    noted: Mutex<BTreeSet<TypeUrl>>,
    /// The same, for whoever judges.
    unjudged: Mutex<BTreeSet<TypeUrl>>,
    /// The seats of those who have rejected something, until they are asked what.
    rejecting: Mutex<BTreeMap<TypeUrl, BTreeSet<u32>>>,
    /// When the server was last told of each content.
    reported: Mutex<BTreeMap<TypeUrl, Contents>>,
}

type Contents = BTreeMap<(Name, Version), Instant>;

/// Of this many contents of a type, it is remembered that the server was told.
const REPORTED_MAX: usize = 1024;

impl Rejected {
    /// A client has rejected something of this type. Returns whether the writer must be told.
    pub(crate) fn note(&self, type_url: &TypeUrl) -> bool {
        add(&self.noted, type_url)
    }

    /// The same, for whoever judges. Returns whether that is to be told.
    pub(super) fn note_unjudged(&self, type_url: &TypeUrl) -> bool {
        add(&self.unjudged, type_url)
    }

    /// The client at this seat will be asked what it has rejected of this type.
    pub(super) fn note_rejecting(&self, type_url: &TypeUrl, seat: u32) {
        let mut rejecting = self.rejecting.lock();
        match rejecting.get_mut(type_url) {
            Some(seats) => seats.insert(seat),
            None => rejecting.entry(type_url.clone()).or_default().insert(seat),
        };
    }

    /// Returns the seats of those who have rejected something of this type since the last call.
    pub(crate) fn take_rejecting(&self, type_url: &TypeUrl) -> BTreeSet<u32> {
        self.rejecting.lock().remove(type_url).unwrap_or_default()
    }

    /// Returns the types of which clients have rejected something since the last call, for whoever judges.
    #[must_use]
    pub fn take_unjudged(&self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut *self.unjudged.lock())
    }

    /// Returns the types of which clients have rejected something since the last call.
    #[must_use]
    pub fn take(&self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut *self.noted.lock())
    }

    /// The server was told that clients reject these contents. Forgets those that are not in the cut any more.
    pub fn note_reported(&self, cut: &Cut, type_url: &TypeUrl, contents: Vec<(Name, Version)>, at: Instant) {
        let slot = cut.slot(type_url);
        let mut all = self.reported.lock();
        let reported = all.entry(type_url.clone()).or_default();
        reported.retain(|(name, version), _| slot.is_some_and(|slot| is_served(slot, name, *version)));
        reported.extend(contents.into_iter().map(|content| (content, at)));
        while reported.len() > REPORTED_MAX {
            reported.pop_first();
        }
    }

    /// Returns when the server was last told that clients reject a content.
    #[must_use]
    pub fn reported(&self, type_url: &TypeUrl, name: &Name, version: Version) -> Option<Instant> {
        let all = self.reported.lock();
        all.get(type_url)?.get(&(name.clone(), version)).copied()
    }
}

/// Adds a type. Returns whether it was not there.
fn add(types: &Mutex<BTreeSet<TypeUrl>>, type_url: &TypeUrl) -> bool {
    let mut types = types.lock();
    !types.contains(type_url) && types.insert(type_url.clone())
}

fn is_served(slot: &Slot, name: &Name, version: Version) -> bool {
    matches!(slot.known(name), Some(Known::Present(resource)) if resource.version() == version)
}
