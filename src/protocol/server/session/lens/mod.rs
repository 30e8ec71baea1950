// SPDX-License-Identifier: Apache-2.0
//! What a client should hold under a name, and what of that is due.
//!
//! Owns how rights, canonical names, other names, collections and the two halves of a view decide that. Does not know when anything is
//! sent, and with what else.

mod verdict;

use std::sync::Arc;

use super::Subscription;
use crate::server::ledger::Row;
pub(super) use verdict::Say;
use xds::{Known, Name, Reason, Resource, TypeSight};

/// A client's view of one type, at one moment.
#[derive(Clone, Copy)]
pub(in crate::server) struct Lens<'s, 'a> {
    of: &'s Subscription,
    slot: TypeSight<'a>,
}

/// What a client should hold under a name.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum Look<'a> {
    Put(&'a Arc<Resource>),
    /// Nothing.
    Gone,
    /// What it has: something that may have the name is unknown.
    Unknown,
}

/// What is known of a collection's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Extent {
    Unknown,
    /// The collection certainly has no members.
    Empty,
    /// The collection has members.
    Some,
}

/// A name of a resource that exists under another name, for a client that cannot ask by such a name.
static NOWHERE: Known = Known::Absent(Reason::Said);

impl<'s, 'a> Lens<'s, 'a> {
    pub(super) const fn new(of: &'s Subscription, slot: TypeSight<'a>) -> Self {
        Self { of, slot }
    }

