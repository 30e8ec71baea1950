//! The variants of resources that are not meant for everybody (TP2).
//!
//! Owns which of them a client gets. Refuses to know the variant that is for everybody.

use std::sync::Arc;

use imbl::OrdMap;

use super::{Known, Name, Parameters, Reason, Resource};

/// By name, the variants that demand something of a client, in the order of their versions; at least one of each name.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants(OrdMap<Name, Arc<[Known]>>);

/// Of a name of which there are only variants for others.
static NOT_FOR_YOU: Known = Known::Absent(Reason::Said);

impl Variants {
    /// What a client gets of a name that has `plain` for everybody.
    pub(super) fn choose<'a>(
        &'a self,
        name: &Name,
        parameters: Option<&Parameters>,
        plain: Option<&'a Known>,
    ) -> Option<&'a Known> {
        let Some(variants) = self.0.get(name) else { return plain };
        // F-16: of several that match, the first by its version, so that every replica takes the same.
        let found = parameters.and_then(|own| variants.iter().find(|known| allows(known, own)));
        found.or(plain).or(Some(&NOT_FOR_YOU))
    }

    /// Whether several variants of a name are for a client that says this of itself.
    pub(super) fn ambiguous(&self, name: &Name, parameters: &Parameters) -> bool {
        let variants = self.0.get(name).into_iter().flat_map(|all| all.iter());
        variants.filter(|known| allows(known, parameters)).nth(1).is_some()
    }

    /// Adds a variant in the place of one with the same constraints. Whether that is a change.
    pub(super) fn put(&mut self, new: &Arc<Resource>) -> bool {
        let others = self.without(new);
        let same = |known: &Known| resource(known).is_some_and(|old| old.version() == new.version());
        if self.0.get(new.name()).is_some_and(|all| all.iter().any(same)) {
            return false;
        }
        let mut all = others;
        all.push(Known::Present(new.clone()));
        all.sort_by_key(|known| resource(known).map(|resource| resource.version()));
        self.0.insert(new.name().clone(), all.into());
        true
    }

    /// Removes the variant with the same constraints. Whether there was one.
    pub(super) fn withdraw(&mut self, old: &Resource) -> bool {
        let before = self.0.get(old.name()).map_or(0, |all| all.len());
        let others = self.without(old);
        let changed = others.len() < before;
        if others.is_empty() {
            self.0.remove(old.name());
        } else if changed {
            self.0.insert(old.name().clone(), others.into());
        }
        changed
    }

    /// Removes all variants of a name. Whether there were any.
    pub(super) fn forget(&mut self, name: &Name) -> bool {
        self.0.remove(name).is_some()
    }

    fn without(&self, like: &Resource) -> Vec<Known> {
        let all = self.0.get(like.name()).into_iter().flat_map(|all| all.iter());
        let others = all.filter(|known| resource(known).is_some_and(|one| one.constraints() != like.constraints()));
        others.cloned().collect()
    }
}

fn allows(known: &Known, parameters: &Parameters) -> bool {
    let constraints = resource(known).and_then(|resource| resource.constraints());
    constraints.is_some_and(|constraints| constraints.allow(parameters))
}

fn resource(known: &Known) -> Option<&Arc<Resource>> {
    match known {
        Known::Present(resource) => Some(resource),
        Known::Absent(_) => None,
    }
}
