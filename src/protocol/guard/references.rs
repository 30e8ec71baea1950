//! Which served resources refer to which names.
//!
//! Owns what counts as a source: listeners, scoped routes and virtual hosts that are served, routes that one of them names or a
//! client wants, and aggregate clusters that stay. Each resource is read once, and a change costs what it names. Does not decide what
//! goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::ordmap::DiffItem;

use super::held::Held;
use super::reading::references;
use super::removal::{Half, Item};
use xds::{Cut, Kind, Known, Name, Reason, References as Named, Resource, State, TypeUrl};

/// What refers to what, in the states that were read last. It is empty as long as no removal waits for it.
#[derive(Debug, Default)]
pub(super) struct References {
    read: BTreeMap<Half, Arc<State>>,
    /// By the name of a route configuration or a cluster: what names it.
    routes: BTreeMap<Name, BTreeSet<Item>>,
    clusters: BTreeMap<Name, BTreeSet<Item>>,
    /// The route configurations that hold a removal, and count only because a client wants them.
    leased: BTreeSet<Item>,
    /// The resources in `read` that go, and do not count any more.
    going: BTreeSet<Item>,
    /// What the control plane did not confirm in time. K-16: clients keep it, so it counts until something else is said.
    unconfirmed: BTreeMap<Item, Arc<Resource>>,
    /// What names a route configuration of which nothing is known; `None`: nothing does; empty: that is to be looked for.
    unknown: OnceLock<Option<Item>>,
    /// The clusters that stay until that is known.
    suspended: BTreeSet<Item>,
}

impl References {
    /// Reads what has changed in the cut. What a changed resource referred to must be looked at again. Returns the held resources that
    /// are not served any more.
    pub(super) fn read(&mut self, cut: &Cut, held: &mut Held) -> Vec<Item> {
        let mut gone = Vec::new();
        let follows = held.halves().any(|half| is_referred(half.0.kind()));
        let is_empty = self.routes.is_empty() && self.clusters.is_empty();
        if !(follows || is_empty) {
            self.clear();
        }
        let referring = cut.slots().filter(|(type_url, _)| follows && refers(type_url.kind()));
        let referring = referring.flat_map(|(type_url, _)| [(type_url.clone(), true), (type_url.clone(), false)]);
        let halves: BTreeSet<Half> = referring
            .chain(held.halves().cloned())
            .chain(self.read.keys().cloned())
            .collect();
        for half in halves {
            let before = self.read.get(&half).cloned();
            let now = cut.half(&half.0, half.1).cloned();
            if before.as_ref().map(|state| state.id()) == now.as_ref().map(|state| state.id()) {
                continue;
            }
            self.read_half(&half, before.as_deref(), now.as_deref(), held, &mut gone);
            match now {
                Some(now) => self.read.insert(half, now),
                None => self.read.remove(&half),
            };
        }
        gone
    }

