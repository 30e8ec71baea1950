//! What others may ask about one type on one client stream.
//!
//! Owns what of the client's names is unknown, where they stand, and how much is kept for it. Changes only what the client sees of the
//! wildcard (`look_up`). Does not know what follows for other types.

use std::sync::Arc;

use super::Subscription;
use super::lens::Lens;
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use xds::{Answers, Cut, Dialect, Name, Objection, Owners, Sight, Slot, Status, TypeSight, Version};

impl Subscription {
    /// Whether the client was sent this content and needs no other in its place: it has not rejected it, or holds what it had before. A
    /// full state is rejected as a whole: with another content in this place, the client can accept the rest.
    pub(in crate::server) fn keeps(&self, name: &Name, version: Version) -> bool {
        let books = &self.books;
        let stays = self.notes.refused().is_none();
        let mut texts = self.want.texts(name).chain([name]);
        texts.any(|text| {
            let row = books.ledger().get(text);
            let rejected = row.refuses(version) || books.rejections().awaits_version(text, version);
            stays && row.is(version) || rejected && books.rejections().keeps(text)
        })
    }

    /// Returns what is known of the type, as this client sees it.
    pub(in crate::server) fn type_sight<'a>(&'a self, sight: &'a Sight) -> TypeSight<'a> {
        sight.type_sight(self.reader.type_url()).seen_by(self.reader.viewer())
    }

    /// Finds out what this client sees of the wildcard's state. To be called before anything is composed from it.
    pub(in crate::server) fn look_up(&mut self, sight: &Sight, answers: &impl Answers) {
        if self.want.wildcard() {
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

    pub(super) fn lens<'s, 'a>(&'s self, slot: TypeSight<'a>) -> Lens<'s, 'a> {
        Lens::new(&self.reader, &self.want, (&self.books, &self.turn), slot)
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
        let asked = usize::from(self.want.wildcard()) + self.books.ledger().asked_len();
        self.lens(self.type_sight(sight)).missing().count() < asked
    }

    /// Returns how much of the stream's limit of names it uses.
    pub(in crate::server) fn count(&self) -> usize {
        if self.want.wildcard() && !self.want.has_collections() {
            return self.books.ledger().asked_len() + self.brought();
        }
        self.books.ledger().len() + self.books.marks().versions()
    }

    /// B-34: returns how many versions are kept that the client brought beside its names, and that no other client has.
    pub(in crate::server) fn brought(&self) -> usize {
        let marks = self.books.marks();
        let unasked = || self.books.ledger().len() - self.books.ledger().asked_len();
        let rows = match marks.version_rows() {
            0 => 0,
            rows => rows.min(unasked()),
        };
        marks.versions() + rows
    }

    /// K-21: returns how many entries are kept for the client.
    pub(in crate::server) fn kept(&self) -> usize {
        let lists = self.books.agenda().len() + self.books.rejections().len() + self.books.marks().len();
        self.books.flights().entries() + self.books.ledger().len() + lists
    }

    /// Whether the client asks for any collection.
    pub(in crate::server) fn has_collections(&self) -> bool {
        self.want.has_collections()
    }

    /// Whether members of a collection are still to be listed.
    pub(in crate::server) fn gathers(&self) -> bool {
        self.books.agenda().gathers()
    }

    /// Returns how many names a collection brings that the client was not sent.
    pub(in crate::server) fn arrivals(&self) -> usize {
        if !self.want.has_collections() {
            return 0;
        }
        let new = |name: &&Name| self.books.ledger().own(name.as_str()).is_none() && self.want.covering(name).is_some();
        self.books.agenda().names().filter(new).count()
    }

    /// Whether names are left that this turn does not look at.
    pub(in crate::server) fn is_short(&self) -> bool {
        self.turn.is_spent() || self.books.agenda().is_late()
    }

    /// Returns how many names wait for an answer.
    pub(in crate::server) fn waiting(&self) -> usize {
        self.books.agenda().len()
    }

    /// Whether the client asks for each resource by its name.
    pub(in crate::server) fn asks_by_name(&self) -> bool {
        !self.want.wildcard() && !self.want.has_collections()
    }

    pub(in crate::server) fn wants_nothing(&self) -> bool {
        !self.want.wildcard() && !self.books.ledger().asks_any()
    }

    pub(in crate::server) fn status(&self) -> Status {
        if !self.books.rejections().is_empty() || self.notes.refused().is_some() {
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
        matches!(
            self.books.ledger().get(name),
            Row::Sent(_) | Row::Brought(_) | Row::Refused(..)
        )
    }

    /// Returns whether the client has accepted or rejected every response.
    pub(in crate::server) const fn settled(&self) -> bool {
        self.books.flights().is_empty()
    }

    pub(in crate::server) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.books.flights().iter()
    }

    /// Returns why the client rejects what it rejects now.
    pub(in crate::server) fn objections(&self) -> impl Iterator<Item = &Arc<Objection>> {
        self.notes
            .refused()
            .into_iter()
            .chain(self.books.rejections().objections())
    }
}
