// SPDX-License-Identifier: Apache-2.0
//! What a change waits for: a cluster, or the endpoints of one, that another source does not have yet.
//!
//! Owns which clusters count. Does not know how long anything waits.

use std::sync::{Arc, LazyLock};

use xds::{Cut, HoldReason, Name, Neighbour, OtherViews, Resource, TypeUrl};

static CLUSTERS: LazyLock<TypeUrl> =
    LazyLock::new(|| TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
static ENDPOINTS: LazyLock<TypeUrl> =
    LazyLock::new(|| TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"));

/// What is not there, and whether its server is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    type_url: &'static TypeUrl,
    name: Name,
    away: bool,
}

impl Missing {
    /// Returns the first of these clusters, which a resource names, that is not ready for clients that have that resource. One counts if it
    /// or its endpoints come from another source, and if clients get it without the change: by a wildcard, or because one has asked for it.
    /// Who asks for a cluster only once a route names it could wait for ever; so that counts only while the source is away.
    pub(super) fn find(
        (of, name): (&TypeUrl, &Name),
        clusters: &[Name],
        own: &Cut,
        others: &OtherViews,
    ) -> Option<Self> {
        let from = others.owners().of(of, Some(name));
        clusters.iter().find_map(|cluster| {
            let wanting = others.wanting(&CLUSTERS, cluster);
            let read = others.views(from, &CLUSTERS, cluster);
            let mut all = read.iter();
            all.find_map(|at| Self::at(cluster, (at, wanting.contains(&at.view)), from, (own, others)))
        })
    }

    /// Returns what is not there for the clients that read the cluster from this view.
    fn at(
        cluster: &Name,
        (at, wanted): (&Neighbour, bool),
        from: Option<&str>,
        (own, others): (&Cut, &OtherViews),
    ) -> Option<Self> {
        let cut = cut(at, own);
        let covered = cluster.authority().is_none() && cut.slot(&CLUSTERS).is_some_and(|slot| slot.wildcard.is_some());
        if !covered && !wanted && !is_away(at) {
            return None;
        }
        // What a server says of both is in its own order.
        let crosses = |there: &Neighbour| at.view.is_some() || there.view.is_some();
        let endpoints_at = |name: &Name| {
            let owners = others.owners();
            match owners.of(&ENDPOINTS, Some(name)) == owners.of(&CLUSTERS, Some(cluster)) {
                true => vec![at.clone()],
                false => others.views(from, &ENDPOINTS, name),
            }
        };
        let Some(found) = resource(cut, &CLUSTERS, cluster) else {
            // The endpoints of a cluster mostly have its name.
            let crosses = endpoints_at(cluster).iter().any(crosses);
            return crosses.then(|| Self::missing_at(&CLUSTERS, cluster, at));
        };
        let endpoints = found.endpoints()?;
        let theirs = endpoints_at(endpoints);
        let lacks = |there: &&Neighbour| resource(self::cut(there, own), &ENDPOINTS, endpoints).is_none();
        let lacking = theirs.iter().filter(|there| crosses(there)).find(lacks)?;
        Some(Self::missing_at(&ENDPOINTS, endpoints, lacking))
    }

    /// The view's own server is there: it has just spoken.
    fn missing_at(type_url: &'static TypeUrl, name: &Name, at: &Neighbour) -> Self {
        Self {
            type_url,
            name: name.clone(),
            away: is_away(at),
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

/// Whether another server is away, or has come back with so little that its removals are held.
fn is_away(at: &Neighbour) -> bool {
    let is_judged = || at.cut.holds().iter().any(|hold| hold.reason == HoldReason::Mass);
    at.view.is_some() && (!at.cut.server_state().reachable() || is_judged())
}

/// Returns what a view has; `own` is what the view itself has once all is published.
fn cut<'a>(at: &'a Neighbour, own: &'a Cut) -> &'a Cut {
    if at.view.is_none() { own } else { &at.cut }
}

fn resource<'a>(cut: &'a Cut, type_url: &TypeUrl, name: &Name) -> Option<&'a Arc<Resource>> {
    let slot = cut.slot(type_url)?;
    slot.resource(name)
}
