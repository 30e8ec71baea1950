//! What a resource names from now on, and what no longer.
//!
//! Owns that each name knows its sources. Does not read states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::table::Table;
use super::super::waiting::Item;
use super::named::{clusters, named, refers, routes, without};
use super::{Reach, Source, drop_from, look, unsettle};
use xds::{Kind, Name, Resource};

impl Reach {
    /// A resource names something else from now on.
    pub(super) fn change(
        &mut self,
        source: &Source,
        old: Option<&Arc<Resource>>,
        new: Option<&Arc<Resource>>,
        table: &mut Table,
    ) {
        let (item, place) = source;
        let kind = item.0.0.kind();
        if !refers(kind) {
            return;
        }
        self.forget_unknown(kind, table);
        if place.is_some() && kind == Kind::Cds {
            self.change_endpoints(source, old, new, table);
        }
        let (old, new) = (named(kind, old), named(kind, new));
        for (of, old, new) in [
            (Kind::Rds, routes(old), routes(new)),
            (Kind::Cds, clusters(old), clusters(new)),
        ] {
            without(new, old).for_each(|name| self.begin(of, name, source, table));
            without(old, new).for_each(|name| self.end(of, name, source, table));
        }
    }

    /// Other contents stand in for a resource from now on.
    pub(super) fn change_stand_ins(&mut self, source: &Source, before: &[Arc<Resource>], table: &mut Table) {
        let kind = source.0.0.0.kind();
        for name in before.iter().filter_map(|one| one.endpoints()) {
            unsettle(Kind::Eds, name, &source.0, table);
        }
        if !refers(kind) {
            return;
        }
        self.forget_unknown(kind, table);
        for one in self.stand_ins.of(source).to_vec() {
            let new = named(kind, Some(&one));
            for (of, new) in [(Kind::Rds, routes(new)), (Kind::Cds, clusters(new))] {
                new.iter().for_each(|name| self.begin(of, name, source, table));
            }
        }
        let goes = source.1.is_none() && self.going.contains(&source.0);
        let served = self.resource(source).filter(|_| !goes).cloned();
        let served = named(kind, served.as_ref());
        for old in before {
            let old = named(kind, Some(old));
            for (of, old, served) in [
                (Kind::Rds, routes(old), routes(served)),
                (Kind::Cds, clusters(old), clusters(served)),
            ] {
                without(old, served).for_each(|name| self.end(of, name, source, table));
            }
        }
    }

    /// A listener or a route changes: it may be known now what was not.
    fn forget_unknown(&mut self, kind: Kind, table: &mut Table) {
        if kind != Kind::Cds {
            self.unknown.take();
            let suspended = std::mem::take(&mut self.suspended);
            suspended.into_iter().for_each(|item| table.look(item));
        }
    }

    /// A resource names a route configuration or a cluster.
    fn begin(&mut self, of: Kind, name: &Name, source: &Source, table: &mut Table) {
        let sources = self.named_mut(of).entry(name.clone()).or_default();
        sources.insert(source.clone());
        look(of, name, table, |_, said| !said);
        if of == Kind::Rds {
            self.touch_route(name, table);
        }
    }

    /// It does not any more, unless what stands in for it does.
    fn end(&mut self, of: Kind, name: &Name, source: &Source, table: &mut Table) {
        if self.stand_ins.name(of, source, name) {
            return;
        }
        drop_from(self.named_mut(of), name, source);
        unsettle(of, name, &source.0, table);
        if of == Kind::Rds {
            self.touch_route(name, table);
        }
    }

    fn named_mut(&mut self, of: Kind) -> &mut BTreeMap<Name, BTreeSet<Source>> {
        if of == Kind::Rds {
            &mut self.routes
        } else {
            &mut self.clusters
        }
    }

    /// A cluster of another server takes its endpoints from something else from now on.
    fn change_endpoints(
        &mut self,
        cluster: &Source,
        old: Option<&Arc<Resource>>,
        new: Option<&Arc<Resource>>,
        table: &mut Table,
    ) {
        let of = |resource: Option<&Arc<Resource>>| resource.and_then(|resource| resource.endpoints().cloned());
        let (old, new) = (of(old), of(new));
        if old == new {
            return;
        }
        if let Some(name) = old {
            self.abroad.leave_endpoints(&name, cluster);
            unsettle(Kind::Eds, &name, &cluster.0, table);
        }
        if let Some(name) = new {
            self.abroad.take_endpoints(&name, cluster);
        }
    }

    /// A resource goes: it does not count any more, although it is still served.
    pub(in super::super) fn go(&mut self, item: &Item, table: &mut Table) {
        let source = (item.clone(), None);
        let stood_in = self.stand_ins.remove(&source);
        self.change_stand_ins(&source, &stood_in, table);
        let resource = self.resource(&source).cloned();
        self.change(&source, resource.as_ref(), None, table);
        if resource.is_some() {
            self.going.insert(item.clone());
        }
    }
}
