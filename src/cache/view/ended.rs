// SPDX-License-Identifier: Apache-2.0
//! Forgets what is known of targets that nobody wants any more.
//!
//! Owns that content stays while somebody else wants it. Does not know when an interest ends.

use std::collections::BTreeSet;

use super::View;
use super::demand::Ring;
use xds::{Changes, Known, Name, Reason, Slot, Target, TypeUrl, Update};

impl View {
    /// Forgets what nobody leases any more. A session that began to want it at this very moment is told.
    pub(super) fn forget(&self, ended: &[(TypeUrl, Target)]) {
        let pen = self.head.take_pen();
        let mut cut = (*self.head.cut()).clone();
        let mut rings = Vec::new();
        for ended in ended.chunk_by(|a, b| a.0 == b.0) {
            let Some((type_url, first)) = ended.first() else {
                continue;
            };
            let Some(slot) = cut.slot(type_url) else {
                continue;
            };
            if !self.demand.leases().has_type(type_url) {
                cut = cut.without(type_url);
                rings.push(Ring::Everybody(type_url.clone()));
                continue;
            }
            let names = ended.iter().filter_map(|(_, target)| match target {
                Target::Wildcard => None,
                Target::Name(name) => Some(name),
            });
            let mut found = BTreeSet::new();
            let forgotten = names
                .clone()
                .filter_map(|name| self.unneeded(type_url, slot, name, &mut found));
            let forgotten: Vec<Name> = forgotten.collect();
            let absent = self.still_absent(type_url, slot, names).into_iter();
            let absent = absent.map(|name| Update::Absent(name, Reason::Said));
            let updates = forgotten.into_iter().map(Update::Forget).chain(absent);
            let changes = Changes::of((type_url.clone(), false), updates.collect());
            let wildcard = *first == Target::Wildcard && slot.wildcard.is_some();
            let (next, names) = cut.with(&changes);
            cut = next;
            if wildcard {
                cut = cut.without_wildcard(type_url);
                rings.push(Ring::Everybody(type_url.clone()));
            } else if !names.is_empty() {
                rings.push(Ring::Some {
                    type_url: type_url.clone(),
                    names,
                    wildcard: false,
                });
            }
        }
        drop(self.finish(pen, cut, &rings));
    }

    /// Returns the canonical name of what was requested as `name`, unless somebody leases it by another of its names (C-20). Of those in
    /// `found` that is known already: one resource can have very many names.
    fn unneeded(&self, type_url: &TypeUrl, slot: &Slot, name: &Name, found: &mut BTreeSet<Name>) -> Option<Name> {
        let Some(resource) = slot.named.resource(name) else {
            let known = slot.named.entries().contains_key(name) || slot.named.whole(name);
            return known.then(|| name.clone());
        };
        // a resource without a name answers to every name.
        if resource.name().is_empty() && self.demand.leases().has_names(type_url) {
            return None;
        }
        if !found.insert(resource.name().clone()) {
            return None;
        }
        let collection = resource.name().collection();
        let mut names = std::iter::once(resource.name())
            .chain(resource.aliases())
            .chain(&collection);
        let needed = names.any(|name| self.demand.leases().has(type_url, name));
        (!needed).then(|| resource.name().clone())
    }

    /// C-22: the names that are known not to exist because their whole collection is known, and that are leased by themselves.
    /// When these collections are forgotten, they still do not exist.
    fn still_absent<'a>(&self, type_url: &TypeUrl, slot: &Slot, ended: impl Iterator<Item = &'a Name>) -> Vec<Name> {
        let whole = ended.filter(|name| slot.named.whole(name)).cloned().collect();
        let within = self.demand.leases().within(type_url, &whole);
        let absent = |name: &Name| matches!(slot.named.known(name), Some(Known::Absent(Reason::Said)));
        within.into_iter().filter(absent).collect()
    }
}