    fn read_half(
        &mut self,
        half: &Half,
        before: Option<&State>,
        now: Option<&State>,
        held: &mut Held,
        gone: &mut Vec<Item>,
    ) {
        let mut silent = Vec::new();
        let mut change = |name: &Name, old: Option<&Arc<Resource>>, new: Option<&Arc<Resource>>| {
            let item = (half.clone(), name.clone());
            let unconfirmed = self.unconfirmed.remove(&item);
            let counted = old.or(unconfirmed.as_ref()).filter(|_| !self.going.remove(&item));
            self.change(&item, counted, new, held);
            if old.is_some() && new.is_none() && held.contains(&item) {
                gone.push(item);
            }
        };
        match (before, now) {
            (Some(before), Some(now)) => {
                for item in before.entries().diff(now.entries()) {
                    match item {
                        DiffItem::Update {
                            old: (name, Known::Present(old)),
                            new: (_, Known::Absent(Reason::TimedOut)),
                        } => silent.push((name.clone(), old.clone())),
                        DiffItem::Add(name, new) => change(name, None, new.resource()),
                        DiffItem::Update { old, new } => change(new.0, old.1.resource(), new.1.resource()),
                        DiffItem::Remove(name, old) => change(name, old.resource(), None),
                    }
                }
            }
            // What is not confirmed goes with the others.
            (Some(before), None) => before
                .entries()
                .iter()
                .for_each(|(name, old)| change(name, old.resource(), None)),
            (None, Some(now)) => {
                if refers(half.0.kind()) {
                    now.resources().for_each(|new| change(new.name(), None, Some(new)));
                }
                let unserved = held.of_half(half).filter(|(name, removal)| {
                    let served = now.resource(name).is_some();
                    !served && !removal.is_remembered()
                });
                let unserved: Vec<Item> = unserved.map(|(name, _)| (half.clone(), name.clone())).collect();
                gone.extend(unserved);
            }
            (None, None) => {}
        }
        let silent = silent.into_iter().map(|(name, old)| ((half.clone(), name), old));
        self.unconfirmed.extend(silent);
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
            std::mem::take(&mut self.suspended)
                .into_iter()
                .for_each(|item| held.look(item));
        }
        let (old, new) = (named(kind, old), named(kind, new));
        let (old_routes, new_routes) = (routes(old), routes(new));
        for name in without(new_routes, old_routes) {
            self.routes.entry(name.clone()).or_default().insert(item.clone());
            look(Kind::Rds, name, held, |_, said| !said);
            self.touch_route(name, held);
        }
        for name in without(old_routes, new_routes) {
            drop_from(&mut self.routes, name, item);
            unsettle(Kind::Rds, name, item, held);
            self.touch_route(name, held);
        }
        let (old_clusters, new_clusters) = (clusters(old), clusters(new));
        for name in without(new_clusters, old_clusters) {
            self.clusters.entry(name.clone()).or_default().insert(item.clone());
            look(Kind::Cds, name, held, |_, said| !said);
        }
        for name in without(old_clusters, new_clusters) {
            drop_from(&mut self.clusters, name, item);
            unsettle(Kind::Cds, name, item, held);
        }
    }

    /// A resource goes: it does not count any more, although it is still served.
    pub(super) fn go(&mut self, item: &Item, held: &mut Held) {
        let resource = self.resource(item).cloned();
        self.change(item, resource.as_ref(), None, held);
        if resource.is_some() {
            self.going.insert(item.clone());
        }
    }

    /// What is held because of this resource must be looked at again.
    pub(super) fn touch(&self, item: &Item, held: &mut Held) {
        let kind = item.0.0.kind();
        let named = named(kind, self.resource(item)).filter(|_| refers(kind));
        for name in routes(named) {
            unsettle(Kind::Rds, name, item, held);
            self.touch_route(name, held);
        }
        for name in clusters(named) {
            unsettle(Kind::Cds, name, item, held);
        }
    }

    /// What is held because of a route configuration of this name must be looked at again.
    fn touch_route(&self, name: &Name, held: &mut Held) {
        let halves = self.read.keys().filter(|half| half.0.kind() == Kind::Rds);
        for half in halves {
            let item = (half.clone(), name.clone());
            for name in clusters(named(Kind::Rds, self.resource(&item))) {
                unsettle(Kind::Cds, name, &item, held);
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

    /// Returns what names a removed route configuration, and whether the control plane still sends that.
    pub(super) fn of_route(&self, name: &Name, held: &Held) -> Option<(Item, bool)> {
        best(
            self.routes
                .get(name)
                .into_iter()
                .flatten()
                .map(|item| (item, !held.contains(item))),
        )
    }

    /// Returns the listener or the route in use that names a cluster.
    pub(super) fn of_cluster(
        &mut self,
        name: &Name,
        wanted: impl Fn(&TypeUrl, &Name) -> bool,
        held: &Held,
    ) -> Option<(Item, bool)> {
        let sources = self.clusters.get(name).into_iter().flatten();
        let in_use = sources.filter_map(|item| {
            let kind = item.0.0.kind();
            if kind == Kind::Cds {
                return None;
            }
            let named = self.of_route(&item.1, held).filter(|_| kind == Kind::Rds);
            match named {
                Some((_, said)) => Some((item, said && !held.contains(item))),
                None if kind == Kind::Rds => wanted(&item.0.0, &item.1).then_some((item, false)),
                None => Some((item, !held.contains(item))),
            }
        });
        let found = best(in_use);
        if let Some((item, _)) = found.as_ref().filter(|(item, _)| item.0.0.kind() == Kind::Rds)
            && !self.routes.contains_key(&item.1)
        {
            self.leased.insert(item.clone());
        }
        found
    }

    /// Returns an aggregate cluster that stays and has this one as a member. Members are found one hop away: an aggregate cluster that
    /// only another one holds does not count, so no two clusters hold each other.
    pub(super) fn of_member(&self, name: &Name, held: &Held, now: Instant) -> Option<(Item, bool)> {
        let sources = self.clusters.get(name).into_iter().flatten();
        let sources = sources.filter(|item| item.0.0.kind() == Kind::Cds);
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
            let is_known = |name: &Name| halves().any(|(_, state)| state.known(name).is_some());
            let mut unknown = self.routes.iter().filter(|(name, _)| !is_known(name));
            unknown.find_map(|(_, sources)| sources.first().cloned())
        });
        let found = found.clone();
        if found.is_some() {
            self.suspended.insert(cluster.clone());
        }
        found
    }

    fn resource(&self, (half, name): &Item) -> Option<&Arc<Resource>> {
        let read = self.read.get(half)?.resource(name);
        read.or_else(|| self.unconfirmed.get(&(half.clone(), name.clone())))
    }
}

