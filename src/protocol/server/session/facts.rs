// SPDX-License-Identifier: Apache-2.0
//! What others may ask about one type on one client stream.
//!
//! Owns what of the client's names is unknown, where they stand, and how much is kept for it. Changes only what the client sees of the
//! wildcard (`look_up`). Does not know what follows for other types.

use std::sync::Arc;
use std::time::Instant;

use super::Subscription;
use super::lens::Lens;
use crate::server::ledger::Row;
use crate::server::response::Told;
use xds::{Answers, Cut, Dialect, Known, Name, Owners, Resource, Sight, Slot, Status, TypeSight};

impl Subscription {
    /// Returns what is known of the type, as this client sees it.
    pub(in crate::server) fn type_sight<'a>(&'a self, sight: &'a Sight) -> TypeSight<'a> {
        sight.type_sight(self.reader.type_url()).seen_by(self.reader.viewer())
    }

    /// Finds out what this client sees of the wildcard's state, if it may not see all of it. To be called before anything is composed from
    /// it.
    pub(in crate::server) fn look_up(&mut self, sight: &Sight, answers: &impl Answers) {
        if self.want.wildcard() && self.reader.viewer().rights().is_some() {
            self.reader.look_up(sight, answers);
        }
    }

    /// Does something with what this client sees of the type.
    pub(in crate::server) fn with_sight<R>(
        &mut self,
        sight: &Sight,
        act: impl FnOnce(&mut Self, TypeSight<'_>) -> R,
    ) -> R {
        let (type_url, viewer) = (self.reader.type_url().clone(), self.reader.viewer().clone());
        act(self, sight.type_sight(&type_url).seen_by(&viewer))
    }

    /// Returns what this client should hold.
    pub(in crate::server) fn sees<'a>(&'a self, sight: &'a Sight) -> Lens<'a, 'a> {
        self.lens(self.type_sight(sight))
    }

    pub(super) fn lens<'s, 'a>(&'s self, slot: TypeSight<'a>) -> Lens<'s, 'a> {
        Lens::new(self, slot)
    }

    /// Returns whether a view knows nothing of something that is wanted of an owner.
    pub(in crate::server) fn lacks(&self, owner: Option<&str>, owners: &Owners, cut: &Cut) -> bool {
        let slot = cut.slot(self.reader.type_url());
        let whole = slot.is_some_and(|slot| slot.wildcard.as_ref().is_some_and(|state| state.complete()));
        let unknown = |slot: &Slot, name: &Name| {
            let members = name.is_collection() && slot.named.members(name).next().is_some();
            !members && slot.known(name).is_none()
        };
        self.asked_of(owner, owners).any(|asked| match asked {
            None => !whole,
            Some(name) => slot.is_none_or(|slot| unknown(slot, name)),
        })
    }

    /// Returns something that was requested, is unknown, and will not be known soon, as far as its server shows; `None` inside
    /// stands for the wildcard. With `others`, the end of the stream would be the end of others' types, as it is for a relay.
    pub(in crate::server) fn hopeless<'a>(&'a self, sight: &'a Sight, others: bool) -> Option<Option<&'a Name>> {
        let slot = self.type_sight(sight);
        // L-14: a reachable server may still say that a name does not exist. SotW clients would not wait for that.
        let sotw = self.reader.dialect() == Dialect::Sotw;
        // E-09: where the server has said why it does not answer, no answer will come.
        let refused = || !others && slot.refusal().is_some();
        let fails = |name: Option<&Name>| name.map_or_else(refused, |name| slot.error(name).is_some());
        self.missing_of(sight, |slot, name| {
            !slot.reachable(name) || sotw && !slot.answered(name) || fails(name)
        })
    }

