//! What releases the responses that a client has refused (B-22).
//!
//! Owns when they are owed again. Refuses to know how they are sent.

use super::subscription::{Current, Subscription};
use crate::xds::{Held, Known, Name, Reason, Slot};

impl Subscription {
    /// B-22: when a member of a rejected response changes or goes, all of its members that are still wanted are owed again.
    pub(super) fn release(&mut self, slot: &Slot) {
        for at in (0..self.parked.len()).rev() {
            let Some(parked) = self.parked.get(at) else { continue };
            let changed = parked.members().any(|(name, aliases)| {
                let Some(wanted) = self.wanted(name, aliases) else {
                    return false;
                };
                let refused = parked.refused(name).flatten();
                match self.current(wanted, slot) {
                    Current::Known(Known::Present(resource)) => refused != Some(resource.version()),
                    Current::Known(Known::Absent(Reason::TimedOut)) | Current::Unknown | Current::Unwanted => false,
                    Current::Known(Known::Absent(_)) | Current::Uncovered => refused.is_some(),
                }
            });
            if changed {
                let wanted = parked
                    .members()
                    .filter_map(|(name, aliases)| self.wanted(name, aliases));
                let gone = |name: &&Name| {
                    let current = self.current(name, slot);
                    matches!(current, Current::Known(Known::Absent(_)) | Current::Uncovered)
                };
                // D-03: what is gone waits like any removal.
                let (gone, owed): (Vec<&Name>, Vec<&Name>) = wanted.partition(gone);
                let (gone, owed) = (cloned(&gone), cloned(&owed));
                self.owed.extend(owed);
                let (asked, covered): (Vec<_>, Vec<_>) = gone.into_iter().partition(|name| self.names.contains(name));
                asked.into_iter().for_each(|name| self.look_at(name));
                self.seen
                    .note(covered.into_iter().map(|name| (name, Held::Unknown)).collect());
                self.parked.remove(at);
            }
        }
    }
}

fn cloned(names: &[&Name]) -> Vec<Name> {
    names.iter().map(|name| (*name).clone()).collect()
}
