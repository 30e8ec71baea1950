// SPDX-License-Identifier: Apache-2.0
//! What a version of a resource names, and what another one does not.
//!
//! Owns which kinds of resources refer to others. Reads no bodies.

use xds::{Kind, Name, Resource};

/// The kinds that are referred to, in the order in which they go.
pub(super) const REFERRED: [Kind; 3] = [Kind::Rds, Kind::Cds, Kind::Eds];

/// Returns what a resource of this `kind` names of another one.
pub(super) fn names(of: Kind, kind: Kind, resource: &Resource) -> &[Name] {
    if of == Kind::Eds {
        return resource.endpoints().map_or(&[], std::slice::from_ref);
    }
    resource.references(kind).map_or(&[], |found| match of == Kind::Rds {
        true => &found.routes,
        false => &found.clusters,
    })
}

/// Returns all that a resource names.
pub(in super::super) fn leads_to(kind: Kind, resource: &Resource) -> impl Iterator<Item = (Kind, &Name)> {
    let all = REFERRED.into_iter();
    all.flat_map(move |of| names(of, kind, resource).iter().map(move |name| (of, name)))
}

/// Returns the names of a sorted list that are not in another one.
pub(super) fn without<'a>(of: &[&'a Name], others: &[&Name]) -> impl Iterator<Item = &'a Name> {
    let mut others = others.iter().peekable();
    of.iter().copied().filter(move |name| {
        while others.next_if(|other| **other < *name).is_some() {}
        others.peek().is_none_or(|other| **other != *name)
    })
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
