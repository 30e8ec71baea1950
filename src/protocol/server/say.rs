//! What there is to say of one name: behind composing, and behind every question whether anything could be said.
//!
//! Owns the comparison of what is current with what the client holds. Refuses to know when it is said, and what else is.

use std::sync::Arc;

use super::subscription::{Current, Subscription};
use crate::xds::{Dialect, Known, Name, Reason, Resource, TypeSight};

/// What there is to say of a name.
#[derive(Debug)]
pub(super) enum Say<'a> {
    /// The resource.
    Put(&'a Arc<Resource>),
    /// At the most a heartbeat: the client holds the resource.
    Beat(&'a Arc<Resource>),
    /// That it is gone, or never was.
    Gone,
    /// Nothing: it is gone, and the client holds nothing of it, or there is no word for that.
    Past,
    /// Nothing.
    Nothing,
    /// Nothing as long as nothing more is known.
    Wait,
}

impl Subscription {
    /// What is owed is said whatever the client holds (K-12).
    pub(super) fn answer<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Say<'a> {
        match self.current(name, slot) {
            Current::Unknown => Say::Wait,
            Current::Unwanted => Say::Nothing,
            Current::Known(Known::Present(resource)) => Say::Put(resource),
            // B-14, K-13: it stays owed, because the client may have asked for what it has forgotten, or wait for it once more.
            Current::Known(Known::Absent(reason)) if self.unsayable(name, *reason) => Say::Wait,
            // C-08, C-15: what does not exist is answered for, once per subscription.
            Current::Uncovered | Current::Known(Known::Absent(_)) if self.dialect == Dialect::Delta => Say::Gone,
            Current::Uncovered | Current::Known(Known::Absent(_)) => Say::Past,
        }
    }

    /// What is not owed is said if it is new to the client and was not refused as it is.
    pub(super) fn news<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Say<'a> {
        let held = self.held(name);
        match self.current(name, slot) {
            Current::Known(Known::Present(resource)) if self.refuses(resource) => Say::Nothing,
            Current::Known(Known::Present(resource)) if !held.is(resource.version()) => Say::Put(resource),
            // E-09: only the resource itself says that nothing is wrong with it any more.
            Current::Known(Known::Present(resource)) if self.is_absolved(name, slot) => Say::Put(resource),
            Current::Known(Known::Present(resource)) => Say::Beat(resource),
            Current::Known(Known::Absent(Reason::TimedOut)) => Say::Nothing,
            Current::Unknown | Current::Unwanted | Current::Uncovered => Say::Nothing,
            Current::Known(Known::Absent(_)) if !held.perhaps() || self.dialect == Dialect::Sotw => Say::Past,
            Current::Known(Known::Absent(_)) if self.cold.refusals().has(name, None) => Say::Nothing,
            Current::Known(Known::Absent(_)) => Say::Gone,
        }
    }
}
