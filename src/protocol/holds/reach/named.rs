//! What a version of a resource names, and what another one does not.
//!
//! Owns which kinds of resources refer to others. Reads no bodies.

use std::sync::Arc;

use super::super::reading::references;
use xds::{Kind, Name, References, Resource};

pub(super) fn named(kind: Kind, resource: Option<&Arc<Resource>>) -> Option<&References> {
    resource.and_then(|resource| references(kind, resource))
}

pub(super) fn routes(named: Option<&References>) -> &[Name] {
    named.map_or(&[], |named| &named.routes)
}

pub(super) fn clusters(named: Option<&References>) -> &[Name] {
    named.map_or(&[], |named| &named.clusters)
}

/// Returns all that a resource names.
pub(in super::super) fn leads_to(kind: Kind, resource: &Arc<Resource>) -> impl Iterator<Item = (Kind, &Name)> {
    let named = named(kind, Some(resource));
    let endpoints = resource.endpoints().map(|name| (Kind::Eds, name));
    let routes = routes(named).iter().map(|name| (Kind::Rds, name));
    let clusters = clusters(named).iter().map(|name| (Kind::Cds, name));
    routes.chain(clusters).chain(endpoints)
}

/// Returns the names of a sorted list that are not in another one.
pub(super) fn without<'a>(of: &'a [Name], others: &'a [Name]) -> impl Iterator<Item = &'a Name> {
    let mut others = others.iter().peekable();
    of.iter().filter(move |name| {
        while others.next_if(|other| other < name).is_some() {}
        others.peek() != Some(name)
    })
}

/// Whether resources of this kind can be referred to.
pub(in super::super) const fn is_referred(kind: Kind) -> bool {
    matches!(kind, Kind::Cds | Kind::Rds | Kind::Eds)
}

/// Whether resources of this kind can refer to others.
pub(super) const fn refers(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Rds | Kind::Srds | Kind::Vhds | Kind::Cds)
}

/// Returns one that the control plane still sends, if there is any.
pub(super) fn best<'a, S: Clone + 'a>(sources: impl Iterator<Item = (&'a S, bool)>) -> Option<(S, bool)> {
    let mut found = None;
    for (item, said) in sources {
        if said {
            return Some((item.clone(), true));
        }
        found = found.or(Some((item, false)));
    }
    found.map(|(item, said)| (item.clone(), said))
}
