//! What a change waits for: a cluster, or the endpoints of one, that another source does not have yet.
//!
//! Owns which clusters count. Does not know how long anything waits.

use std::sync::{Arc, LazyLock};

use crate::guard::references;
use xds::{Beside, Cut, Kind, Name, Resource, TypeUrl};

static CLUSTERS: LazyLock<TypeUrl> =
    LazyLock::new(|| TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
static ENDPOINTS: LazyLock<TypeUrl> =
    LazyLock::new(|| TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"));

/// What is not there, and whether its server is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    type_url: &'static TypeUrl,
    name: Name,
    away: bool,
}

impl Ground {
    /// Returns the first of these clusters that is not ready. One counts if it or its endpoints come from another source, and if clients
    /// get it without the change: by a wildcard, or because one has asked for it. Who asks for a cluster only once a route names it
    /// could wait for ever.
    pub(super) fn find(clusters: &[Name], own: &Cut, beside: &Beside) -> Option<Self> {
        clusters.iter().find_map(|cluster| Self::of(cluster, own, beside))
    }

    fn of(cluster: &Name, own: &Cut, beside: &Beside) -> Option<Self> {
        let others = beside.cuts(&CLUSTERS, cluster);
        let crosses = others.is_some();
        let wanted = beside.wants(&CLUSTERS, cluster);
        let others = others.unwrap_or_default();
        let mut cuts = others
            .iter()
            .map(|cut| &**cut)
            .chain(if crosses { None } else { Some(own) });
        cuts.find_map(|cut| Self::of_cut(cluster, cut, (crosses, wanted), own, beside))
    }

    /// Returns what is not there for the clients that read this cut; `crosses`: another server has said it.
    fn of_cut(cluster: &Name, cut: &Cut, (crosses, wanted): (bool, bool), own: &Cut, beside: &Beside) -> Option<Self> {
        let other = crosses.then_some(cut);
        let covered = cluster.authority().is_none() && cut.slot(&CLUSTERS).is_some_and(|slot| slot.wildcard.is_some());
        if !covered && !wanted {
            return None;
        }
        let Some(found) = resource(cut, &CLUSTERS, cluster) else {
            // The endpoints of a cluster mostly have its name.
            let crosses = crosses || beside.cuts(&ENDPOINTS, cluster).is_some();
            return crosses.then(|| Self::missing_at(&CLUSTERS, cluster, other));
        };
        let endpoints = found.endpoints()?;
        match beside.cuts(&ENDPOINTS, endpoints) {
            Some(theirs) => {
                let mut lacking = theirs
                    .iter()
                    .filter(|cut| resource(cut, &ENDPOINTS, endpoints).is_none());
                let lacking = lacking.next()?;
                Some(Self::missing_at(&ENDPOINTS, endpoints, Some(lacking)))
            }
            None if crosses && resource(own, &ENDPOINTS, endpoints).is_none() => {
                Some(Self::missing_at(&ENDPOINTS, endpoints, None))
            }
            None => None,
        }
    }

    /// The view's own server is there: it has just spoken.
    fn missing_at(type_url: &'static TypeUrl, name: &Name, at: Option<&Cut>) -> Self {
        Self {
            type_url,
            name: name.clone(),
            away: at.is_some_and(|cut| !cut.server_state().reachable()),
        }
    }

    /// Whether the server that has it is away.
    pub(super) const fn is_away(&self) -> bool {
        self.away
    }

    /// What is not there.
    pub(super) const fn missing(&self) -> (&TypeUrl, &Name) {
        (self.type_url, &self.name)
    }
}

/// Returns the clusters that a changed resource names and the served one does not. What is not served is new, and waits for nothing.
pub(super) fn newly_named(kind: Kind, served: Option<&Arc<Resource>>, new: &Resource) -> Vec<Name> {
    let Some(served) = served else {
        return Vec::new();
    };
    let before = references(kind, served).map_or(&[][..], |found| &found.clusters);
    let after = references(kind, new).map_or(&[][..], |found| &found.clusters);
    let newly = after.iter().filter(|name| before.binary_search(name).is_err());
    newly.cloned().collect()
}

fn resource<'a>(cut: &'a Cut, type_url: &TypeUrl, name: &Name) -> Option<&'a Arc<Resource>> {
    let slot = cut.slot(type_url)?;
    slot.resource(name)
}
