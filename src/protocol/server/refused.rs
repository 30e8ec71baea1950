//! What releases the responses that a client has refused (B-22).
//!
//! Owns when they are owed again. Refuses to know how they are sent.

use super::flight::Parked;
use super::subscription::{Current, Subscription};
use crate::xds::{Glimpse, Held, Known, Name, Reason};

impl Subscription {
    /// These names are sent again, or not wanted any more.
    pub(super) fn let_go<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        let Some(rare) = &mut self.rare else { return };
        for name in names {
            rare.parked.iter_mut().for_each(|parked| parked.let_go(name));
        }
        rare.parked.retain(|parked| !parked.spent());
    }

    /// A name is not asked for any more. C-20: what was refused of it counts as long as it is asked for by another of its names.
    pub(super) fn let_go_unwanted(&mut self, name: &Name) {
        let mut aliases = self.rare().parked.iter().filter_map(|parked| parked.aliases(name));
        if !aliases.any(|aliases| self.wanted(name, aliases).is_some()) {
            self.let_go(std::iter::once(name));
        }
    }

    /// Whether something of what was refused would be sent again now.
    pub(super) fn releases(&self, slot: Glimpse<'_>) -> bool {
        let comes = |(name, aliases): (&Name, &[Name])| {
            let wanted = self.wanted(name, aliases);
            wanted.is_some_and(|name| matches!(self.current(name, slot), Current::Known(Known::Present(_))))
        };
        let mut parked = self.rare().parked.iter();
        parked.any(|parked| self.has_changed(parked, slot) && parked.members().any(comes))
    }

    /// Whether a member has changed or gone.
    fn has_changed(&self, parked: &Parked, slot: Glimpse<'_>) -> bool {
        parked.members().any(|(name, aliases)| {
            let Some(wanted) = self.wanted(name, aliases) else {
                return false;
            };
            let refused = parked.refused(name).flatten();
            match self.current(wanted, slot) {
                Current::Known(Known::Present(resource)) => refused != Some(resource.version()),
                Current::Known(Known::Absent(Reason::TimedOut)) | Current::Unknown | Current::Unwanted => false,
                Current::Known(Known::Absent(_)) | Current::Uncovered => refused.is_some(),
            }
        })
    }

    /// B-22: when a member of a rejected response changes or goes, all of its members that are still wanted are owed again.
    pub(super) fn release(&mut self, slot: Glimpse<'_>) {
        for at in (0..self.rare().parked.len()).rev() {
            let Some(parked) = self.rare().parked.get(at) else {
                continue;
            };
            if self.has_changed(parked, slot) {
                let mut covered = Vec::new();
                let (mut owed, mut gone) = (Vec::new(), Vec::new());
                for (own, aliases) in parked.members() {
                    let Some(name) = self.wanted(own, aliases) else {
                        continue;
                    };
                    match self.current(name, slot) {
                        Current::Known(Known::Absent(_)) | Current::Uncovered => {
                            gone.extend(self.names.contains(name).then(|| name.clone()));
                            // C-20: who asked by an alias holds the resource under its own name.
                            if !self.names.contains(own) {
                                covered.push((own.clone(), Held::Unknown));
                            }
                        }
                        Current::Known(Known::Present(_)) | Current::Unknown | Current::Unwanted => {
                            owed.push(name.clone());
                        }
                    }
                }
                // D-03: what is gone waits like any removal, and where it takes nothing from the client it need not.
                let (gone, moot): (Vec<Name>, Vec<Name>) = gone.into_iter().partition(|name| self.held(name).perhaps());
                self.owed.extend(owed.into_iter().chain(moot));
                gone.into_iter().for_each(|name| self.look_at(name));
                self.seen.note(covered);
                self.rare_mut().parked.remove(at);
            }
        }
    }
}
