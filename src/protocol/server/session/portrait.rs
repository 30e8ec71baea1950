// SPDX-License-Identifier: Apache-2.0
//! What a stream looks like to an operator who asks.
//!
//! Owns where each resource stands at the client. Changes nothing, and keeps nothing while nobody asks.

use std::sync::Arc;
use std::time::Instant;

use super::Subscription;
use crate::server::ledger::{Entry, Row};
use xds::{Known, Name, Objection, Reason, Resource, Standing, Status, TypeSight, TypeUrl, Version};

/// One type of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Portrait<'a> {
    subscription: &'a Subscription,
    slot: TypeSight<'a>,
}

/// One resource of a type, at the client.
#[derive(Clone, Debug)]
pub struct HeldResource<'a> {
    /// The name by which the client asked for it, or its own if the wildcard covers it.
    pub name: &'a Name,
    /// What the server says now, if it has content.
    pub resource: Option<&'a Arc<Resource>>,
    /// Where it stands.
    pub standing: Standing,
    /// Why the client has rejected it.
    pub objection: Option<&'a Objection>,
    /// Since when it rejects what the server says now.
    pub since: Option<Instant>,
    /// What it was sent in its place.
    pub older: Option<Version>,
}

impl<'a> Portrait<'a> {
    pub(in crate::server) const fn new(subscription: &'a Subscription, slot: TypeSight<'a>) -> Self {
        Self { subscription, slot }
    }

    /// The type.
    #[must_use]
    pub const fn type_url(self) -> &'a TypeUrl {
        self.subscription.type_url()
    }

    /// The status of the type as a whole.
    #[must_use]
    pub fn status(self) -> Status {
        let status = self.subscription.status();
        if status == Status::NotSent && self.has_brought_all() {
            return Status::Synced;
        }
        status
    }

    /// C-12: whether the client has brought along all that is current, so that there was nothing to send. Costs the same whatever it holds.
    fn has_brought_all(self) -> bool {
        let ledger = self.subscription.books.ledger();
        ledger.own().waiting() == 0 && ledger.held().next().is_some() && self.subscription.is_sated()
    }

    /// Whether the client asks for everything.
    #[must_use]
    pub const fn wildcard(self) -> bool {
        self.subscription.want.wildcard()
    }

    /// Returns how many names the client asks for.
    #[must_use]
    pub fn names(self) -> usize {
        self.subscription.books.ledger().own().asked_len()
    }

    /// Returns when the last response was sent.
    #[must_use]
    pub const fn sent(self) -> Option<Instant> {
        self.subscription.books.flights().sent()
    }

    /// Returns since when the client owes an answer to a response.
    #[must_use]
    pub fn unanswered_since(self) -> Option<Instant> {
        self.subscription.books.flights().iter().map(|flight| flight.sent).min()
    }

    /// Returns since when the client may wait for something that it has asked for and nobody has answered.
    #[must_use]
    pub fn waiting_since(self) -> Option<Instant> {
        self.subscription.waits_since(self.slot)
    }

    /// Returns why the client rejects what it has rejected and not accepted since.
    pub fn objections(self) -> impl Iterator<Item = &'a Arc<Objection>> {
        self.subscription.books.rejections().objections()
    }

    /// Returns each resource that the client asks for, by name and by the wildcard.
    pub fn stands(self) -> impl Iterator<Item = HeldResource<'a>> {
        let Self { subscription, slot } = self;
        let named = subscription
            .books
            .ledger()
            .own()
            .from("")
            .filter(|entry| entry.is_asked() || entry.name().is_new_style());
        let known = move |name: &Name| subscription.lens(slot).known(name);
        let named = named.map(move |entry: Entry<'a>| self.stand_with(entry.name(), &entry.row(), known(entry.name())));
        let state = slot.wildcard().filter(|_| subscription.want.wildcard());
        let covered = state.into_iter().flat_map(|state| state.resources());
        let covered = covered.filter(|resource| !subscription.books.ledger().asks(resource.name()));
        let covered = covered.map(move |resource| {
            let row = subscription.books.ledger().get(resource.name());
            self.stand_of(resource.name(), resource, &row)
        });
        named.chain(covered)
    }

    /// Returns the resource of this name, if the client asks for it.
    #[must_use]
    pub fn stand(self, name: &'a Name) -> Option<HeldResource<'a>> {
        let Self { subscription, slot } = self;
        let row = subscription.books.ledger().get(name);
        if subscription.books.ledger().asks(name) || name.is_new_style() && row.perhaps() {
            return Some(self.stand_with(name, &row, subscription.lens(slot).known(name)));
        }
        let state = slot.wildcard().filter(|_| subscription.want.wildcard())?;
        let known = state.known(name);
        (known.is_some() || row.perhaps()).then(|| self.stand_with(name, &row, known))
    }

    /// Returns each resource whose current content the client has rejected.
    pub fn rejections(self) -> impl Iterator<Item = HeldResource<'a>> {
        let held_back = self.subscription.books.rejections().held_back();
        let all = held_back.filter_map(move |name| self.stand(name));
        all.filter(|stand| stand.standing.rejects())
    }

    /// Whether everything is known that the client asks for by its wildcard, and every response is answered.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        let Self { subscription, slot } = self;
        (!subscription.want.wildcard() || slot.is_complete()) && subscription.books.flights().is_empty()
    }

    fn stand_with(self, name: &'a Name, row: &Row, known: Option<&'a Known>) -> HeldResource<'a> {
        let standing = match known {
            Some(Known::Present(resource)) => return self.stand_of(name, resource, row),
            None | Some(Known::Held(_)) => Standing::Unknown,
            Some(Known::Absent(Reason::TimedOut)) => Standing::TimedOut,
            Some(Known::Absent(_)) if row.perhaps() => Standing::Leaving,
            Some(Known::Absent(_)) => Standing::Missing,
        };
        HeldResource {
            name,
            resource: None,
            standing,
            objection: None,
            since: None,
            older: None,
        }
    }

    fn stand_of(self, name: &'a Name, resource: &'a Arc<Resource>, row: &Row) -> HeldResource<'a> {
        let subscription = self.subscription;
        let version = resource.version();
        // C-20: the client asks for it by another name, and holds it by its own.
        let own = if resource.name() == name {
            row.clone()
        } else {
            subscription.books.ledger().get(resource.name())
        };
        let row = if row.perhaps() { row } else { &own };
        let rejections = subscription.books.rejections();
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
        } else if subscription.books.flights().brings_news(resource) {
            Standing::Sent
        } else {
            Standing::Accepted
        };
        HeldResource {
            name,
            resource: Some(resource),
            standing,
            objection: rejects.and_then(|_| rejections.objection(name)).map(|why| &**why),
            since: rejects.map(|dispute| dispute.since()),
            older: older.map(|older| older.version()),
        }
    }
}
