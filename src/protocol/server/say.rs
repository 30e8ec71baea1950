//! What must be sent of one name. Composing uses this, and so does every check whether anything could be sent.
//!
//! Owns the comparison of what is current with what the client holds. Does not know when it is sent, and with what else.

use std::sync::Arc;

use super::subscription::{Current, Subscription};
use xds::{Dialect, Known, Name, Reason, Resource, TypeSight};

/// What must be sent of a name.
#[derive(Debug)]
pub(super) enum Say<'a> {
    /// The resource.
    Put(&'a Arc<Resource>),
    /// At most a heartbeat: the client holds the resource.
    Beat(&'a Arc<Resource>),
    /// That it has gone, or never existed.
    Gone,
    /// Nothing: it has gone, and the client holds nothing of it, or the dialect has no removal for it.
    Past,
    /// Nothing.
    Nothing,
    /// Nothing until more is known.
    Wait,
}

impl Subscription {
    /// Decides for an owed name, which is sent whatever the client holds (K-12).
    pub(super) fn answer<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Say<'a> {
        match self.current(name, slot) {
            Current::Unknown => Say::Wait,
            Current::Unwanted => Say::Nothing,
            Current::Known(Known::Present(resource)) => Say::Put(resource),
            // B-14, K-13: it stays owed, because the client may ask for what it has forgotten, or may wait for it again.
            Current::Known(Known::Absent(reason)) if self.unsayable(name, *reason) => Say::Wait,
            // C-08, C-15: a name that does not exist is answered, once per subscription.
            Current::Uncovered | Current::Known(Known::Absent(_)) if self.dialect == Dialect::Delta => Say::Gone,
            Current::Uncovered | Current::Known(Known::Absent(_)) => Say::Past,
        }
    }

    /// Decides for any other name, which is sent if it is new to the client and is not what the client rejected.
    pub(super) fn news<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Say<'a> {
        let held = self.held(name);
        match self.current(name, slot) {
            Current::Known(Known::Present(resource)) if self.refuses(resource) => Say::Nothing,
            Current::Known(Known::Present(resource)) if !held.is(resource.version()) => Say::Put(resource),
            // E-09: only the resource itself tells the client that an error is over.
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
