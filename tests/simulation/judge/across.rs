// SPDX-License-Identifier: Apache-2.0
//! What several sources have, as the sessions see it that read them.
//!
//! Owns the way from a session and a name to the zone that it reads. Does not know what has changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds::{Cut, Name, Resource, TypeUrl};

use crate::body::{Type, facts};
use crate::lists::Plan;
use crate::names::owner;
use crate::network::Network;
use crate::origins::Origins;
use crate::stream::Stream;
use crate::tally::{Broken, Rule, Tally};
use crate::zone::Zone;

/// All that one view may have to fit to.
pub(super) struct Across<'a> {
    pub(super) origins: &'a Origins,
    pub(super) network: &'a Network,
}

impl Across<'_> {
    /// Whether a view that is read for something, or may come to be, does not have it.
    pub(super) fn is_missing(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let (Some(lists), Some(kind)) = (&self.origins.lists, Type::of(type_url.url())) else {
            return true;
        };
        let owner = owner(kind, name.as_str(), &lists.plan.sourced);
        let listed = |zone: &&Zone| lists.plan.lists(owner.as_deref(), zone.writer.view.server());
        let open = self
            .origins
            .iter()
            .filter(|zone| zone.writer.attached && zone.below.is_none())
            .filter(listed);
        let (read, others): (Vec<&Zone>, Vec<&Zone>) =
            open.partition(|zone| zone.writer.view.demand().readers_of(owner.as_deref()).0 > 0);
        let all = if read.is_empty() { others } else { read };
        all.is_empty()
            || all
                .iter()
                .any(|zone| found(&zone.writer.view.cut(), kind, name).is_none())
    }

    /// The sessions that have taken up the present configuration, and read something of a type here.
    fn readers(&self, at: usize, kind: Type, name: &str) -> impl Iterator<Item = Reader<'_>> {
        let plan = self.origins.lists.as_ref().map(|lists| &lists.plan);
        let streams = self.network.streams().filter(|stream| stream.at_relay);
        let all = streams.filter_map(move |stream| {
            let known = stream
                .plan
                .as_ref()
                .zip(plan)
                .filter(|(own, plan)| Arc::ptr_eq(own, plan));
            Some(Reader { stream, plan: known?.1 })
        });
        all.filter(move |reader| reader.zone(kind, name) == Some(at))
    }

    /// D-12: a changed route leads to a cluster, and clients read that, or its endpoints, of another source.
    pub(super) fn check_led(&self, at: usize, route: &Name, cluster: &str, tally: &mut Tally) -> Result<(), Broken> {
        let name = Name::from(cluster);
        for reader in self.readers(at, Type::Rds, route.as_str()) {
            let Some(clusters) = reader.zone(Type::Cds, cluster) else {
                continue;
            };
            let (view, cut) = (
                &self.origins[clusters].writer.view,
                self.origins[clusters].writer.view.cut(),
            );
            let slot = cut.slot(Type::Cds.type_url());
            let covered = slot.is_some_and(|slot| slot.wildcard.is_some()) && !cluster.starts_with("xdstp:");
            if !covered && !view.demand().wants(Type::Cds.type_url(), &name) {
                continue;
            }
            let there = found(&cut, Type::Cds, &name);
            let endpoints = match there {
                Some(there) => there.endpoints().cloned(),
                None => Some(name.clone()),
            };
            let endpoints = endpoints.and_then(|of| Some((reader.zone(Type::Eds, of.as_str())?, of)));
            let apart = endpoints.as_ref().is_some_and(|(zone, _)| *zone != at);
            if clusters == at && !apart {
                continue;
            }
            tally.hit(Rule::D12);
            if there.is_none() {
                return broken!(
                    D12,
                    "zone {at}: route {route} leads to cluster {cluster}, which zone {clusters} does not have"
                );
            }
            let Some((zone, of)) = endpoints else { continue };
            if found(&self.origins[zone].writer.view.cut(), Type::Eds, &of).is_none() {
                return broken!(
                    D12,
                    "zone {at}: route {route} leads to cluster {cluster}, and zone {zone} does not have endpoints {of}"
                );
            }
        }
        Ok(())
    }

    /// D-11: a cluster goes here, and clients read routes of another source.
    pub(super) fn check_lost(&self, at: usize, cluster: &str, tally: &mut Tally) -> Result<(), Broken> {
        for reader in self.readers(at, Type::Cds, cluster) {
            let zones: BTreeSet<usize> = reader
                .stream
                .reads
                .values()
                .copied()
                .filter(|zone| *zone != at)
                .collect();
            for zone in zones {
                let view = &self.origins[zone].writer.view;
                let cut = view.cut();
                tally.hit(Rule::D11);
                let in_use = |route: &&Arc<Resource>| {
                    let name = route.name();
                    reader.zone(Type::Rds, name.as_str()) == Some(zone)
                        && view.demand().wants(Type::Rds.type_url(), name)
                };
                let states = cut
                    .slot(Type::Rds.type_url())
                    .into_iter()
                    .flat_map(|slot| slot.halves());
                let mut routes = states.flat_map(|state| state.resources()).filter(in_use);
                if let Some(route) = routes.find(|route| leads(route).contains(cluster)) {
                    return broken!(
                        D11,
                        "zone {at}: cluster {cluster} goes, and route {} of zone {zone} leads to it",
                        route.name()
                    );
                }
            }
        }
        Ok(())
    }
}

/// A session, and the configuration that it has taken up.
struct Reader<'a> {
    stream: &'a Stream,
    plan: &'a Plan,
}

impl Reader<'_> {
    /// The zone from which it reads a name. A server that it must leave is in no list any more, so that nobody else looks there.
    fn zone(&self, kind: Type, name: &str) -> Option<usize> {
        let owner = owner(kind, name, &self.plan.sourced);
        let zone = self.stream.reads.get(&owner).copied();
        zone.filter(|_| !self.stream.leaving.contains_key(&owner))
    }
}

/// The clusters to which a route leads.
pub(super) fn leads(route: &Resource) -> BTreeSet<String> {
    let facts = facts(Type::Rds, &route.body());
    facts
        .map(|facts| facts.refers.iter().cloned().collect())
        .unwrap_or_default()
}

fn found<'a>(cut: &'a Cut, kind: Type, name: &Name) -> Option<&'a Arc<Resource>> {
    cut.slot(kind.type_url())?.resource(name)
}
