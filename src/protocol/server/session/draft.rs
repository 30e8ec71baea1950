//! The content of one response of a partial answer.
//!
//! Owns what is in it, and that exactly this counts as sent. Does not choose the names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::verdict::Say;
use super::{Attempt, Draft, Subscription};
use crate::server::ledger::Row;
use xds::{Answers, Dialect, Errors, Form, GONE_MAX, Item, Kind, Name, Resource, Room, TypeSight};

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
            endpoints: Vec::new(),
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
                    self.ledger.put(name, Row::Nothing);
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
            Say::Remove | Say::Missing => {
                let full = self.reader.full_state();
                let fits = full || draft.removed.len() < GONE_MAX && draft.room.takes_name(name);
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
        if !draft.room.takes(resource.weight()) {
            return false;
        }
        let row = self.ledger.get(name);
        if !row.was_sent(resource.version()) {
            draft.since = draft.since.into_iter().chain([resource.received()]).min();
        }
        if let Some(accepted) = row.whole().filter(|_| self.reader.lists_all()) {
            self.rare.note(|rare| {
                rare.accepted.entry(name.clone()).or_insert_with(|| accepted.clone());
            });
        }
        let item = self.reader.item(name, resource, attempt.slot, attempt.now);
        draft.covers |= !self.ledger.asks(name);
        draft.endpoints.extend(resource.endpoints().cloned());
        draft.items.insert(name.clone(), item);
        draft.last = Some(name.clone());
        self.ledger.put(name, Row::Sent(resource.clone()));
        for collection in self.open_collections(name) {
            self.ledger.put(&collection, Row::Nothing);
        }
        self.rejections.forget(name);
        self.rare.forget(|rare| rare.errors.remove(name));
        if self.reader.reads_ttl() {
            self.note_beat(resource.name(), attempt.slot.beat(resource));
        }
        true
    }

    /// Notes the heartbeat that was passed on; `None`: the resource has no time to live.
    fn note_beat(&mut self, name: &Name, beat: Option<u32>) {
        match beat {
            Some(beat) => drop(self.rare.note(|rare| rare.beats.insert(name.clone(), beat))),
            None => drop(self.rare.forget(|rare| rare.beats.remove(name))),
        }
    }

    /// Notes that the client is told that a name is gone.
    pub(super) fn note_gone(&mut self, name: &Name) {
        self.ledger.put(name, Row::Nothing);
        self.agenda.pass(name);
        self.rejections.forget(name);
        self.note_beat(name, None);
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
        self.note_beat(resource.name(), beat);
    }

    /// B-31: adds the error of a name, unless the client was sent it.
    fn write_error(&mut self, name: &Name, draft: &mut Draft, slot: TypeSight<'_>) {
        if let Some(error) = self.due_error(name, slot) {
            self.rare.note(|rare| rare.errors.insert(name.clone(), error.clone()));
            draft.errors.insert(name.clone(), error);
        }
    }
}
