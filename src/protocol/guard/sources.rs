//! Which served resources refer to which removed ones.
//!
//! Owns what counts as a source: listeners, scoped routes and virtual hosts that are served, routes that one of them names or a
//! client wants, and aggregate clusters that stay. Does not decide what goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::reading::references;
use super::removal::Half;
use crate::xds::{Cut, Kind, Name, Resource, TypeUrl};

/// What refers to a resource.
pub(super) type Source = (TypeUrl, Name);

/// The names that go in the present step.
pub(super) type Going = BTreeMap<Half, BTreeSet<Name>>;

/// The referring resources of a cut, without those that go.
pub(super) struct Sources<'a, W> {
    cut: &'a Cut,
    /// Whether a client wants the route configuration of this name.
    wanted: W,
}

impl<'a, W: Fn(&TypeUrl, &Name) -> bool> Sources<'a, W> {
    pub(super) const fn new(cut: &'a Cut, wanted: W) -> Self {
        Self { cut, wanted }
    }

    /// Returns the route configurations that are named, each with what names it.
    pub(super) fn routes(&self, going: &Going) -> BTreeMap<Name, Source> {
        let mut found = BTreeMap::new();
        let naming = self.served(going).filter(|(half, _)| names_routes(half.0.kind()));
        for ((type_url, _), resource) in naming {
            let named = references(type_url.kind(), resource).map(|references| &references.routes);
            for route in named.into_iter().flatten() {
                let source = || (type_url.clone(), resource.name().clone());
                found.entry(route.clone()).or_insert_with(source);
            }
        }
        found
    }

    /// Returns those of these clusters that something names, each with what names it. `routes` are the routes that are named.
    /// `stays`: whether an aggregate cluster stays; its members are found one hop away, so no two clusters hold each other.
    pub(super) fn clusters(
        &self,
        asked: &BTreeSet<Name>,
        routes: &BTreeMap<Name, Source>,
        going: &Going,
    ) -> BTreeMap<Name, Source> {
        let mut found = BTreeMap::new();
        for ((type_url, _), resource) in self.served(going) {
            let kind = type_url.kind();
            let directs = match kind {
                Kind::Lds | Kind::Srds | Kind::Vhds => true,
                Kind::Rds => routes.contains_key(resource.name()) || (self.wanted)(&type_url, resource.name()),
                Kind::Cds | Kind::Eds | Kind::Leds | Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Other => false,
            };
            if directs {
                note(&mut found, asked, &type_url, resource);
            }
        }
        found
    }

    /// Returns those of these clusters that are members of an aggregate cluster which stays.
    pub(super) fn members(
        &self,
        asked: &BTreeSet<Name>,
        going: &Going,
        stays: impl Fn(&Half, &Name) -> bool,
    ) -> BTreeMap<Name, Source> {
        let mut found = BTreeMap::new();
        for (half, resource) in self.served(going) {
            if half.0.kind() == Kind::Cds && stays(&half, resource.name()) {
                note(&mut found, asked, &half.0, resource);
            }
        }
        found
    }

    /// Returns the resources that may refer to others, without those that go.
    fn served<'b>(&'b self, going: &'b Going) -> impl Iterator<Item = (Half, &'b Arc<Resource>)> {
        let slots = self.cut.slots().filter(|(type_url, _)| refers(type_url.kind()));
        slots.flat_map(move |(type_url, slot)| {
            let covered = slot.wildcard.iter().map(|state| (state, true));
            let halves = covered.chain([(&slot.named, false)]);
            halves.flat_map(move |(state, wildcard)| {
                let half = (type_url.clone(), wildcard);
                let gone = going.get(&half);
                let all = state.resources().chain(state.variants().map(|(variant, _)| variant));
                let stay = all.filter(move |resource| gone.is_none_or(|gone| !gone.contains(resource.name())));
                stay.map(move |resource| (half.clone(), resource))
            })
        })
    }
}

fn note(found: &mut BTreeMap<Name, Source>, asked: &BTreeSet<Name>, type_url: &TypeUrl, resource: &Arc<Resource>) {
    let Some(references) = references(type_url.kind(), resource) else {
        return;
    };
    for cluster in references.clusters.iter().filter(|cluster| asked.contains(*cluster)) {
        let source = || (type_url.clone(), resource.name().clone());
        found.entry(cluster.clone()).or_insert_with(source);
    }
}

const fn names_routes(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Srds)
}

/// Whether resources of this kind can refer to others.
pub(super) const fn refers(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Rds | Kind::Srds | Kind::Vhds | Kind::Cds)
}
