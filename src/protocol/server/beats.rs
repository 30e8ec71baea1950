//! The heartbeats that a client was sent (K-17).
//!
//! Owns the last one of each resource. Does not know when one is due.

use std::collections::BTreeMap;

use super::subscription::Subscription;
use xds::{Item, Name, Resource, TypeSight};

/// The last heartbeat passed on, by canonical name.
#[derive(Debug, Default)]
pub(super) struct Beats(BTreeMap<Name, u32>);

impl Beats {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, name: Name, beat: u32) {
        self.0.insert(name, beat);
    }
}

impl Subscription {
    /// Whether the client was sent the last heartbeat of a resource, or knows that it has none.
    pub(super) fn knows_beat(&self, resource: &Resource, slot: TypeSight<'_>) -> bool {
        let beat = slot.expiry(resource).map(|expiry| expiry.beat);
        self.cold.beats().0.get(resource.name()).copied() == beat
    }

    /// Whether the client was sent a time to live with the resource that it holds.
    pub(super) fn is_mortal(&self, resource: &Resource) -> bool {
        self.cold.beats().0.contains_key(resource.name())
    }

    /// Notes that the client was sent the last heartbeats of these resources, or that they have none.
    pub(super) fn note_beats(&mut self, items: &BTreeMap<Name, Item>, slot: TypeSight<'_>) {
        if !self.reads_ttl() {
            return;
        }
        for (name, item) in items {
            match slot.expiry(&item.resource) {
                Some(expiry) => self.cold.add_beat(name.clone(), expiry.beat),
                None => self.forget_beat(name),
            }
        }
    }

    pub(super) fn forget_beat(&mut self, name: &Name) {
        if let Some(beats) = self.cold.beats_mut() {
            beats.0.remove(name);
        }
    }

    pub(super) fn forget_beats(&mut self, forget: impl Fn(&Name) -> bool) {
        if let Some(beats) = self.cold.beats_mut() {
            beats.0.retain(|name, _| !forget(name));
        }
    }
}
