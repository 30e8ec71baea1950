// SPDX-License-Identifier: Apache-2.0
//! What a stream looks like to an operator who asks.
//!
//! Owns where each resource stands at the client. Changes nothing, and keeps nothing while nobody asks.

use std::sync::Arc;

use super::Subscription;
use crate::server::ledger::{Entry, Row};
use xds::{ClientResource, ClientType, Depth, Known, Name, Reason, Resource, Standing, Status, TypeSight};

/// So many resources are told that the client rejects, where each type is a line.
const REJECTED_MAX: usize = 64;

impl Subscription {
    /// Returns what is told of the type: all but what only the stream knows.
    pub(in crate::server) fn portray(&self, slot: TypeSight<'_>, depth: &Depth) -> ClientType {
        let resources: Vec<ClientResource> = match depth {
            Depth::Types => Vec::new(),
            Depth::Resources => self.stands(slot).collect(),
            Depth::Resource(_, name) => self.stand(name, slot).into_iter().collect(),
        };
        let status = self.status();
        let brought = status == Status::NotSent && self.has_brought_all();
        let known = !self.want.wildcard() || slot.is_complete();
        let settled = || resources.iter().all(|resource| resource.standing.is_settled());
        let held_back = self.books.rejections().held_back();
        let rejected = held_back.filter_map(|name| self.stand(name, slot));
        let rejected = rejected.filter(|resource| resource.standing.rejects());
        ClientType {
            type_url: self.type_url().clone(),
            status: if brought { Status::Synced } else { status },
            wildcard: self.want.wildcard(),
            names: self.books.ledger().own().asked_len(),
            sent: self.flights().sent(),
            accepted: None,
            unanswered_since: self.flights().iter().map(|flight| flight.sent).min(),
            waiting_since: self.waits_since(slot),
            server: None,
            objections: self.books.rejections().objections().cloned().collect(),
            rejected: rejected.take(REJECTED_MAX).collect(),
            ready: (*depth == Depth::Resources).then(|| known && self.flights().is_empty() && settled()),
            resources,
        }
    }

    /// C-12: whether the client has brought along all that is current, so that there was nothing to send. Costs the same whatever it holds.
    fn has_brought_all(&self) -> bool {
        let ledger = self.books.ledger();
        ledger.own().waiting() == 0 && ledger.held().next().is_some() && self.is_sated()
    }

    /// Returns each resource that the client asks for, by name and by the wildcard.
    fn stands<'a>(&'a self, slot: TypeSight<'a>) -> impl Iterator<Item = ClientResource> + 'a {
        let ledger = self.books.ledger();
        let named = ledger.own().from("");
        let named = named.filter(|entry| entry.is_asked() || entry.name().is_new_style());
        let state = slot.wildcard().filter(|_| self.want.wildcard());
        let covered = state.into_iter().flat_map(|state| state.resources());
        let covered = covered
            .map(|resource| resource.name())
            .filter(|name| !ledger.asks(name));
        let names = named.map(Entry::name).chain(covered);
        names.filter_map(move |name| self.stand(name, slot))
    }

    /// Returns the resource of this name, if the client asks for it.
    fn stand(&self, name: &Name, slot: TypeSight<'_>) -> Option<ClientResource> {
        let row = self.books.ledger().get(name);
        if self.books.ledger().asks(name) || name.is_new_style() && row.perhaps() {
            return Some(self.stand_with(name, &row, self.lens(slot).known(name)));
        }
        let known = slot.wildcard().filter(|_| self.want.wildcard())?.known(name);
        (known.is_some() || row.perhaps()).then(|| self.stand_with(name, &row, known))
    }

    fn stand_with(&self, name: &Name, row: &Row, known: Option<&Known>) -> ClientResource {
        let standing = match known {
            Some(Known::Present(resource)) => return self.stand_of(name, resource, row),
            None | Some(Known::Held(_)) => Standing::Unknown,
            Some(Known::Absent(Reason::TimedOut)) => Standing::TimedOut,
            Some(Known::Absent(_)) if row.perhaps() => Standing::Leaving,
            Some(Known::Absent(_)) => Standing::Missing,
        };
        ClientResource {
            name: name.clone(),
            resource: None,
            standing,
            objection: None,
            since: None,
            older: None,
        }
    }

    fn stand_of(&self, name: &Name, resource: &Arc<Resource>, row: &Row) -> ClientResource {
        let version = resource.version();
        // C-20: the client asks for it by another name, and holds it by its own.
        let own = if resource.name() == name {
            row.clone()
        } else {
            self.books.ledger().get(resource.name())
        };
        let row = if row.perhaps() { row } else { &own };
        let rejections = self.books.rejections();
        let dispute = rejections.dispute(name);
        let rejects = dispute.filter(|dispute| dispute.is_open() && dispute.version() == version);
        let older = rejects.and_then(|dispute| Some(dispute.holds()).filter(|holds| holds.is_older())?.content());
        let standing = if older.is_some() {
            Standing::Older
        } else if rejects.is_some() {
            Standing::Rejected
        } else if !row.is(version) && row.perhaps() {
            Standing::Outdated
        } else if !row.is(version) {
            Standing::NotSent
        } else if self.flights().brings_news(resource) {
            Standing::Sent
        } else {
            Standing::Accepted
        };
        ClientResource {
            name: name.clone(),
            resource: Some(resource.clone()),
            standing,
            objection: rejects
                .and_then(|_| rejections.objection(name))
                .map(|why| (**why).clone()),
            since: rejects.map(|dispute| dispute.since()),
            older: older.map(|older| older.version()),
        }
    }
}
