//! Which served resources refer to which names.
//!
//! Owns what counts as a source: listeners, scoped routes and virtual hosts that are served, routes that one of them names or a
//! client wants, aggregate clusters that stay, and held clusters. Each resource is read once, and a change costs what it names. Does
//! not decide what goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::first_states::state;
use super::held::{Held, Stage};
use super::reading::references;
use super::removal::{Half, Item};
use xds::{Cut, Kind, Known, Name, Reason, Resource, State, TypeUrl};

/// What refers to what, in the states that were read last. It is empty as long as no removal waits for it.
#[derive(Debug, Default)]
pub(super) struct References {
    /// The state of each half that was read last, and what counts in it.
    read: BTreeMap<Half, (Arc<State>, OrdMap<Name, Known>)>,
    edges: BTreeSet<Edge>,
    /// The route configurations that hold a removal, and count only because a client wants them.
    leased: BTreeSet<Item>,
    /// What names a route configuration of which nothing is known; `None`: nothing does; empty: that is to be looked for.
    unknown: OnceLock<Option<Item>>,
    /// The clusters that stay until that is known.
    suspended: BTreeSet<Item>,
}

/// A route configuration, a cluster or an endpoint assignment, and a resource that names it. `None` comes before all resources.
type Edge = (Kind, Name, Option<Item>);

impl References {
    /// Reads what has changed in the cut. What a changed resource referred to must be looked at again. Returns the held resources that
    /// are not served any more.
    pub(super) fn read(&mut self, cut: &Cut, held: &mut Held) -> Vec<Item> {
        let follows = held.halves().any(|half| is_referred(half.0.kind()));
        if !follows && !self.edges.is_empty() {
            self.clear();
        }
        let mut gone = Vec::new();
        let halves = cut
            .slots()
            .flat_map(|(type_url, _)| [(type_url, true), (type_url, false)]);
        for (type_url, wildcard) in halves {
            let half = (type_url.clone(), wildcard);
            let before = self.read.get(&half).map(|(state, _)| state.id());
            let counts = before.is_some() || follows && refers(type_url.kind()) || held.has_half(&half);
            let now = state(cut, type_url, wildcard).filter(|_| counts);
            if before != now.as_ref().map(|state| state.id()) {
                self.read_half(half, now, held, &mut gone);
            }
        }
        gone
    }

