//! The content of one response, composed for one client or for all at the same point.
//!
//! Owns the rules for what is in it: since when it is new, which endpoints wait for it (K-13), which listeners hand on addresses, and that
//! exactly this counts as sent. Does not choose the names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::lens::Say;
use super::{Attempt, Subscription};
use xds::{
    Answers, Batch, Dialect, Errors, Form, GONE_MAX, Item, Kind, Name, Resource, Room, Spots, TypeSight, takers,
};

/// A response that is being written.
#[derive(Debug)]
pub(super) struct Draft {
    room: Room,
    items: BTreeMap<Name, Item>,
    /// What it takes away; `true`: the client held nothing of it.
    gone: BTreeMap<Name, bool>,
    errors: Errors,
    /// When the oldest content in it that is new to the client was received.
    since: Option<Instant>,
    /// The last name that was added.
    last: Option<Name>,
    /// The endpoints that its new or changed clusters wait for (K-13).
    endpoints: Vec<Name>,
    /// Whether any of it was asked for by the wildcard alone.
    covers: bool,
    /// The new or changed listeners in it, each with what it was before.
    listeners: Vec<(Option<Arc<Resource>>, Arc<Resource>)>,
}

impl Draft {
    pub(super) const fn new(room: Room) -> Self {
        Self {
            room,
            items: BTreeMap::new(),
            gone: BTreeMap::new(),
            errors: Errors::new(),
            since: None,
            last: None,
            endpoints: Vec::new(),
            covers: false,
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
    pub(super) const fn covers(&self) -> bool {
        self.covers
    }

    /// Returns the last name that there was room for; `None` if there is room for more.
    pub(super) fn cursor(&self) -> Option<Name> {
        self.last.clone().filter(|_| self.room.is_full())
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
        if kind == Kind::Lds {
            let before = held.filter(|held| !held.is_hollow());
            self.listeners.push((before.cloned(), resource.clone()));
        }
        true
    }

    /// Adds a resource that was counted.
    pub(super) fn put(&mut self, name: &Name, item: Item) {
        self.items.insert(name.clone(), item);
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

    /// Returns what is sent to one client, since when that is new, whether more follows, and the endpoints that clusters in it wait for. A
    /// full state leaves out what is gone, and does not name it.
    pub(super) fn finish(mut self, kind: Kind, full: bool) -> (Arc<Batch>, Option<Instant>, bool, Vec<Name>) {
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
        let since = self.since;
        let batch = self.batch(full).alone().with_last(last);
        let batch = batch.with_missing(missing, kind == Kind::Vhds).with_errors(errors);
        (Arc::new(batch), since, more, endpoints)
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

impl Subscription {
    /// Adds what is due of a name to a response, and notes that it was sent. Returns whether there was room.
    pub(super) fn write(
        &mut self,
        name: &Name,
        say: Say<'_>,
        draft: &mut Draft,
        attempt: &Attempt<'_, impl Answers>,
    ) -> bool {
        match say {
            Say::Put(resource) => self.write_resource(name, resource, draft, attempt),
            Say::Other(resource) => {
                let own = resource.name();
                let written = draft.items.contains_key(own) || self.write_resource(own, resource, draft, attempt);
                if written {
                    self.books.answered(name);
                }
                written
            }
            Say::Beat(resource) => {
                let fits = draft.room.takes(resource.weight());
                if fits {
                    self.write_beat(name, resource, draft, attempt);
                }
                fits
            }
            // A full state names nothing that is gone.
            Say::Remove => self.write_gone(name, false, self.reader.full_state(), draft, attempt.slot),
            Say::Missing => self.write_gone(name, true, self.reader.full_state(), draft, attempt.slot),
            Say::Error => {
                self.write_error(name, draft, attempt.slot);
                true
            }
        }
    }

    /// Adds that a name is gone, if there is room or it `must` be in this response. `missing`: the client held nothing.
    pub(super) fn write_gone(
        &mut self,
        name: &Name,
        missing: bool,
        must: bool,
        draft: &mut Draft,
        slot: TypeSight<'_>,
    ) -> bool {
        let fits = draft.remove(name, missing, must);
        if fits {
            self.write_error(name, draft, slot);
            self.books.gone(name);
        }
        fits
    }

    fn write_resource(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        draft: &mut Draft,
        attempt: &Attempt<'_, impl Answers>,
    ) -> bool {
        let row = self.books.ledger().get(name);
        if !draft.count(self.reader.traits().kind, resource, row.sent()) {
            return false;
        }
        if let Some(accepted) = row.whole().filter(|_| self.reader.lists_all()) {
            self.books.notes_mut().note_accepted(name, accepted);
        }
        draft.put(name, self.reader.item(name, resource, attempt.slot, attempt.now));
        draft.covers |= !self.books.ledger().asks(name);
        self.books.sent(name, resource);
        let before = draft.last.replace(name.clone());
        self.answer_collection(name, before.as_ref());
        if self.reader.reads_ttl() {
            self.books
                .notes_mut()
                .note_beat(resource.name(), attempt.slot.beat(resource));
        }
        true
    }

    /// C-22: the first member that is sent of a collection answers it. `before` is what was sent before it.
    fn answer_collection(&mut self, member: &Name, before: Option<&Name>) {
        let Some(all) = self.want.covering(member) else {
            return;
        };
        if before.and_then(Name::collection).as_ref() == Some(&all) {
            return;
        }
        let open: Vec<Name> = self.open_texts(&all).cloned().collect();
        open.iter().for_each(|text| self.books.answered(text));
    }

    /// K-17: C-21: a virtual host is sent again whole. E-11: if the resource has no time to live any more, only the resource itself can
    /// say so.
    fn write_beat(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        draft: &mut Draft,
        attempt: &Attempt<'_, impl Answers>,
    ) {
        let beat = attempt.slot.beat(resource);
        let heartbeat = beat.is_some() && self.reader.traits().kind != Kind::Vhds;
        let item = self.reader.item(name, resource, attempt.slot, attempt.now);
        let form = match self.reader.dialect() {
            Dialect::Delta if heartbeat => Form::Heartbeat,
            Dialect::Delta => Form::Repeated,
            Dialect::Sotw => item.form,
        };
        draft.items.insert(name.clone(), Item { form, ..item });
        self.books.notes_mut().note_beat(resource.name(), beat);
    }

    /// B-31: adds the error of a name, unless the client was sent it.
    fn write_error(&mut self, name: &Name, draft: &mut Draft, slot: TypeSight<'_>) {
        if let Some(error) = self.lens(slot).due_error(name) {
            self.books.notes_mut().note_error(name.clone(), error.clone());
            draft.errors.insert(name.clone(), error);
        }
    }
}
