//! What clients of a view reject, between the sessions, the writer (E-24) and whoever judges.
//!
//! Owns which types the writer has to ask about, who is to be asked what, and what the server was told. Nothing is kept of clients that
//! reject nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::{Respondents, View};
use xds::{Known, Name, Slot, TypeUrl, Version};

/// Both directions.
#[derive(Debug, Default)]
pub(super) struct Rejected {
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

impl View {
    /// A client has rejected something of this type.
    pub fn note_rejection(self: &Arc<Self>, type_url: &TypeUrl) {
        let is_new = |noted: &Mutex<BTreeSet<TypeUrl>>| {
            let mut noted = noted.lock();
            !noted.contains(type_url) && noted.insert(type_url.clone())
        };
        if is_new(&self.rejected.noted) {
            self.interest.notify_one();
        }
        if self.docket.settings().after > 0 && is_new(&self.rejected.unjudged) {
            self.docket.add(self);
        }
    }

    /// The client at this seat will be asked what it has rejected of this type.
    pub(super) fn note_rejecting(&self, type_url: &TypeUrl, seat: u32) {
        if self.docket.settings().after > 0 {
            let mut rejecting = self.rejected.rejecting.lock();
            match rejecting.get_mut(type_url) {
                Some(seats) => seats.insert(seat),
                None => rejecting.entry(type_url.clone()).or_default().insert(seat),
            };
        }
    }

    /// Returns the sessions whose clients have rejected something of this type since the last call.
    #[must_use]
    pub fn take_rejecting(self: &Arc<Self>, type_url: &TypeUrl) -> Respondents {
        let seats = self.rejected.rejecting.lock().remove(type_url);
        Respondents::at(self, seats.into_iter().flatten())
    }

    /// Returns the types of which clients have rejected something since the last call, for whoever judges.
    #[must_use]
    pub fn take_unjudged(&self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut *self.rejected.unjudged.lock())
    }

    /// Returns the types of which clients have rejected something since the last call.
    #[must_use]
    pub fn take_rejected(&self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut *self.rejected.noted.lock())
    }

    /// The server was told that clients reject these contents.
    pub fn note_reported(&self, type_url: &TypeUrl, contents: Vec<(Name, Version)>, at: Instant) {
        let cut = self.cut();
        let slot = cut.slot(type_url);
        let mut all = self.rejected.reported.lock();
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
        let all = self.rejected.reported.lock();
        all.get(type_url)?.get(&(name.clone(), version)).copied()
    }
}

fn is_served(slot: &Slot, name: &Name, version: Version) -> bool {
    matches!(slot.known(name), Some(Known::Present(resource)) if resource.version() == version)
}
