//! Which served resources refer to which removed ones.
//!
//! Owns what counts as a source: listeners, scoped routes and virtual hosts that are served, routes that one of them names or a
//! client wants, and aggregate clusters that stay. Does not decide what goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::reading::references;
use super::removal::Half;
use xds::{Cut, Kind, Name, Resource, TypeUrl};

/// What refers to a resource.
pub(super) type Source = (TypeUrl, Name);

/// The names that go in the present step.
pub(super) type Going = BTreeMap<Half, BTreeSet<Name>>;

/// The referring resources of a cut, without those that go.
pub(super) struct Sources<'a, W> {
    cut: &'a Cut,
    wanted: W,
}

impl<'a, W: Fn(&TypeUrl, &Name) -> bool> Sources<'a, W> {
    pub(super) const fn new(cut: &'a Cut, wanted: W) -> Self {
        Self { cut, wanted }
    }

    /// Returns the route configurations that are named, each with what names it.
    pub(super) fn routes(&self, going: &Going) -> BTreeMap<Name, Source> {
        let mut found = BTreeMap::new();
        for (type_url, _, resource) in self.served(going, names_routes) {
            let named = references(type_url.kind(), resource).map(|references| &references.routes);
            for route in named.into_iter().flatten() {
                let source = || (type_url.clone(), resource.name().clone());
                found.entry(route.clone()).or_insert_with(source);
            }
        }
        found
    }

    /// Returns the ids of the states in which clusters may be named.
    pub(super) fn read(&self) -> Vec<u64> {
        let slots = self.cut.slots().filter(|(type_url, _)| directs(type_url.kind()));
        slots
            .flat_map(|(_, slot)| slot.halves())
            .map(|state| state.id())
            .collect()
    }

    /// Returns those of the asked clusters that something names, each with a resource in use that names it; none if no such resource
    /// is in use. `routes` are the routes that are named.
    pub(super) fn clusters(
        &self,
        asked: impl Fn(&Name) -> bool,
        routes: &BTreeMap<Name, Source>,
        going: &Going,
    ) -> BTreeMap<Name, Option<Source>> {
        let mut found = BTreeMap::new();
        for (type_url, _, resource) in self.served(going, directs) {
            let in_use = || self.is_in_use(type_url, resource.name(), routes);
            note(&mut found, &asked, type_url, resource, in_use);
        }
        found
    }

    /// Whether what this resource names counts: of route configurations, only that of those that are named or wanted.
    pub(super) fn is_in_use(&self, type_url: &TypeUrl, name: &Name, routes: &BTreeMap<Name, Source>) -> bool {
        type_url.kind() != Kind::Rds || routes.contains_key(name) || (self.wanted)(type_url, name)
    }

    /// Returns those of these clusters that are members of an aggregate cluster which stays. Members are found one hop away, so no
    /// two clusters hold each other.
    pub(super) fn members(
        &self,
        asked: &BTreeSet<Name>,
        going: &Going,
        stays: impl Fn(&TypeUrl, bool, &Name) -> bool,
    ) -> BTreeMap<Name, Source> {
        let mut found = BTreeMap::new();
        for (type_url, wildcard, resource) in self.served(going, |kind| kind == Kind::Cds) {
            let in_use = || stays(type_url, wildcard, resource.name());
            note(
                &mut found,
                |cluster| asked.contains(cluster),
                type_url,
                resource,
                in_use,
            );
        }
        let found = found.into_iter();
        found.filter_map(|(cluster, by)| Some((cluster, by?))).collect()
    }

    /// Returns the resources of these kinds, without those that go, each with its half.
    fn served<'b>(
        &'b self,
        going: &'b Going,
        of: impl Fn(Kind) -> bool + 'b,
    ) -> impl Iterator<Item = (&'b TypeUrl, bool, &'b Arc<Resource>)> {
        let slots = self.cut.slots().filter(move |(type_url, _)| of(type_url.kind()));
        slots.flat_map(move |(type_url, slot)| {
            let covered = slot.wildcard.iter().map(|state| (state, true));
            let halves = covered.chain([(&slot.named, false)]);
            halves.flat_map(move |(state, wildcard)| {
                let gone = going.get(&(type_url.clone(), wildcard));
                let stay = state
                    .resources()
                    .filter(move |resource| gone.is_none_or(|gone| !gone.contains(resource.name())));
                stay.map(move |resource| (type_url, wildcard, resource))
            })
        })
    }
}

/// Notes which of the asked clusters a resource names, and itself with each of them if it is in use.
fn note(
    found: &mut BTreeMap<Name, Option<Source>>,
    asked: impl Fn(&Name) -> bool,
    type_url: &TypeUrl,
    resource: &Arc<Resource>,
    in_use: impl Fn() -> bool,
) {
    let references = references(type_url.kind(), resource);
    let clusters = references.map(|references| &references.clusters).into_iter().flatten();
    let open = |cluster: &&Name| asked(cluster) && found.get(*cluster).is_none_or(Option::is_none);
    let open: Vec<&Name> = clusters.filter(open).collect();
    if open.is_empty() {
        return;
    }
    let source = in_use().then(|| (type_url.clone(), resource.name().clone()));
    found.extend(open.into_iter().map(|cluster| (cluster.clone(), source.clone())));
}

/// Whether resources of this kind can be referred to.
pub(super) const fn is_referred(kind: Kind) -> bool {
    matches!(kind, Kind::Cds | Kind::Rds | Kind::Eds)
}

/// Whether resources of this kind lead to clusters.
const fn directs(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Rds | Kind::Srds | Kind::Vhds)
}

/// Whether resources of this kind name route configurations.
pub(super) const fn names_routes(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Srds)
}

/// Whether resources of this kind can refer to others.
pub(super) const fn refers(kind: Kind) -> bool {
    directs(kind) || matches!(kind, Kind::Cds)
}
