// SPDX-License-Identifier: Apache-2.0
//! The content of one response, composed for one client or for all at the same point.
//!
//! Owns the rules for what is in it: since when it is new, which endpoints wait for it (K-13), and which listeners hand on addresses. Does
//! not choose the names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::server::flights::Before;
use crate::server::ledger::Row;
use xds::{Batch, Errors, Form, GONE_MAX, Item, Kind, Name, Resource, ResourceError, Room, Spots, takers};

/// A response that is being written.
#[derive(Debug)]
pub(super) struct Draft {
    room: Room,
    items: BTreeMap<Name, Item>,
    /// What the client held of what is new or changed in it.
    held: Option<BTreeMap<Name, Row>>,
    /// What it takes away; `true`: the client held nothing of it.
    gone: BTreeMap<Name, bool>,
    errors: Errors,
    /// When the oldest content in it that is new to the client was received.
    since: Option<Instant>,
    /// The last new or changed name that was added, and whether any was asked for by the wildcard alone.
    last: Option<(Name, bool)>,
    /// The endpoints that its new or changed clusters wait for (K-13).
    endpoints: Vec<Name>,
    /// The new or changed listeners in it, each with what it was before.
    listeners: Vec<(Option<Arc<Resource>>, Arc<Resource>)>,
}

/// What a response has in it.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) batch: Arc<Batch>,
    /// When the oldest content in it that is new to the client was received.
    pub(super) since: Option<Instant>,
    /// Whether more follows.
    pub(super) more: bool,
    /// The endpoints that clusters in it wait for.
    pub(super) endpoints: Vec<Name>,
    /// What the client held of it.
    pub(super) before: Before,
    /// Whether it answers the wildcard, or a first request.
    pub(super) answers: bool,
    /// Whether what was rejected is tried in it.
    pub(super) tried: bool,
}

impl From<Arc<Batch>> for Content {
    /// What the client held before: nothing in it is new.
    fn from(batch: Arc<Batch>) -> Self {
        Self {
            batch,
            since: None,
            more: false,
            endpoints: Vec::new(),
            before: Before::default(),
            answers: true,
            tried: false,
        }
    }
}

impl Draft {
    pub(super) const fn new(room: Room) -> Self {
        Self {
            room,
            items: BTreeMap::new(),
            held: None,
            gone: BTreeMap::new(),
            errors: Errors::new(),
            since: None,
            last: None,
            endpoints: Vec::new(),
            listeners: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.gone.is_empty() && self.errors.is_empty()
    }

    /// Whether it brings any resource.
    pub(super) fn adds(&self) -> bool {
        !self.items.is_empty()
    }

    /// Whether it brings a resource under this name.
    pub(super) fn brings(&self, name: &Name) -> bool {
        self.items.contains_key(name)
    }

    /// Whether any of it was asked for by the wildcard alone.
    pub(super) fn covers(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, covered)| *covered)
    }

    /// Returns the last name that there was room for; `None` if there is room for more.
    pub(super) fn cursor(&self) -> Option<Name> {
        let (last, _) = self.last.as_ref().filter(|_| self.room.is_full())?;
        Some(last.clone())
    }

    /// Returns since when it has anything that is new to the client.
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Takes the endpoints that its clusters wait for.
    pub(super) fn take_endpoints(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.endpoints)
    }

    /// Counts what is new or changed, if there is room. `held` is what the client was sent under that name.
    pub(super) fn count(&mut self, kind: Kind, resource: &Arc<Resource>, held: Option<&Arc<Resource>>) -> bool {
        if !self.room.takes(resource.weight()) {
            return false;
        }
        if held.is_none_or(|held| held.version() != resource.version()) {
            self.since = self.since.into_iter().chain([resource.received()]).min();
        }
        self.endpoints.extend(resource.endpoints().cloned());
        if kind.listens() {
            let before = held.filter(|held| !held.is_hollow());
            self.listeners.push((before.cloned(), resource.clone()));
        }
        true
    }

    /// Notes what the client held of what is new or changed in it.
    pub(super) fn note_held(&mut self, name: &Name, row: Row) {
        self.held.get_or_insert_default().insert(name.clone(), row);
    }

    /// Adds a resource that was counted, or that the client holds.
    pub(super) fn put(&mut self, name: &Name, item: Item) {
        self.items.insert(name.clone(), item);
    }

    /// Notes that this name is new or changed, and whether it was asked for by the wildcard alone.
    pub(super) fn follow(&mut self, name: &Name, covered: bool) {
        self.last = Some((name.clone(), covered || self.covers()));
    }

    /// Whether there is room for something of so many bytes. Takes the room.
    pub(super) const fn takes(&mut self, bytes: usize) -> bool {
        self.room.takes(bytes)
    }

    /// Whether there is room for a name and its error. Takes the room.
    pub(super) fn takes_name(&mut self, name: &Name) -> bool {
        self.room.takes_name(name)
    }

    /// Adds the error of a name.
    pub(super) fn fail(&mut self, name: &Name, error: Arc<ResourceError>) {
        self.errors.insert(name.clone(), error);
    }

    /// Adds that a name does not exist.
    pub(super) fn deny(&mut self, name: Name) {
        self.gone.insert(name, true);
    }

    /// Adds that a name is gone, if there is room or it `must` be in this response. `missing`: the client held nothing.
    pub(super) fn remove(&mut self, name: &Name, missing: bool, must: bool) -> bool {
        let fits = must || self.gone.len() < GONE_MAX && self.room.takes_name(name);
        if fits {
            self.gone.insert(name.clone(), missing);
        }
        fits
    }

    /// Returns the addresses of the new or changed listeners in it.
    pub(super) fn addresses(&self) -> Spots {
        Spots::of_listeners(self.listeners.iter().map(|(_, listener)| listener))
    }

    /// B-16: returns those of the listed listeners that take addresses of others, which are written after all others.
    pub(super) fn takers<'a>(&'a self, listed: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<Name> {
        let changed = self.listeners.iter();
        takers(
            changed.filter_map(|(before, after)| Some((before.as_ref()?, after))),
            listed,
        )
    }

    /// Returns what is sent to one client. A full state leaves out what is gone, and does not name it.
    pub(super) fn finish(mut self, kind: Kind, full: bool) -> Content {
        let more = self.room.is_full() && self.adds();
        let last = match full {
            true => self.takers(self.items.values().map(|item| &item.resource)),
            false => Vec::new(),
        };
        let gone = || self.gone.iter().filter(|_| !full);
        let missing = gone().filter(|(_, missing)| **missing);
        let missing = missing.map(|(name, _)| name.clone()).collect();
        let endpoints = std::mem::take(&mut self.endpoints);
        let errors = std::mem::take(&mut self.errors);
        let (since, rows) = (self.since, self.held.take());
        let batch = self.batch(full).alone().with_last(last);
        let batch = batch
            .with_missing(missing, kind.is_void_without_body())
            .with_errors(errors);
        Content {
            since,
            more,
            endpoints,
            before: Before {
                shared: None,
                rows: rows.map(Box::new),
            },
            ..Arc::new(batch).into()
        }
    }

    /// Returns its resources, and what it takes away.
    pub(super) fn batch(self, full: bool) -> Batch {
        let removed = self.gone.into_keys().filter(|_| !full);
        Batch::new(self.items.into_values().collect(), removed.collect())
    }

    /// Adds a resource that the client holds already.
    pub(super) fn repeat(&mut self, name: &Name, mut item: Item) {
        if item.form == Form::Whole {
            item.form = Form::Repeated;
        }
        self.items.insert(name.clone(), item);
    }
}
