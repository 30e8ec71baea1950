//! What names the clusters of a cut, read once for as long as it is the same.
//!
//! Owns the answers, and which served resources hold removals now. Does not decide what goes.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Going, Source, Sources, refers};
use xds::{Kind, Name, Target, TypeUrl};

/// What names clusters, and what holds removals.
#[derive(Debug, Default)]
pub(super) struct Referrers {
    /// The states that were read, by their ids.
    read: Vec<u64>,
    /// The clusters that are named in these states, each with a resource in use that names it; none if no such resource is in use.
    named: BTreeMap<Name, Option<Source>>,
    /// The resources that hold removals.
    holding: BTreeSet<Source>,
    /// The route configurations among them that count only because a client wants them.
    leased: BTreeSet<Source>,
}

impl Referrers {
    /// Returns those of these clusters that something in use names, each with what names it. `routes` are the routes that are named.
    pub(super) fn clusters<W: Fn(&TypeUrl, &Name) -> bool>(
        &mut self,
        asked: &BTreeSet<Name>,
        routes: &BTreeMap<Name, Source>,
        going: &Going,
        sources: &Sources<'_, W>,
    ) -> BTreeMap<Name, Source> {
        let read = sources.read();
        if read != self.read {
            (self.read, self.named) = (read, sources.clusters(|_| true, routes, &Going::new()));
        }
        let goes = |(of, name): &Source| {
            let mut halves = going.iter().filter(|((type_url, _), _)| type_url == of);
            halves.any(|(_, names)| names.contains(name))
        };
        let stays = |source: &&Source| sources.is_in_use(&source.0, &source.1, routes) && !goes(source);
        let (mut found, mut unsure) = (BTreeMap::new(), BTreeSet::new());
        for cluster in asked {
            let Some(known) = self.named.get(cluster) else {
                continue;
            };
            match known.as_ref().filter(stays) {
                Some(source) => drop(found.insert(cluster.clone(), source.clone())),
                None => drop(unsure.insert(cluster.clone())),
            }
        }
        if !unsure.is_empty() {
            let others = sources.clusters(|cluster| unsure.contains(cluster), routes, going);
            found.extend(others.into_iter().filter_map(|(cluster, by)| Some((cluster, by?))));
        }
        for (type_url, route) in found.values().filter(|(of, _)| of.kind() == Kind::Rds) {
            if !routes.contains_key(route) {
                self.leased.insert((type_url.clone(), route.clone()));
            }
        }
        found
    }

    /// Notes that this resource holds a removal.
    pub(super) fn begin(&mut self, source: Source) {
        self.holding.insert(source);
    }

    /// Whether nothing holds a removal.
    pub(super) fn is_empty(&self) -> bool {
        self.holding.is_empty()
    }

    /// Whether this resource holds a removal.
    pub(super) fn holds(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.holding.contains(&(type_url.clone(), name.clone()))
    }

    /// Whether a resource that holds a removal may leave the view, because this is not wanted any more.
    pub(super) fn may_leave(&self, type_url: &TypeUrl, target: &Target) -> bool {
        match target {
            Target::Name(name) if !name.is_collection() && !type_url.traits().aliases => self.holds(type_url, name),
            Target::Name(_) | Target::Wildcard => !self.is_empty() && refers(type_url.kind()),
        }
    }

    /// Whether a route that holds a removal is not wanted any more.
    pub(super) fn is_left(&self, wanted: impl Fn(&TypeUrl, &Name) -> bool) -> bool {
        self.leased.iter().any(|(type_url, name)| !wanted(type_url, name))
    }

    /// Forgets what holds removals: it is to be found again.
    pub(super) fn forget(&mut self) {
        self.holding.clear();
        self.leased.clear();
    }
}
