//! What an earlier run of the relay knew of a type, as the beginning of what is held.
//!
//! Owns that none of it counts as the server's word. Refuses to know where it was kept.

use super::Feed;
use crate::xds::{Changes, Known, Name, Reason, Slot, Target, Update};

impl Feed {
    /// Takes what was known of this target. K-16, G-19: it is held as if from before the stream, and the server confirms it or
    /// lets it go like anything else that it was not told of. Nothing, once the server has spoken.
    pub(in crate::protocol::client) fn restore(&mut self, target: &Target, slot: &Slot) -> Option<Changes> {
        if self.line.answered || self.hidden {
            return None;
        }
        match target {
            Target::Wildcard => self.restore_wildcard(slot),
            Target::Name(name) => self.restore_name(name, slot),
        }
    }

    fn restore_wildcard(&mut self, slot: &Slot) -> Option<Changes> {
        let state = slot.wildcard.as_ref().filter(|_| self.wildcard)?;
        let updates = state.resources().map(|resource| self.kept.restore(resource)).collect();
        self.settle
            .restored(state.resources().map(|resource| resource.name().clone()));
        // The view may serve it as complete; whether it still is, the server has to show.
        self.changes(updates, state.complete().then_some(true), None)
    }

    fn restore_name(&mut self, name: &Name, slot: &Slot) -> Option<Changes> {
        if !self.names.contains(name.as_str()) {
            return None;
        }
        let updates = match slot.known(name) {
            _ if name.is_collection() => {
                let members = slot.named.members(name);
                members.map(|resource| self.kept.restore(resource)).collect()
            }
            Some(Known::Present(resource)) => vec![self.kept.restore(resource)],
            // K-16: what the server said to an earlier run is no ground to take anything from a client.
            Some(Known::Absent(_)) => vec![Update::Absent(name.clone(), Reason::TimedOut)],
            None => Vec::new(),
        };
        self.changes(updates, None, None)
    }
}