    fn read_half(&mut self, half: Half, now: Option<Arc<State>>, held: &mut Held, gone: &mut Vec<Item>) {
        let mut entries = now.as_ref().map(|state| state.entries().clone()).unwrap_or_default();
        let before = match self.read.remove(&half) {
            Some((_, before)) => before,
            None => {
                let names = held.of_half(&half).filter(|(_, removal)| !removal.is_remembered());
                let unserved = names.filter(|(name, _)| !matches!(entries.get(*name), Some(Known::Present(_))));
                gone.extend(unserved.map(|(name, _)| (half.clone(), name.clone())));
                if refers(half.0.kind()) {
                    OrdMap::new()
                } else {
                    entries.clone()
                }
            }
        };
        let mut kept = Vec::new();
        for difference in before.diff(&entries) {
            let (name, old, new) = match difference {
                DiffItem::Add(name, new) => (name, None, Some(new)),
                DiffItem::Update { old, new } => (new.0, Some(old.1), Some(new.1)),
                DiffItem::Remove(name, old) => (name, Some(old), None),
            };
            // K-16: what the control plane did not confirm in time, clients keep. It counts until something else is said.
            if let (Some(Known::Present(_)), Some(Known::Absent(Reason::TimedOut))) = (old, new) {
                kept.extend(old.map(|old| (name.clone(), old.clone())));
                continue;
            }
            let (old, new) = (old.and_then(Known::resource), new.and_then(Known::resource));
            let item = (half.clone(), name.clone());
            self.change(&item, old, new, held);
            if old.is_some() && new.is_none() && held.contains(&item) {
                gone.push(item);
            }
        }
        entries.extend(kept);
        if let Some(now) = now {
            self.read.insert(half, (now, entries));
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A resource names something else from now on.
    fn change(&mut self, item: &Item, old: Option<&Arc<Resource>>, new: Option<&Arc<Resource>>, held: &mut Held) {
        let kind = item.0.0.kind();
        if !refers(kind) {
            return;
        }
        if kind != Kind::Cds {
            self.unknown.take();
            for item in std::mem::take(&mut self.suspended) {
                held.look(item);
            }
        }
        let (old, new) = (named(kind, old), named(kind, new));
        for (kind, name) in without(&old, &new) {
            self.edges.remove(&(kind, name.clone(), Some(item.clone())));
            self.look(kind, name, held);
        }
        for (kind, name) in without(&new, &old) {
            self.edges.insert((kind, name.clone(), Some(item.clone())));
            self.look(kind, name, held);
        }
    }

    /// A resource goes: it does not count any more, although it is still served.
    pub(super) fn go(&mut self, item: &Item, held: &mut Held) {
        let counted = self
            .read
            .get_mut(&item.0)
            .and_then(|(_, entries)| entries.remove(&item.1));
        self.change(item, counted.as_ref().and_then(Known::resource), None, held);
    }

    /// What this resource names must be looked at again.
    pub(super) fn touch(&self, item: &Item, held: &mut Held) {
        for (kind, name) in named(item.0.0.kind(), self.resource(item)) {
            self.look(kind, name, held);
        }
    }

    /// The removals of this name must be looked at again, and of a route configuration those of what it names.
    fn look(&self, kind: Kind, name: &Name, held: &mut Held) {
        held.look_for(kind, name);
        if kind == Kind::Rds {
            for half in self.read.keys().filter(|half| half.0.kind() == kind) {
                self.touch(&(half.clone(), name.clone()), held);
            }
        }
    }

    /// What is held because of routes that no client wants any more must be looked at again.
    pub(super) fn leave(&mut self, wanted: impl Fn(&TypeUrl, &Name) -> bool, held: &mut Held) {
        let left = self.leased.iter().filter(|(half, name)| !wanted(&half.0, name));
        for item in left.cloned().collect::<Vec<_>>() {
            self.leased.remove(&item);
            self.touch(&item, held);
        }
    }

    /// Returns what refers to a removal that is looked at in this stage, and whether the control plane still sends that.
    pub(super) fn source(
        &mut self,
        stage: Stage,
        name: &Name,
        wanted: impl Fn(&TypeUrl, &Name) -> bool,
        held: &Held,
        now: Instant,
    ) -> Option<(Item, bool)> {
        match stage {
            Stage::Listeners => None,
            Stage::Routes => self.of_route(name, held),
            Stage::Clusters => self.of_cluster(name, wanted, held),
            Stage::Members => self.of_member(name, held, now),
            // The assignment of a cluster that the control plane still sends is its own to remove.
            Stage::Endpoints => {
                let mut clusters = self.sources(Kind::Eds, name);
                clusters
                    .find(|item| held.contains(item))
                    .map(|item| (item.clone(), false))
            }
        }
    }

    /// Returns what names this.
    fn sources(&self, kind: Kind, name: &Name) -> impl Iterator<Item = &Item> {
        let edges = self.edges.range((kind, name.clone(), None)..);
        let edges = edges.take_while(move |edge| edge.0 == kind && edge.1 == *name);
        edges.filter_map(|(_, _, source)| source.as_ref())
    }

    fn of_route(&self, name: &Name, held: &Held) -> Option<(Item, bool)> {
        best(self.sources(Kind::Rds, name).map(|item| (item, !held.contains(item))))
    }

    /// Listeners and routes in use.
    fn of_cluster(
        &mut self,
        name: &Name,
        wanted: impl Fn(&TypeUrl, &Name) -> bool,
        held: &Held,
    ) -> Option<(Item, bool)> {
        let in_use = self.sources(Kind::Cds, name).filter_map(|item| match item.0.0.kind() {
            Kind::Cds => None,
            Kind::Rds => match self.of_route(&item.1, held) {
                Some((_, said)) => Some((item, said && !held.contains(item))),
                None => wanted(&item.0.0, &item.1).then_some((item, false)),
            },
            _ => Some((item, !held.contains(item))),
        });
        let found = best(in_use);
        if let Some((item, _)) = found.as_ref().filter(|(item, _)| item.0.0.kind() == Kind::Rds)
            && self.sources(Kind::Rds, &item.1).next().is_none()
        {
            self.leased.insert(item.clone());
        }
        found
    }

    /// Aggregate clusters that stay and have this one as a member. Members are found one hop away: an aggregate cluster that only
    /// another one holds does not count, so no two clusters hold each other.
    fn of_member(&self, name: &Name, held: &Held, now: Instant) -> Option<(Item, bool)> {
        let sources = self
            .sources(Kind::Cds, name)
            .filter(|item| item.0.0.kind() == Kind::Cds);
        best(sources.filter_map(|item| match held.get(item) {
            None => Some((item, true)),
            Some(removal) => {
                let directly = removal.by().is_some_and(|(by, _)| by.0.0.kind() != Kind::Cds);
                (directly || removal.waits(now)).then_some((item, false))
            }
        }))
    }

    /// Returns a listener or scoped route that names a route configuration of which nothing is known. A cluster waits for that.
    pub(super) fn unknown_route(&mut self, cluster: &Item) -> Option<Item> {
        let found = self.unknown.get_or_init(|| {
            let halves = || self.read.iter().filter(|(half, _)| half.0.kind() == Kind::Rds);
            let is_known = |name: &Name| halves().any(|(_, (state, _))| state.known(name).is_some());
            let named = self.edges.range((Kind::Rds, Name::from(""), None)..);
            let mut named = named.take_while(|(kind, ..)| *kind == Kind::Rds);
            named.find(|(_, name, _)| !is_known(name))?.2.clone()
        });
        let found = found.clone();
        if found.is_some() {
            self.suspended.insert(cluster.clone());
        }
        found
    }

    fn resource(&self, (half, name): &Item) -> Option<&Arc<Resource>> {
        self.read.get(half)?.1.get(name)?.resource()
    }
}

/// Returns one that the control plane still sends, if there is any.
fn best<'a>(sources: impl Iterator<Item = (&'a Item, bool)>) -> Option<(Item, bool)> {
    let mut found = None;
    for (item, said) in sources {
        if said {
            return Some((item.clone(), true));
        }
        found = found.or(Some((item, false)));
    }
    found.map(|(item, said)| (item.clone(), said))
}

