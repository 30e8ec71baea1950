//! Content from an earlier run of the relay.
//!
//! Owns that none of it counts as an answer of the server. Does not know where it was stored.

use std::sync::Arc;

use super::Feed;
use xds::{Changes, Known, Name, Reason, Resource, Slot, Target, Update};

impl Feed {
    /// Takes the content that an earlier run held for this target. K-16, G-19: it counts as content from before the stream. The
    /// server is not sent its version; what the server does not confirm is dropped. Returns `None` if the server has answered
    /// already.
    pub(in crate::client) fn restore(&mut self, target: &Target, slot: &Slot) -> Option<Changes> {
        if self.outbound.answered || self.hidden {
            return None;
        }
        match target {
            Target::Wildcard => self.restore_wildcard(slot),
            Target::Name(name) => self.restore_name(name, slot),
        }
    }

    fn restore_wildcard(&mut self, slot: &Slot) -> Option<Changes> {
        let state = slot.wildcard.as_ref().filter(|_| self.wildcard)?;
        let all = || state.resources().chain(state.variants().map(|(variant, _)| variant));
        let updates = all().map(|resource| self.kept.restore(resource)).collect();
        self.completeness.restored(all().map(|resource| resource.key()));
        // The view may serve it as complete; the server has yet to confirm that it still is.
        self.changes(updates, state.complete().then_some(true), None)
    }

    fn restore_name(&mut self, name: &Name, slot: &Slot) -> Option<Changes> {
        if !self.names.contains(name.as_str()) {
            return None;
        }
        if name.is_collection() {
            return self.restore_members(name, slot);
        }
        let mut updates: Vec<Update> = match slot.known(name) {
            Some(Known::Present(resource)) => vec![self.kept.restore(resource)],
            // K-16: the server's word to an earlier run is no reason to take anything from a client.
            Some(Known::Absent(_)) => vec![Update::Absent(name.clone(), Reason::TimedOut)],
            None => Vec::new(),
        };
        for variant in variants_of(name, slot) {
            updates.push(self.kept.restore(variant));
        }
        self.doubt_held(name);
        self.changes(updates, None, None)
    }

    fn restore_members(&mut self, collection: &Name, slot: &Slot) -> Option<Changes> {
        let variants = slot.named.variants().map(|(variant, _)| variant);
        let variants = variants.filter(|variant| collection.covers(variant.name()));
        let members: Vec<_> = slot.named.members(collection).chain(variants).collect();
        // Members that were also requested by name wait on their own.
        let alone = members
            .iter()
            .filter(|member| !self.names.contains(member.name().as_str()));
        self.collections.restored(collection, alone.map(|member| member.key()));
        let updates = members.into_iter().map(|member| self.kept.restore(member));
        let updates = updates.collect();
        self.changes(updates, None, None)
    }
}

/// Returns the variants of a name that are not for everybody, from the half that has any.
fn variants_of<'a>(name: &'a Name, slot: &'a Slot) -> impl Iterator<Item = &'a Arc<Resource>> {
    let half = slot.halves().find(|state| state.variants_of(name).next().is_some());
    half.into_iter()
        .flat_map(|state| state.variants_of(name))
        .map(|(variant, _)| variant)
}
