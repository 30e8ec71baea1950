//! What others may ask about one type on one client stream.
//!
//! Owns what the client wants of which authority, and what of it is unknown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Subscription;
use super::lens::{Lens, Say};
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use crate::server::notes::Again;
use xds::{Answers, Cut, Dialect, Name, Objection, Owners, Sight, Slot, Status, Target, TypeSight, TypeUrl, Version};

impl Subscription {
    pub(in crate::server) const fn type_url(&self) -> &TypeUrl {
        self.reader.type_url()
    }

    /// Whether the client was sent this content and needs no other in its place: it has not rejected it, or holds what it had before. A
    /// full state is rejected as a whole: with another content in this place, the client can accept the rest.
    pub(in crate::server) fn keeps(&self, name: &Name, version: Version) -> bool {
        let books = &self.books;
        let stays = books.notes().refused().is_none();
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

    /// Whether a removal is due, as far as names were looked at.
    pub(in crate::server) fn loses(&self, sight: &Sight, answers: &impl Answers) -> bool {
        let (slot, agenda) = (self.type_sight(sight), self.books.agenda());
        let lens = self.lens(slot);
        let mut listed = agenda.gone().chain(agenda.names());
        let difference = self.difference(slot, answers);
        let removes = difference.is_some_and(|difference| difference.removes());
        removes || listed.any(|name| matches!(lens.say(name), Some(Say::Remove)))
    }

    pub(super) fn lens<'s, 'a>(&'s self, slot: TypeSight<'a>) -> Lens<'s, 'a> {
        Lens::new(&self.reader, &self.want, (&self.books, &self.turn), slot)
    }

    /// Returns what servers are asked for: each name, and how the client wrote it; `None` stands for the wildcard.
    fn served(&self) -> impl Iterator<Item = Option<(&Name, &Name)>> {
        let names = self.books.ledger().asked().map(|text| (self.want.meaning(text), text));
        let names = names.filter(|(name, _)| self.reader.is_served(name)).map(Some);
        let any = !self.reader.has_nothing();
        let all = self.want.wildcard().then_some(None);
        all.into_iter().chain(names).filter(move |_| any)
    }

    fn target(asked: Option<(&Name, &Name)>) -> (Target, Option<Name>) {
        asked.map_or((Target::Wildcard, None), |(name, text)| {
            (Target::Name(name.clone()), name.written(text.as_str()))
        })
    }

    /// Returns all targets that servers are asked for, each as the client wrote it.
    pub(super) fn requests(&self) -> BTreeSet<(Target, Option<Name>)> {
        self.served().map(Self::target).collect()
    }

    /// Returns everything that is wanted, for whose name (`None`: the wildcard) `counts` is true.
    pub(in crate::server) fn wants_if(
        &self,
        counts: impl Fn(&TypeUrl, Option<&Name>) -> bool,
    ) -> impl Iterator<Item = xds::Want> {
        let counted = self
            .served()
            .filter(move |asked| counts(self.type_url(), asked.map(|(name, _)| name)));
        let targets = counted.map(Self::target);
        targets.map(move |(target, written)| self.said(target, written, true))
    }

    /// Returns what is asked of the servers of an owner; `None` inside stands for the wildcard.
    pub(in crate::server) fn asked_of<'a>(
        &'a self,
        owner: Option<&'a str>,
        owners: &'a Owners,
    ) -> impl Iterator<Item = Option<&'a Name>> + 'a {
        let names = self.served().map(|asked| asked.map(|(name, _)| name));
        names.filter(move |name| owners.of(self.type_url(), *name) == owner)
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
    /// stands for the wildcard.
    pub(in crate::server) fn hopeless<'a>(&'a self, sight: &'a Sight) -> Option<Option<&'a Name>> {
        let slot = self.type_sight(sight);
        // L-14: a reachable server may still say that a name does not exist. SotW clients would not wait for that.
        let sotw = self.reader.dialect() == Dialect::Sotw;
        // E-09: where the server has said why it does not answer, no answer will come.
        // Another relay is told nothing of a wildcard: the end of its stream would be the end of other types.
        let refused = || !self.reader.reads_errors() && slot.refusal().is_some();
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
        self.books.ledger().len() + self.books.notes().versions()
    }

    /// B-34: returns how many versions are kept that the client brought beside its names, and that no other client has.
    pub(in crate::server) fn brought(&self) -> usize {
        let notes = self.books.notes();
        let unasked = || self.books.ledger().len() - self.books.ledger().asked_len();
        let rows = match notes.version_rows() {
            0 => 0,
            rows => rows.min(unasked()),
        };
        notes.versions() + rows
    }

    /// K-21: returns how many entries are kept for the client.
    pub(in crate::server) fn kept(&self) -> usize {
        let lists = self.books.agenda().len() + self.books.rejections().len() + self.books.notes().len();
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
        if !self.books.rejections().is_empty() || self.books.notes().refused().is_some() {
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
        self.books
            .notes()
            .refused()
            .into_iter()
            .chain(self.books.rejections().objections())
    }

    /// Returns since when the client may wait for something that it has asked for and nobody has answered. That it was told of a name in
    /// the end that it does not exist is no answer of the server.
    pub(in crate::server) fn waits_since(&self, slot: TypeSight<'_>) -> Option<Instant> {
        let waits = self.books.ledger().waiting() > 0 || self.want.wildcard() && !slot.is_complete();
        (waits || self.asks_silent(slot)).then(|| self.asked.since())
    }

    /// Whether the client asks for a name for which the server did not answer in time.
    fn asks_silent(&self, slot: TypeSight<'_>) -> bool {
        let silent: usize = slot.silent().map(|names| names.len()).sum();
        if silent <= self.books.ledger().asked_len() {
            let mut names = slot.silent().flatten();
            return names.any(|name| self.books.ledger().asks(name) && slot.is_silent(name));
        }
        let mut asked = self.books.ledger().rows("").filter(|entry| entry.is_asked());
        asked.any(|entry| slot.is_silent(entry.name()))
    }

    pub(in crate::server) const fn asked_at(&self) -> Instant {
        self.asked.last()
    }

    pub(in crate::server) const fn asked_since(&self) -> Instant {
        self.asked.since()
    }

    /// Returns when the client has waited for this long, or a full state is tried once more.
    pub(in crate::server) fn poll_timeout(&self, bound: Duration) -> Option<Instant> {
        let again = match self.books.notes().again() {
            Some(Again::At(at, _)) => Some(*at),
            Some(Again::Due(_) | Again::Tried(_)) | None => None,
        };
        let held = self.books.notes().endpoints_wait_until();
        self.asked.ends(bound).into_iter().chain(again).chain(held).min()
    }

    /// Takes note of the time. Returns whether the wait for an answer has just ended.
    pub(in crate::server) fn handle_timeout(&mut self, bound: Duration, now: Instant) -> bool {
        self.ripen_second_try(now);
        if self
            .books
            .notes()
            .endpoints_wait_until()
            .is_some_and(|until| until <= now)
        {
            self.books.notes_mut().note_endpoints(None);
        }
        self.asked.waive(bound, now)
    }
}