/// Returns what a resource names, sorted.
fn named(kind: Kind, resource: Option<&Arc<Resource>>) -> Vec<(Kind, &Name)> {
    let Some(resource) = resource.filter(|_| refers(kind)) else {
        return Vec::new();
    };
    let found = references(kind, resource);
    let clusters = found.into_iter().flat_map(|found| &found.clusters);
    let routes = found.into_iter().flat_map(|found| &found.routes);
    let clusters = clusters.map(|name| (Kind::Cds, name));
    let endpoints = resource.endpoints().map(|name| (Kind::Eds, name));
    let routes = routes.map(|name| (Kind::Rds, name));
    clusters.chain(endpoints).chain(routes).collect()
}

/// Returns the members of a sorted list that are not in another one.
fn without<'a, T: Ord + Copy>(of: &'a [T], others: &'a [T]) -> impl Iterator<Item = T> {
    let mut others = others.iter().peekable();
    of.iter().copied().filter(move |one| {
        while others.next_if(|other| *other < one).is_some() {}
        others.peek() != Some(&one)
    })
}

/// Whether resources of this kind can be referred to.
pub(super) const fn is_referred(kind: Kind) -> bool {
    matches!(kind, Kind::Cds | Kind::Rds | Kind::Eds)
}

/// Whether resources of this kind can refer to others.
const fn refers(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Rds | Kind::Srds | Kind::Vhds | Kind::Cds)
}
