//! Resources that a client holds although no state has them: which of them are removed, and when.
//!
//! Owns which names go. Does not know how a removal is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compose::Allowed;
use super::subscription::Subscription;
use xds::{Extra, Held, Name, TypeSight};

impl Subscription {
    /// Of the resources that a client holds and no state has: returns those that can be removed now, and those that must wait. A
    /// resource waits while the client may have asked for it by another name (C-20): while such a name is unknown (G-20), or
    /// while the resource answers to it.
    pub(super) fn goes(&self, extra: &Arc<Extra>, slot: TypeSight<'_>) -> (Vec<Name>, Option<Arc<Extra>>) {
        let held = self
            .names
            .iter()
            .filter_map(|(asked, held)| Some((asked, held.content()?.name())));
        // If the other name now means another resource, only this removal tells the client that the old one is gone.
        let by_alias: BTreeSet<&Name> = held
            .filter(|(asked, name)| asked != name && slot.resource(asked).is_none())
            .map(|(_, name)| name)
            .collect();
        let called = self.names.iter().filter_map(|(asked, _)| slot.resource(asked));
        let called: BTreeSet<&Name> = called.map(|resource| resource.name()).collect();
        // F-03: an invalid name does not exist, so a client cannot know it as another name.
        let others = |name: &Name| !self.names.contains(name) && !by_alias.contains(name) && !name.is_nothing();
        // F-11: a resource is never an alias of another authority's name. A collection has its members by their own names.
        let unknown = self.single_names().filter(|(name, _)| slot.known(name).is_none());
        let unsure: BTreeSet<Option<&str>> = unknown.map(|(name, _)| slot.authority(name)).collect();
        let (waits, goes): (BTreeMap<_, _>, BTreeMap<_, _>) = extra
            .names()
            .iter()
            .filter(|(name, _)| others(name))
            .partition(|(name, held)| {
                let unknown = unsure.contains(&slot.authority(name)) && held.content().is_none();
                unknown || called.contains(name)
            });
        let waits = waits.into_iter().map(|(name, held)| (name.clone(), held.clone()));
        let waits: BTreeMap<Name, Held> = waits.collect();
        let extra = (!waits.is_empty()).then(|| Arc::new(Extra::new(waits)));
        (goes.into_keys().cloned().collect(), extra)
    }

    /// C-13: without a wildcard, splits the resources that the client does not ask for into those that go and those that stay.
    /// Also returns whether any of them waits for other types. D-03: a member of a collection that was sent on this stream goes
    /// like any removal.
    pub(super) fn unasked(
        &self,
        extra: &Arc<Extra>,
        slot: TypeSight<'_>,
        allowed: Allowed,
    ) -> (Vec<Name>, Option<Arc<Extra>>, bool) {
        let (goes, rest) = self.goes(extra, slot);
        let held = |name: &Name| extra.names().get(name).cloned().unwrap_or_default();
        let free = allowed.removals && !allowed.busy;
        let (later, now): (Vec<Name>, Vec<Name>) = goes
            .into_iter()
            .partition(|name| !free && held(name).content().is_some());
        if later.is_empty() {
            return (now, rest, false);
        }
        let rest = rest.iter().flat_map(|rest| rest.names().keys());
        let rest: BTreeMap<Name, Held> = rest.chain(&later).map(|name| (name.clone(), held(name))).collect();
        (now, Some(Arc::new(Extra::new(rest))), true)
    }
}