/// The removal of this name must be looked at again, if this resource holds it.
pub(super) fn unsettle(kind: Kind, name: &Name, source: &Item, held: &mut Held) {
    look(kind, name, held, |by, _| by == source);
}

/// The removal of this name must be looked at again, if what holds it is one of these; `true`: the control plane still sends that.
fn look(kind: Kind, name: &Name, held: &mut Held, which: impl Fn(&Item, bool) -> bool) {
    let by = held
        .named(kind, name)
        .filter(|(_, removal)| removal.by().is_some_and(|(by, said)| which(by, said)));
    let items: Vec<Item> = by.map(|(item, _)| item).collect();
    items.into_iter().for_each(|item| held.look(item));
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

fn named(kind: Kind, resource: Option<&Arc<Resource>>) -> Option<&Named> {
    resource.and_then(|resource| references(kind, resource))
}

fn routes(named: Option<&Named>) -> &[Name] {
    named.map_or(&[], |named| &named.routes)
}

fn clusters(named: Option<&Named>) -> &[Name] {
    named.map_or(&[], |named| &named.clusters)
}

/// Returns the names of a sorted list that are not in another one.
fn without<'a>(of: &'a [Name], others: &'a [Name]) -> impl Iterator<Item = &'a Name> {
    let mut others = others.iter().peekable();
    of.iter().filter(move |name| {
        while others.next_if(|other| other < name).is_some() {}
        others.peek() != Some(name)
    })
}

fn drop_from(of: &mut BTreeMap<Name, BTreeSet<Item>>, name: &Name, item: &Item) {
    if let Some(items) = of.get_mut(name) {
        items.remove(item);
        if items.is_empty() {
            of.remove(name);
        }
    }
}

/// Whether resources of this kind can be referred to.
pub(super) const fn is_referred(kind: Kind) -> bool {
    matches!(kind, Kind::Cds | Kind::Rds | Kind::Eds)
}

/// Whether resources of this kind can refer to others.
const fn refers(kind: Kind) -> bool {
    matches!(kind, Kind::Lds | Kind::Rds | Kind::Srds | Kind::Vhds | Kind::Cds)
}
