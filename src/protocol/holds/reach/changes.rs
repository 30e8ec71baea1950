// SPDX-License-Identifier: Apache-2.0
//! What a resource names from now on, and what no longer.
//!
//! Owns that each name knows its sources. Does not read states.

use std::sync::Arc;

use super::super::table::Table;
use super::super::waiting::Item;
use super::named::{REFERRED, names, without};
use super::{Reach, Source, Sources, look, unsettle};
use xds::{Kind, Name, Resource};

/// The content that is served, and those that stand in for it.
type Contents<'a> = (Option<&'a Arc<Resource>>, &'a [Arc<Resource>]);

impl Reach {
    /// A resource, or what stands in for it, names something else from now on.
    pub(super) fn change(&mut self, source: &Source, before: Contents<'_>, now: Contents<'_>, table: &mut Table) {
        let kind = source.0.0.0.kind();
        if !kind.refers() {
            return;
        }
        // A listener or a route changes: it may be known now what was not, for which clusters stay.
        if kind.gated() && self.unknown.take().is_some_and(|unknown| !unknown.is_empty()) {
            table.look_at_clusters();
        }
        for of in REFERRED {
            let (old, new) = (all_names(of, source, before), all_names(of, source, now));
            without(&new, &old).for_each(|name| self.begin(of, name, source, table));
            without(&old, &new).for_each(|name| self.end(of, name, source, table));
        }
    }

    /// Other contents stand in for a resource from now on.
    pub(super) fn change_stand_ins(&mut self, source: &Source, before: &[Arc<Resource>], table: &mut Table) {
        let served = self.resource(source).cloned();
        let now = self.stand_ins.of(source).to_vec();
        self.change(source, (served.as_ref(), before), (served.as_ref(), &now), table);
        self.touch_source(source, table);
    }

    /// A resource names another one.
    fn begin(&mut self, of: Kind, name: &Name, source: &Source, table: &mut Table) {
        let sources = self.named.entry(of).or_default().entry(name.clone());
        sources
            .and_modify(|sources| sources.add(source.clone()))
            .or_insert_with(|| Sources::One(source.clone()));
        look(of, name, table, |_, said| !said);
        if of == Kind::Rds {
            self.touch_route(name, table);
        }
    }

    /// It does not any more.
    fn end(&mut self, of: Kind, name: &Name, source: &Source, table: &mut Table) {
        if let Some(named) = self.named.get_mut(&of)
            && named.get_mut(name).is_some_and(|sources| sources.remove(source))
        {
            named.remove(name);
        }
        unsettle(of, name, &source.0, table);
        if of == Kind::Rds {
            self.touch_route(name, table);
        }
    }

    /// A resource goes: it does not count any more, although it is still served.
    pub(in super::super) fn go(&mut self, item: &Item, table: &mut Table) {
        let source = (item.clone(), None);
        let served = self.resource(&source).cloned();
        let stood_in = self.stand_ins.remove(&source);
        self.change(&source, (served.as_ref(), &stood_in), (None, &[]), table);
    }
}

/// Returns what a source names of another kind, in order.
fn all_names<'a>(of: Kind, source: &Source, (served, stand_ins): Contents<'a>) -> Vec<&'a Name> {
    let kind = source.0.0.0.kind();
    // A held cluster here is found by the table.
    let served = served.filter(|_| source.1.is_some() || of != Kind::Eds);
    let all = served.into_iter().chain(stand_ins);
    let mut names: Vec<&Name> = all.flat_map(|one| names(of, kind, one)).collect();
    if !stand_ins.is_empty() {
        names.sort_unstable();
    }
    names
}
