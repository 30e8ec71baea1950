// SPDX-License-Identifier: Apache-2.0
//! Which served resources refer to which names.
//!
//! Owns what counts as a source: listeners, scoped routes and virtual hosts that are served, routes that one of them names or a
//! client wants, aggregate clusters that stay, and the older contents that stand in for any of these; here, and in what the clients of
//! the view read of other servers. Each resource is read once, and a change costs what it names. Does not decide what goes.

mod abroad;
mod changes;
mod named;
mod sources;
mod stand_ins;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::table::Table;
use super::waiting::{Half, Item, Referrers, Row};
use abroad::Abroad;
use named::best;
pub(super) use named::leads_to;
use sources::Sources;
use stand_ins::StandIns;
use xds::{Cut, Kind, Known, Name, Reason, Resource, State, TypeUrl, ViewPlace};

/// Whether a client wants the route configuration of this name now.
pub(super) type Wanted<'a> = &'a dyn Fn(&TypeUrl, &Name) -> bool;

/// What refers to something, and whether the control plane still sends that.
type NamedBy = Option<(Item, bool)>;

/// A resource that refers to others, and where it is served; `None`: here.
type Source = (Item, Option<ViewPlace>);

/// What refers to what, in the states that were read last. It is empty as long as no removal waits for it.
#[derive(Debug, Default)]
pub(super) struct Reach {
    read: BTreeMap<(Half, Option<ViewPlace>), Arc<State>>,
    /// What names a route configuration, a cluster, or an endpoint assignment (that of a cluster of another server, or of an older one).
    named: BTreeMap<Kind, BTreeMap<Name, Sources>>,
    /// The route configurations that hold a removal, and count only because a client wants them.
    leased: BTreeSet<Source>,
    /// What the control plane did not confirm in time. K-16: clients keep it, so it counts until something else is said.
    unconfirmed: BTreeMap<Source, Arc<Resource>>,
    /// What names a route configuration of which nothing is known; empty: that is to be looked for.
    unknown: OnceLock<Vec<Source>>,
    abroad: Abroad,
    stand_ins: StandIns,
}

impl Reach {
    /// Reads what has changed in the cut. What a changed resource referred to must be looked at again.
    pub(super) fn read(&mut self, cut: &Cut, table: &mut Table) {
        if table.going_halves().any(|half| half.0.kind().is_referred()) {
            self.read_at(None, Some(cut), table);
        }
    }

    /// Reads what has changed at a place, in what refers to something; without a cut, nothing is read there any more. Returns whether
    /// something that directs traffic has.
    fn read_at(&mut self, place: Option<&ViewPlace>, cut: Option<&Cut>, table: &mut Table) -> bool {
        let owners = &self.abroad.owners;
        let is_read = |of: &TypeUrl| of.kind().refers() && place.is_none_or(|place| place.may_have(owners, of));
        let slots = cut.into_iter().flat_map(Cut::slots).map(|(of, _)| of);
        let referring = slots.filter(|of| is_read(of));
        let referring = referring.flat_map(|of| [(of.clone(), true), (of.clone(), false)]);
        let known = self.read.keys().filter(|(_, at)| at.as_ref() == place);
        let known = known.map(|(half, _)| half.clone());
        let halves: BTreeSet<Half> = referring.chain(known).collect();
        let mut directs = false;
        for half in halves {
            let now = cut.and_then(|cut| cut.half(&half.0, half.1)).cloned();
            let key = (half, place.cloned());
            let before = self.read.get(&key).cloned();
            if before.as_ref().map(|state| state.id()) == now.as_ref().map(|state| state.id()) {
                continue;
            }
            directs |= key.0.0.kind().gated();
            self.read_half(&key.0, place, (before.as_deref(), now.as_deref()), table);
            match now {
                Some(now) => self.read.insert(key, now),
                None => self.read.remove(&key),
            };
        }
        let is_read =
            |half: &Half, name: &Name| place.is_none_or(|place| place.has(&self.abroad.owners, &half.0, name));
        for (source, before) in self.stand_ins.read(place, cut, is_read) {
            self.change_stand_ins(&source, &before, table);
        }
        directs
    }

