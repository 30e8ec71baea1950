// SPDX-License-Identifier: Apache-2.0
//! Writes what is due into a response, and sends it.
//!
//! Owns that exactly what was written counts as sent. Does not choose the names, and does not know what there is room for.

use std::sync::Arc;

use super::draft::{Content, Draft};
use super::lens::Say;
use super::{Attempt, Composed, Subscription};
use crate::server::flights::Flight;
use crate::server::response::Response;
use xds::{Answers, Dialect, Form, Item, Name, Resource, TypeSight};

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
            Say::Older => {
                let older = self.books.rejections().older(name).cloned();
                older.is_none_or(|older| self.write_resource(name, &older, draft, attempt))
            }
            Say::Other(resource) => {
                let own = resource.name();
                let written = draft.brings(own) || self.write_resource(own, resource, draft, attempt);
                if written {
                    self.books.answered(name);
                }
                written
            }
            Say::Beat(resource) => self.write_beat(name, resource, draft, attempt),
            // A full state names nothing that is gone.
            Say::Remove => self.write_gone(name, false, self.reader.full_state(), draft, attempt.slot),
            Say::Missing => self.write_gone(name, true, self.reader.full_state(), draft, attempt.slot),
            Say::Error => {
                let fits = draft.takes_name(name);
                if fits {
                    self.write_error(name, draft, attempt.slot);
                }
                fits
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
        if fits && self.reader.full_state() && !missing {
            draft.note_held(name, self.books.ledger().get(name));
        }
        if fits {
            self.books.gone(name);
            self.write_error(name, draft, slot);
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
        if !draft.count(self.kind(), resource, row.sent()) {
            return false;
        }
        // K-37: nobody goes on using older endpoints.
        if row.perhaps() && !self.kind().is_endpoints() {
            draft.note_held(name, row);
        }
        draft.put(name, self.reader.item(name, resource, attempt.slot, attempt.now));
        draft.follow(name, !self.books.ledger().asks(name));
        let beat = self.reader.reads_ttl().then(|| attempt.slot.beat(resource)).flatten();
        self.books.sent(name, resource, beat);
        self.answer_collection(name);
        true
    }

    /// C-22: the first member that is sent of a collection answers it.
    fn answer_collection(&mut self, member: &Name) {
        if let Some(all) = self.want.covering(member) {
            let open: Vec<Name> = self.open_texts(&all).cloned().collect();
            open.iter().for_each(|text| self.books.answered(text));
        }
    }

    /// K-17: C-21: a virtual host is sent again whole. E-11: if the resource has no time to live any more, only the resource itself can
    /// say so.
    fn write_beat(
        &mut self,
        name: &Name,
        resource: &Arc<Resource>,
        draft: &mut Draft,
        attempt: &Attempt<'_, impl Answers>,
    ) -> bool {
        if !draft.takes(resource.weight()) {
            return false;
        }
        let beat = attempt.slot.beat(resource);
        let heartbeat = beat.is_some() && !self.kind().is_void_without_body();
        let item = self.reader.item(name, resource, attempt.slot, attempt.now);
        let form = match self.reader.dialect() {
            Dialect::Delta if heartbeat => Form::Heartbeat,
            Dialect::Delta => Form::Repeated,
            Dialect::Sotw => item.form,
        };
        draft.put(name, Item { form, ..item });
        self.books.beat(resource, beat);
        true
    }

    /// B-31: adds the error of a name, unless the client was sent it.
    fn write_error(&mut self, name: &Name, draft: &mut Draft, slot: TypeSight<'_>) {
        if let Some(error) = self.lens(slot).due_error(name) {
            self.books.told(name, error.clone());
            draft.fail(name, error);
        }
    }

    /// Sends a response. K-13: a client that has rejected a full state may have none of the changes in it, so it waits for the endpoints of
    /// all clusters.
    pub(super) fn send(&mut self, content: Content, attempt: &mut Attempt<'_, impl Answers>) -> Composed {
        let (batch, since, mut endpoints) = (content.batch, content.since, content.endpoints);
        if self.reader.full_state() && !self.books.rejections().is_empty() {
            let all = batch.items().iter().filter_map(|item| item.resource.endpoints());
            endpoints = all.cloned().collect();
        }
        if content.answers {
            self.want.set_hello(false);
        }
        let nonce = attempt.nonces.next();
        let asked = self.asked.last();
        self.asked.answered(attempt.now);
        let flight = Flight {
            nonce,
            batch: batch.clone(),
            before: content.before,
            since,
            news: since.is_some_and(|since| self.asked.is_news(since)),
            sent: attempt.now,
        };
        self.books.send(flight, content.tried);
        let response = Response {
            type_url: self.reader.type_url().clone(),
            dialect: self.reader.dialect(),
            nonce: attempt.nonces.text(nonce, content.more),
            version: batch.sum(),
            batch,
            since: since.map(|since| since.max(asked)),
        };
        (response, endpoints)
    }
}
