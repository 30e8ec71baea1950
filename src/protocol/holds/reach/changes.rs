//! What a resource names from now on, and what no longer.
//!
//! Owns that each name knows its sources. Does not read states.

use std::sync::Arc;

use super::super::table::Table;
use super::super::waiting::Item;
use super::named::{REFERRED, names, refers, without};
use super::{Reach, Source, look, unsettle};
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
        let kind = source.0.0.0.kind();
        if !refers(kind) {
            return;
        }
        self.forget_unknown(kind, table);
        // A held cluster here is found by the table.
        for of in REFERRED.into_iter().filter(|of| *of != Kind::Eds || source.1.is_some()) {
            let (old, new) = (names(of, kind, old), names(of, kind, new));
            without(new, old).for_each(|name| self.begin(of, name, source, table));
            without(old, new).for_each(|name| self.end(of, name, source, table));
        }
    }

    /// Other contents stand in for a resource from now on.
    pub(super) fn change_stand_ins(&mut self, source: &Source, before: &[Arc<Resource>], table: &mut Table) {
        let kind = source.0.0.0.kind();
        if !refers(kind) {
            return;
        }
        self.forget_unknown(kind, table);
        let goes = source.1.is_none() && self.going.contains(&source.0);
        let served = self.resource(source).filter(|_| !goes).cloned();
        let now = self.stand_ins.of(source).to_vec();
        for of in REFERRED {
            for new in &now {
                let new = names(of, kind, Some(new)).iter();
                new.for_each(|name| self.begin(of, name, source, table));
            }
            let served = names(of, kind, served.as_ref());
            let served: &[Name] = if of == Kind::Eds && source.1.is_none() {
                &[]
            } else {
                served
            };
            for old in before {
                let old = names(of, kind, Some(old));
                without(old, served).for_each(|name| self.end(of, name, source, table));
            }
        }
    }

    /// A listener or a route changes: it may be known now what was not, for which clusters stay.
    fn forget_unknown(&mut self, kind: Kind, table: &mut Table) {
        if kind != Kind::Cds && self.unknown.take().is_some_and(|unknown| !unknown.is_empty()) {
            table.look_at_clusters();
        }
    }

    /// A resource names another one.
    fn begin(&mut self, of: Kind, name: &Name, source: &Source, table: &mut Table) {
        let sources = self.named.entry(of).or_default().entry(name.clone()).or_default();
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
        if let Some(named) = self.named.get_mut(&of)
            && let Some(sources) = named.get_mut(name)
        {
            sources.remove(source);
            if sources.is_empty() {
                named.remove(name);
            }
        }
        unsettle(of, name, &source.0, table);
        if of == Kind::Rds {
            self.touch_route(name, table);
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