    fn read_half(
        &mut self,
        half: &Half,
        place: Option<&ViewPlace>,
        (before, now): (Option<&State>, Option<&State>),
        table: &mut Table,
    ) {
        let mut silent = Vec::new();
        let mut change = |name: &Name, old: Option<&Arc<Resource>>, new: Option<&Arc<Resource>>| {
            let source = ((half.clone(), name.clone()), place.cloned());
            let unconfirmed = self.unconfirmed.remove(&source);
            let counted = old.or(unconfirmed.as_ref());
            let new = new.filter(|_| place.is_none_or(|place| place.has(&self.abroad.owners, &half.0, name)));
            let stand_ins = self.stand_ins.of(&source).to_vec();
            self.change(&source, (counted, &stand_ins), (new, &stand_ins), table);
        };
        let none = OrdMap::new();
        let [before, now] = [before, now].map(|state| state.map_or(&none, State::entries));
        for item in before.diff(now) {
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
        let silent = silent.into_iter();
        let silent = silent.map(|(name, old)| (((half.clone(), name), place.cloned()), old));
        self.unconfirmed.extend(silent);
    }

    /// What is held because of this resource must be looked at again.
    pub(super) fn touch(&self, item: &Item, table: &mut Table) {
        self.touch_source(&(item.clone(), None), table);
    }

    fn touch_source(&self, source: &Source, table: &mut Table) {
        let kind = source.0.0.0.kind();
        let contents = self.resource(source).into_iter().chain(self.stand_ins.of(source));
        let contents = contents.filter(|_| kind.refers());
        for (of, name) in contents.flat_map(|content| leads_to(kind, content)) {
            unsettle(of, name, &source.0, table);
            if of == Kind::Rds {
                self.touch_route(name, table);
            }
        }
    }

    /// Returns what names this.
    fn sources(&self, of: Kind, name: &Name) -> impl Iterator<Item = &Source> {
        let sources = self.named.get(&of).and_then(|named| named.get(name));
        sources.into_iter().flat_map(Sources::iter)
    }

    /// What is held because of a route configuration of this name must be looked at again.
    fn touch_route(&self, name: &Name, table: &mut Table) {
        for ((half, place), _) in self.route_states() {
            self.touch_source(&((half.clone(), name.clone()), place.clone()), table);
        }
    }

    /// The states of route configurations, wherever they are.
    fn route_states(&self) -> impl Iterator<Item = (&(Half, Option<ViewPlace>), &Arc<State>)> {
        self.read.iter().filter(|((half, _), _)| half.0.kind().is_routes())
    }

    /// Whether a client may have both: what is read at this place under this name, and the other one. Of what one owner has, some clients
    /// can read another view.
    fn meet(&self, place: Option<&ViewPlace>, one: (&Half, &Name), (item, other): &Source) -> bool {
        place == other.as_ref() || !self.abroad.have_one_owner(one, item)
    }

    /// The same for what is removed here, if this is among what can refer to that.
    fn meets(&self, removed: &Item, source: &Source, by: Referrers, table: &Table) -> bool {
        self.is_among(by, source, table) && self.meet(None, (&removed.0, &removed.1), source)
    }

    fn is_among(&self, by: Referrers, source: &Source, table: &Table) -> bool {
        let is_beside = source.1.is_some() && by == Referrers::Beside;
        let waits_here = source.1.is_none() && table.get(&source.0).is_some_and(Row::is_change);
        by == Referrers::All || is_beside || waits_here || !self.stand_ins.of(source).is_empty()
    }

    /// What is held because of routes that no client wants any more must be looked at again.
    pub(super) fn leave(&mut self, wanted: Wanted<'_>, table: &mut Table) {
        let left = self.leased.iter().filter(|((half, name), _)| !wanted(&half.0, name));
        for source in left.cloned().collect::<Vec<_>>() {
            self.leased.remove(&source);
            self.touch_source(&source, table);
        }
    }

    /// Whether the control plane still sends this.
    fn is_said(&self, (item, place): &Source, table: &Table) -> bool {
        match place {
            None => !table.is_going(item),
            Some(place) => !self.abroad.is_held(place, item),
        }
    }

    /// Returns a cluster of another server that takes its endpoints from a removed assignment, or an older one that clients use, and whether
    /// the control plane still sends that. One that it does not send comes first.
    pub(super) fn of_endpoints(&self, assignment: &Item, by: Referrers, table: &Table) -> NamedBy {
        let name = &assignment.1;
        let clusters = self.sources(Kind::Eds, name);
        let clusters = clusters.filter(|source| self.meets(assignment, source, by, table));
        let unsaid = clusters.map(|source| {
            let (item, place) = source;
            let is_held = |place| self.abroad.is_held(place, item);
            let mut older = self.stand_ins.of(source).iter();
            let stands_in = older.any(|one| one.endpoints() == Some(name));
            (item, stands_in || place.as_ref().is_none_or(is_held))
        });
        best(unsaid).map(|(item, unsaid)| (item, !unsaid))
    }

    /// Returns what names a route configuration, and whether the control plane still sends that.
    pub(super) fn of_route(&self, route: &Item, place: Option<&ViewPlace>, by: Referrers, table: &Table) -> NamedBy {
        let sources = self.sources(Kind::Rds, &route.1);
        let counts = |source: &Source| self.is_among(by, source, table);
        let sources = sources.filter(|source| counts(source) && self.meet(place, (&route.0, &route.1), source));
        best(sources.map(|source| (&source.0, self.is_said(source, table))))
    }

    /// Returns the listener or the route in use that names a cluster.
    pub(super) fn of_cluster(&mut self, cluster: &Item, wanted: Wanted<'_>, by: Referrers, table: &Table) -> NamedBy {
        let sources = self.sources(Kind::Cds, &cluster.1);
        let in_use = sources.filter_map(|source| {
            let (item, kind) = (&source.0, source.0.0.0.kind());
            if kind == Kind::Cds || !self.meets(cluster, source, by, table) {
                return None;
            }
            let named = self.of_route(item, source.1.as_ref(), Referrers::All, table);
            let named = named.filter(|_| kind == Kind::Rds);
            match named {
                Some((_, said)) => Some((source, said && self.is_said(source, table))),
                None if kind == Kind::Rds => wanted(&item.0.0, &item.1).then_some((source, false)),
                None => Some((source, self.is_said(source, table))),
            }
        });
        let (source, said) = best(in_use)?;
        if source.0.0.0.kind() == Kind::Rds && self.sources(Kind::Rds, &source.0.1).next().is_none() {
            self.leased.insert(source.clone());
        }
        Some((source.0, said))
    }

    /// Returns an aggregate cluster that stays and has this one as a member. Members are found one hop away: an aggregate cluster that
    /// only another one holds does not count, so no two clusters hold each other.
    pub(super) fn of_member(&self, member: &Item, by: Referrers, table: &Table, now: Instant) -> NamedBy {
        let sources = self.sources(Kind::Cds, &member.1);
        let sources =
            sources.filter(|source| source.0.0.0.kind() == Kind::Cds && self.meets(member, source, by, table));
        best(
            sources.filter_map(|source| match table.removal(&source.0).filter(|_| source.1.is_none()) {
                None => Some((&source.0, self.is_said(source, table))),
                Some(removal) => {
                    let item = &source.0;
                    let directly = removal.by().is_some_and(|(by, _)| by.0.0.kind() != Kind::Cds);
                    (directly || removal.waits(now)).then_some((item, false))
                }
            }),
        )
    }

    /// Returns a listener or scoped route that names a route configuration of which nothing is known. A cluster waits for that.
    pub(super) fn unknown_route(&self, cluster: &Item, by: Referrers, table: &Table) -> Option<Item> {
        let unknown = self.unknown.get_or_init(|| {
            let is_known = |name: &Name, source: &Source| {
                let mut states = self.route_states();
                states.any(|((half, place), state)| {
                    state.known(name).is_some() && self.meet(place.as_ref(), (half, name), source)
                })
            };
            let all = self.named.get(&Kind::Rds).into_iter().flatten();
            let all = all.flat_map(|(name, sources)| sources.iter().map(move |source| (name, source)));
            let unknown = all.filter(|(name, source)| !is_known(name, source));
            unknown.map(|(_, source)| source.clone()).collect()
        });
        let found = unknown.iter().find(|source| self.meets(cluster, source, by, table));
        found.map(|(item, _)| item.clone())
    }

    fn resource(&self, source: &Source) -> Option<&Arc<Resource>> {
        let ((half, name), place) = source;
        let read = self.read.get(&(half.clone(), place.clone()));
        let read = read.and_then(|state| state.resource(name));
        read.or_else(|| self.unconfirmed.get(source))
    }
}

/// The removal of this name must be looked at again, if this resource holds it.
fn unsettle(kind: Kind, name: &Name, source: &Item, table: &mut Table) {
    look(kind, name, table, |by, _| by == source);
}

/// The removal of this name must be looked at again, if what holds it is one of these; `true`: the control plane still sends that.
fn look(kind: Kind, name: &Name, table: &mut Table, which: impl Fn(&Item, bool) -> bool) {
    let by = table.named(kind, name);
    let by = by.filter(|(_, removal)| removal.by().is_some_and(|(by, said)| which(by, said)));
    let items: Vec<Item> = by.map(|(item, _)| item).collect();
    items.iter().for_each(|item| table.look(item));
}
