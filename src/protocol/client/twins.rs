//! What is in memory already.
//!
//! Owns that equal names, bytes and versions are kept once. Decides nothing by that: content is compared as ever.

use arcstr::ArcStr;

use super::Client;
use super::entry::Entry;
use xds::{Slot, Twins, TypeUrl};

impl Client {
    /// From now on, bytes that one of these has as well are kept once.
    pub fn share(&mut self, twins: Twins) {
        self.twins = twins;
    }
}

/// Finds what other views have under the names of the entries.
pub(super) fn find(entries: &mut [Entry], type_url: &TypeUrl, twins: &Twins) {
    let cuts = twins.cuts();
    let slots: Vec<&Slot> = cuts.iter().filter_map(|cut| cut.slot(type_url)).collect();
    for entry in entries.iter_mut().filter(|_| !slots.is_empty()) {
        let mut found = slots.iter().filter_map(|slot| slot.resource(&entry.name));
        entry.twin = found.next().cloned();
    }
}

/// Many control planes give all resources of a response one version: it is in memory once.
pub(super) fn share_versions(entries: &mut [Entry]) {
    let mut last = ArcStr::new();
    for version in entries.iter_mut().filter_map(|entry| entry.version.as_mut()) {
        if *version == last {
            *version = last.clone();
        } else {
            last = version.clone();
        }
    }
}