    /// Returns something that was requested, is unknown, and for which `counts` is true; `None` inside stands for the wildcard.
    pub(in crate::server) fn missing_of<'a>(
        &'a self,
        sight: &'a Sight,
        counts: impl Fn(TypeSight<'a>, Option<&Name>) -> bool,
    ) -> Option<Option<&'a Name>> {
        let slot = self.type_sight(sight);
        self.lens(slot).missing().find(|name| counts(slot, *name))
    }

    /// Whether anything is known of what was requested.
    pub(in crate::server) fn knows_any(&self, sight: &Sight) -> bool {
        let asked = usize::from(self.want.wildcard()) + self.books.ledger().own().asked_len();
        self.sees(sight).missing().count() < asked
    }

    /// Returns since when the client may wait for something that it has asked for and nobody has answered. That it was told of a name in
    /// the end that it does not exist is no answer of the server.
    pub(in crate::server) fn waits_since(&self, slot: TypeSight<'_>) -> Option<Instant> {
        let waits = self.books.ledger().own().waiting() > 0 || self.want.wildcard() && !slot.is_complete();
        (waits || self.asks_silent(slot)).then(|| self.asked.since())
    }

    /// Whether the client asks for a name for which the server did not answer in time.
    fn asks_silent(&self, slot: TypeSight<'_>) -> bool {
        // Nearly always the server was silent for none.
        slot.any_silent() && self.books.ledger().asked().any(|name| slot.is_silent(name))
    }

    /// Returns how much of the stream's limit of names it uses.
    pub(in crate::server) fn count(&self) -> usize {
        if self.want.wildcard() && !self.want.has_collections() {
            return self.books.ledger().own().asked_len() + self.brought();
        }
        self.books.ledger().own().len() + self.books.marks().versions()
    }

    /// B-34: returns how many versions are kept that the client brought beside its names, and that no other client has.
    pub(in crate::server) fn brought(&self) -> usize {
        self.books.marks().versions() + self.books.ledger().own().brought()
    }

    /// K-21: returns how many entries are kept for the client.
    pub(in crate::server) fn kept(&self) -> usize {
        let lists = self.books.agenda().len() + self.books.rejections().len() + self.books.marks().len();
        self.books.flights().entries() + self.books.ledger().own().len() + lists
    }

    /// Whether the client asks for any collection.
    pub(in crate::server) fn has_collections(&self) -> bool {
        self.want.has_collections()
    }

    /// Returns how many names a collection brings that the client was not sent.
    pub(in crate::server) fn arrivals(&self) -> usize {
        if !self.want.has_collections() {
            return 0;
        }
        let new =
            |name: &&Name| self.books.ledger().own().get(name.as_str()).is_none() && self.want.covering(name).is_some();
        self.books.agenda().names().filter(new).count()
    }

    /// Whether names are left that this turn does not look at.
    pub(in crate::server) fn is_short(&self) -> bool {
        self.turn.is_spent() || self.books.agenda().is_late()
    }

    /// Whether the client asks for each resource by its name.
    pub(in crate::server) fn asks_by_name(&self) -> bool {
        !self.want.wildcard() && !self.want.has_collections()
    }

    pub(in crate::server) fn wants_nothing(&self) -> bool {
        !self.want.wildcard() && !self.books.ledger().own().asks_any()
    }

    pub(in crate::server) fn status(&self) -> Status {
        if !self.books.rejections().is_empty() {
            Status::Error
        } else if !self.books.flights().is_empty() {
            Status::Stale
        } else if self.books.flights().sent().is_some() {
            Status::Synced
        } else {
            Status::NotSent
        }
    }

    /// Returns whether the client may hold a name, and does not wait for an answer.
    pub(in crate::server) fn has(&self, name: &Name) -> bool {
        let held_back = || self.books.rejections().is_held_back(name);
        matches!(self.books.ledger().get(name), Row::Sent(_) | Row::Brought(_)) || held_back()
    }

    /// K-37: whether the client is still tried with anything that it has rejected, or with older content in its place.
    pub(in crate::server) fn is_trying(&self) -> bool {
        self.books.rejections().is_trying() || self.books.rejections().tries()
    }

    /// Whether the client asks for a name in any spelling.
    pub(in crate::server) fn asks_for(&self, name: &Name) -> bool {
        self.want.wildcard() || self.want.texts(name).any(|text| self.books.ledger().asks(text))
    }

    /// Whether the client has accepted or rejected a resource, or it is known that there is none.
    pub(in crate::server) fn is_over(&self, name: &Name, sight: &Sight) -> bool {
        let absent = || matches!(self.type_sight(sight).known(name), Some(Known::Absent(_)));
        let accepted = |text: &Name| self.has(text) && !self.books.flights().has(text);
        self.want.texts(name).any(accepted) || absent()
    }

    /// K-37: what stood in the way of rejected resources may be gone: they are tried once more, as often as this is called.
    pub(in crate::server) fn try_rejected(&mut self) {
        if self.books.rejections().held_back().next().is_some() {
            self.books.try_again(true);
        }
    }

    /// K-37: what the client uses belongs to another class of clients.
    pub(in crate::server) fn forget_older(&mut self) {
        self.books.rejections_mut().forget_holds();
    }

    /// Returns what the view must be told of what the client rejects: by the name as servers know it.
    pub(in crate::server) fn poll_stance(&mut self) -> Option<Told> {
        let (name, stance, asks) = self.books.rejections_mut().poll_news()?;
        Some(Told {
            type_url: self.type_url().clone(),
            name: name.map(|name| self.want.meaning(&name).clone()),
            stance,
            asks: asks && self.reader.software().is_some(),
        })
    }

    /// Older contents are there that may be sent in the place of what the client rejects of a name.
    pub(in crate::server) fn offer_older(&mut self, name: &Name, contents: &[Arc<Resource>]) {
        let texts: Vec<Name> = self.want.texts(name).cloned().collect();
        for text in texts {
            self.books.rejections_mut().offer(&text, contents.to_vec());
        }
    }
}
