//! What a client holds beside the states that it was brought to: what is taken from it, and when.
//!
//! Owns which names go. Refuses to know how that is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compose::Allowed;
use super::subscription::Subscription;
use crate::xds::{Extra, Held, Name, TypeSight};

impl Subscription {
    /// Of what a client holds and no state has: what can be taken from it now, and what it perhaps asked for by another name
    /// (C-20), as long as such a name is unknown (G-20), or is what it is called now.
    pub(super) fn goes(&self, extra: &Arc<Extra>, slot: TypeSight<'_>) -> (Vec<Name>, Option<Arc<Extra>>) {
        let held = self
            .names
            .iter()
            .filter_map(|(asked, held)| Some((asked, held.content()?.name())));
        // Where the other name means something else now, nothing but this says that what it meant has gone.
        let by_alias: BTreeSet<&Name> = held
            .filter(|(asked, name)| asked != name && slot.resource(asked).is_none())
            .map(|(_, name)| name)
            .collect();
        let called = self.names.iter().filter_map(|(asked, _)| slot.resource(asked));
        let called: BTreeSet<&Name> = called.map(|resource| resource.name()).collect();
        // F-03: what names nothing is nowhere, and has no name that a client knows.
        let others = |name: &Name| !self.names.contains(name) && !by_alias.contains(name) && !name.is_nothing();
        // F-11: nobody's resource is also called by a name of another authority.
        let unknown = self.names.iter().filter(|(name, _)| slot.known(name).is_none());
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

    /// C-13: without a wildcard, what goes of what the client does not ask for, what does not, and whether any of that waits for other
    /// types: D-03, what it was sent on this stream, as a member of a collection, goes like any removal.
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