    /// Returns what is known of the name that a text means. C-20: only some types have aliases.
    pub(in crate::server) fn known(&self, text: &Name) -> Option<&'a Known> {
        let name = self.of.want.meaning(text);
        match self.slot.known(name) {
            Some(Known::Present(found))
                if found.name() != name && !found.name().is_empty() && !self.of.reader.has_aliases() =>
            {
                Some(&NOWHERE)
            }
            known => known,
        }
    }

    /// Returns what the client should hold under a name, of which it has this row.
    pub(in crate::server) fn look(&self, key: &Name, row: &Row) -> Look<'a> {
        let known = self.known(key);
        let found = known.and_then(Known::resource);
        let dim = match known {
            None => true,
            Some(Known::Absent(Reason::TimedOut)) => self.keeps(row),
            Some(_) => false,
        };
        let mut dark = false;
        let asks = self.of.books.ledger().asks(key);
        if asks {
            if let Some(found) = found {
                return Look::Put(found);
            }
            dark |= dim;
        }
        if self.of.want.covering(key).is_some() {
            if let Some(found) = found.filter(|found| found.name() == key) {
                return Look::Put(found);
            }
            dark |= dim;
        }
        if self.covers(key) {
            let state = self.slot.wildcard();
            if let Some(found) = state.and_then(|state| state.entries().get(key)?.resource()) {
                return Look::Put(found);
            }
            // What the client may not have is in no state.
            let may_have = || self.of.reader.viewer().may_have(self.of.reader.type_url(), key);
            // A wildcard has no name that certainly does not exist.
            let certain = asks && !dim || state.is_some_and(|state| state.certain());
            dark |= !certain && may_have();
        }
        if let Some(found) = self.by_other_name(key, found) {
            return Look::Put(found);
        }
        let settled = asks && !dim;
        if row.perhaps() && !settled && self.of.reader.has_aliases() {
            dark |= self.is_hidden(key, row);
        }
        if dark { Look::Unknown } else { Look::Gone }
    }

    /// Whether the client's wildcard covers a name: it covers old-style names only.
    pub(in crate::server) fn covers(&self, key: &Name) -> bool {
        self.of.want.wildcard() && !key.is_new_style() && !self.of.want.meaning(key).is_blank()
    }

    /// K-16: whether a server that did not answer in time is no reason to take this from the client. A full state says nothing of
    /// what the client may hold, and does not wait for it any longer.
    fn keeps(&self, row: &Row) -> bool {
        row.perhaps() && !(self.of.reader.full_state() && row.whole().is_none())
    }

    /// C-20, A-09: returns the resource of this name if the client asks for it by another one.
    fn by_other_name(&self, key: &Name, found: Option<&'a Arc<Resource>>) -> Option<&'a Arc<Resource>> {
        if key.is_empty() && self.of.reader.has_nameless() {
            let mut asked = self.of.books.ledger().asked().filter(|name| !name.is_empty());
            let known = self.known(asked.next()?)?.resource();
            return known.filter(|found| found.name().is_empty());
        }
        let found = found.filter(|found| self.of.reader.has_aliases() && found.name() == key)?;
        let means = |alias: &Name| {
            let known = self.known(alias).and_then(Known::resource);
            known.is_some_and(|known| known.name() == key)
        };
        let mut aliases = found.aliases().iter();
        aliases
            .any(|alias| self.of.books.ledger().asks(alias) && means(alias))
            .then_some(found)
    }

    /// Whether the client may hold this by an alias of which nothing is known.
    fn is_hidden(&self, key: &Name, row: &Row) -> bool {
        let dark = |alias: &Name| matches!(self.known(alias), None | Some(Known::Absent(Reason::TimedOut)));
        match row.sent() {
            Some(sent) => sent
                .aliases()
                .iter()
                .any(|alias| alias != key && self.of.books.ledger().asks(alias) && dark(alias)),
            None => self.of.turn.is_dark(|| {
                let mut names = self.of.books.ledger().asked().filter(|name| !name.is_collection());
                names.any(dark)
            }),
        }
    }

    /// Returns what is known of a collection's members.
    pub(in crate::server) fn extent(&self, collection: &Name) -> Extent {
        let name = self.of.want.meaning(collection);
        if self.slot.members(name).next().is_some() {
            return Extent::Some;
        }
        match self.slot.known(name) {
            Some(Known::Absent(_)) => Extent::Empty,
            Some(Known::Present(_)) => Extent::Some,
            None | Some(Known::Held(_)) => Extent::Unknown,
        }
    }

    /// Returns what was requested and is still unknown; `None` stands for the wildcard.
    pub(super) fn missing(self) -> impl Iterator<Item = Option<&'s Name>> {
        let Self { of, slot } = self;
        let unknown = move |text: &&Name| {
            if text.is_collection() {
                self.extent(text) == Extent::Unknown
            } else {
                self.known(text).is_none()
            }
        };
        let names = of.books.ledger().asked().filter(unknown);
        let all = (of.want.wildcard() && !slot.is_complete()).then_some(None);
        all.into_iter()
            .chain(names.map(move |text| Some(of.want.meaning(text))))
    }

    /// Whether a first answer would tell the client nothing: none of the names is known to exist, and some may.
    pub(super) fn tells_nothing(self) -> bool {
        let ledger = self.of.books.ledger();
        let lists = self.of.want.wildcard() || ledger.own().from("").any(|entry| entry.perhaps());
        let reads = |found: &Arc<Resource>| !self.of.reader.cannot_read(found);
        let exists = |text: &Name| {
            if text.is_collection() {
                self.slot.members(self.of.want.meaning(text)).any(reads)
            } else {
                self.known(text).and_then(Known::resource).is_some_and(reads)
            }
        };
        !lists && self.missing().next().is_some() && !ledger.asked().any(exists)
    }

    /// Whether anything that is known of what the client wants leads to such a cluster.
    pub(in crate::server) fn leads(self, mut to: impl FnMut(&Name) -> bool) -> bool {
        let kind = self.of.kind();
        let asked = self.of.books.ledger().asked().map(|name| self.of.want.meaning(name));
        let asked = asked.filter_map(|name| self.slot.resource(name));
        let all = self.slot.wildcard().filter(|_| self.of.want.wildcard());
        let mut wanted = asked.chain(all.into_iter().flat_map(|state| state.resources()));
        wanted.any(|found| {
            found
                .references(kind)
                .is_some_and(|found| found.clusters.iter().any(&mut to))
        })
    }

    /// Returns the first result for a route that something which the client holds names.
    pub(in crate::server) fn find_route<R>(self, mut find: impl FnMut(&Name) -> Option<R>) -> Option<R> {
        let kind = self.of.kind();
        let mut of = |name: &Name, row: &Row| {
            let held = row.whole().or_else(|| self.slot.resource(self.of.want.meaning(name)))?;
            held.references(kind)?.routes.iter().find_map(&mut find)
        };
        self.of.books.ledger().held().find_map(|(name, row)| of(name, &row))
    }
}
