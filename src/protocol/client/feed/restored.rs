//! Content from an earlier run of the relay.
//!
//! Owns that none of it counts as an answer of the server. Does not know where it was stored.

use super::Feed;
use xds::{Changes, Known, Name, Reason, Slot, Target, Update};

impl Feed {
    /// Takes the content that an earlier run held for this target. K-16, G-19: it counts as content from before the stream. The
    /// server is not sent its version; what the server does not confirm is dropped. Returns `None` if the server has answered
    /// already.
    pub(in crate::client) fn restore(&mut self, target: &Target, slot: &Slot) -> Option<Changes> {
        if self.outbound.is_answered() || self.wildcard.is_hidden() {
            return None;
        }
        match target {
            Target::Wildcard => self.restore_wildcard(slot),
            Target::Name(name) => self.restore_name(name, slot),
        }
    }

    fn restore_wildcard(&mut self, slot: &Slot) -> Option<Changes> {
        let state = slot.wildcard.as_ref().filter(|_| self.wildcard.is_asked())?;
        let updates = state.resources().map(|resource| self.kept.restore(resource)).collect();
        self.completeness
            .restored(state.resources().map(|resource| resource.name().clone()));
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
        let updates = match slot.known(name) {
            Some(Known::Present(resource)) => vec![self.kept.restore(resource)],
            // K-16: the server's word to an earlier run is no reason to take anything from a client.
            Some(Known::Absent(_)) => vec![Update::Absent(name.clone(), Reason::TimedOut)],
            None | Some(Known::Held(_)) => Vec::new(),
        };
        self.changes(updates, None, None)
    }

    fn restore_members(&mut self, collection: &Name, slot: &Slot) -> Option<Changes> {
        let members: Vec<_> = slot.named.members(collection).collect();
        // Members that were also requested by name wait on their own.
        let alone = members
            .iter()
            .filter(|member| !self.names.contains(member.name().as_str()));
        self.collections
            .restored(collection, alone.map(|member| member.name().clone()));
        let updates = members.into_iter().map(|member| self.kept.restore(member));
        let updates = updates.collect();
        self.changes(updates, None, None)
    }
}
