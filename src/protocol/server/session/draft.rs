//! The content of one response of a partial answer.
//!
//! Owns what is in it, and that exactly this counts as sent. Does not choose the names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::due::Say;
use super::{Attempt, Subscription};
use crate::server::ledger::Row;
use xds::{Answers, Batch, Dialect, Errors, Form, GONE_MAX, Item, Kind, Name, Resource, Room, TypeSight};

/// A response that is being written.
#[derive(Debug)]
pub(super) struct Draft {
    room: Room,
    items: BTreeMap<Name, Item>,
    removed: BTreeSet<Name>,
    /// Those of them of which the client held nothing.
    missing: BTreeSet<Name>,
    errors: Errors,
    since: Option<Instant>,
    /// The last name that was added.
    last: Option<Name>,
    /// Whether any of it was asked for by the wildcard alone.
    covers: bool,
}

impl Draft {
    pub(super) const fn new(room: Room) -> Self {
        Self {
            room,
            items: BTreeMap::new(),
            removed: BTreeSet::new(),
            missing: BTreeSet::new(),
            errors: Errors::new(),
            since: None,
            last: None,
            covers: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }

    /// Whether it brings any resource.
    pub(super) fn adds(&self) -> bool {
        !self.items.is_empty()
    }

    /// Whether it brings only a part of what could be added.
    pub(super) fn has_more(&self) -> bool {
        self.room.is_full() && self.adds()
    }

    pub(super) const fn covers(&self) -> bool {
        self.covers
    }

    /// Returns the name after which the next response begins.
    pub(super) fn cursor(&self) -> Option<Name> {
        self.last.clone().filter(|_| self.room.is_full())
    }

    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn has(&self, name: &Name) -> bool {
        self.items.contains_key(name)
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.items.values().map(|item| &item.resource)
    }

    fn takes(&mut self, resource: &Resource) -> bool {
        self.room.takes(resource.weight())
    }

    fn takes_name(&mut self, name: &Name) -> bool {
        self.removed.len() < GONE_MAX && self.room.takes_name(name)
    }

    /// Adds a name over the limit, which counts as one that does not exist (B-32).
    pub(super) fn put_missing(&mut self, name: Name) {
        self.missing.insert(name.clone());
        self.removed.insert(name);
    }

    /// Adds a resource that the client holds already.
    pub(super) fn repeat(&mut self, name: &Name, item: Item) {
        let form = if item.form == Form::Whole {
            Form::Repeated
        } else {
            item.form
        };
        self.items.insert(name.clone(), Item { form, ..item });
    }

    pub(super) fn into_batch(self, hosts: bool) -> Batch {
        let items = self.items.into_values().collect();
        let batch = Batch::new(items, self.removed.into_iter().collect()).alone();
        batch.with_missing(self.missing, hosts).with_errors(self.errors)
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
                let written = draft.has(own) || self.write_resource(own, resource, draft, attempt);
                if written {
                    self.ledger.put(name, Row::Told);
                }
                written
            }
            Say::Beat(resource) => {
                let fits = draft.takes(resource);
                if fits {
                    self.write_beat(name, resource, draft, attempt);
                }
                fits
            }
            Say::Remove | Say::Missing => {
                let fits = draft.takes_name(name);
                if fits {
                    self.write_error(name, draft, attempt.slot);
                    if matches!(say, Say::Missing) {
                        draft.missing.insert(name.clone());
                    }
                    draft.removed.insert(name.clone());
                    self.note_gone(name);
                }
                fits
            }
            Say::Error => {
                self.write_error(name, draft, attempt.slot);
                true
            }
        }
    }

    fn write_resource(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        draft: &mut Draft,
        attempt: &Attempt<'_, impl Answers>,
    ) -> bool {
        if !draft.takes(resource) {
            return false;
        }
        let row = self.ledger.get(name);
        if !row.was_sent(resource.version()) {
            draft.since = draft.since.into_iter().chain([resource.received()]).min();
        }
        if let Some(accepted) = row.whole().filter(|_| self.reader.lists_all()) {
            self.rare.keep_accepted(name, accepted);
        }
        draft.covers |= !self.ledger.asks(name);
        draft.items.insert(
            name.clone(),
            self.reader.item(name, resource, attempt.slot, attempt.now),
        );
        draft.last = Some(name.clone());
        self.note_sent(name, resource, attempt.slot);
        true
    }

    /// Notes that the client is sent a resource.
    pub(super) fn note_sent(&mut self, name: &Name, resource: &Arc<Resource>, slot: TypeSight<'_>) {
        self.ledger.put(name, Row::Sent(resource.clone()));
        self.rejections.forget(name);
        self.rare.forget_error(name);
        if self.reader.reads_ttl() {
            self.rare.note_beat(resource.name(), slot.beat(resource));
        }
    }

    /// Notes that the client is told that a name is gone.
    pub(super) fn note_gone(&mut self, name: &Name) {
        let row = if self.ledger.asks(name) {
            Row::Told
        } else {
            Row::Nothing
        };
        self.ledger.put(name, row);
        self.agenda.pass(name);
        self.rejections.forget(name);
        self.rare.note_beat(name, None);
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
        self.rare.note_beat(resource.name(), beat);
    }

    /// B-31: adds the error of a name, unless the client was sent it.
    fn write_error(&mut self, name: &Name, draft: &mut Draft, slot: TypeSight<'_>) {
        if let Some(error) = self.due_error(name, slot) {
            self.rare.note_error(name.clone(), error.clone());
            draft.errors.insert(name.clone(), error);
        }
    }
}
