// SPDX-License-Identifier: Apache-2.0
//! What is wanted of one type as a whole: the wildcard, which is the collection of everything, and collections (C-22).
//!
//! Owns who wants the wildcard, and what each still waits for. Knows nothing of the content of members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::completeness::{Completeness, Heard, SettledTypes};
use super::rhythm::Patience;
use xds::{Dialect, Name};

/// The wildcard and the collections. Each is complete under the same conditions.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    wildcard: Wildcard,
    /// The wildcard; without it, the names that are requested by themselves and of which the server was sent the versions.
    all: Completeness,
    collections: BTreeMap<Name, Completeness>,
    /// The collections that still wait for something.
    busy: BTreeSet<Name>,
    /// The collections that the present response mentions, and whether it has news of them.
    mentioned: BTreeMap<Name, bool>,
}

/// Who wants the wildcard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// Nobody, and the server is not asked for it.
    #[default]
    Unwanted,
    Wanted,
    /// Nobody any more, but the server goes on sending it on this stream.
    Hidden,
}

/// How the present response mentions a name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mention {
    /// It has content of a name of which nothing was held.
    pub(super) new: bool,
    /// It has the same version again.
    pub(super) resent: bool,
    /// The name is requested by itself as well.
    pub(super) asked: bool,
    /// It says that there is nothing of this name.
    pub(super) gone: bool,
}

impl Wildcard {
    /// Whether the server is asked for it.
    pub(super) const fn is_asked(self) -> bool {
        matches!(self, Self::Wanted | Self::Hidden)
    }
}

impl Coverage {
    pub(super) const fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    /// The wildcard is wanted. Returns what it was before.
    pub(super) fn want_all(&mut self) -> Wildcard {
        let before = std::mem::replace(&mut self.wildcard, Wildcard::Wanted);
        if before == Wildcard::Unwanted {
            self.all = Completeness::default();
        }
        before
    }

    /// The server goes on sending the wildcard, which nobody wants any more.
    pub(super) const fn hide_all(&mut self) {
        self.wildcard = Wildcard::Hidden;
    }

    /// The wildcard is not asked for any more.
    pub(super) fn drop_all(&mut self) {
        self.wildcard = Wildcard::Unwanted;
        self.all = Completeness::default();
    }

    /// Returns what the wildcard waits for.
    pub(super) const fn all(&self) -> &Completeness {
        &self.all
    }

    /// Returns the same, to say what became of it.
    pub(super) const fn all_mut(&mut self) -> &mut Completeness {
        &mut self.all
    }

    pub(super) fn insert(&mut self, collection: &Name) {
        self.collections.entry(collection.clone()).or_default();
    }

    pub(super) fn remove(&mut self, collection: &Name) {
        self.collections.remove(collection);
        self.busy.remove(collection);
    }

    pub(super) fn collection(&self, text: &str) -> Option<&Name> {
        self.collections.get_key_value(text).map(|(name, _)| name)
    }

    /// Returns the wanted collection that a name belongs to (F-10).
    pub(super) fn covering(&self, name: &str) -> Option<&Name> {
        if self.collections.is_empty() {
            return None;
        }
        self.collection(Name::from(name).collection()?.as_str())
    }

    /// Returns whether every member of the collection, or all that the wildcard covers, is known.
    pub(super) fn whole(&self, name: &Name) -> bool {
        match self.collections.get(name) {
            Some(collection) => collection.complete(),
            None => name.as_str() == Name::WILDCARD && self.all.complete(),
        }
    }

    /// A delta stream begins. `held` returns what is held of a collection or of the wildcard, and for each name whether the server is told
    /// of its version. What is incomplete is requested without versions: then the server sends everything, and the end of its answer can
    /// be seen.
    pub(super) fn connected(&mut self, held: impl Fn(&Name) -> BTreeMap<Name, bool>) {
        let begin = |name: &Name, of: &mut Completeness| {
            let mut held = held(name);
            held.values_mut().for_each(|declared| *declared &= of.complete());
            of.connected(held);
        };
        if self.wildcard.is_asked() {
            begin(&Name::from(Name::WILDCARD), &mut self.all);
        }
        self.collections.iter_mut().for_each(|(name, of)| begin(name, of));
    }

    /// These names are requested by themselves; the server is sent their versions.
    pub(super) fn named(&mut self, held: BTreeSet<Name>) {
        self.all = Completeness::named(held);
    }

    /// Returns whether this member is from before the stream, the server was not sent its version, and has not mentioned it.
    pub(super) fn undeclared(&self, collection: &Name, member: &Name) -> bool {
        let collection = self.collections.get(collection);
        collection.is_some_and(|collection| collection.undeclared(member))
    }

    /// E-04: the server is sent another version of the name than its own.
    pub(super) fn undeclare(&mut self, name: &Name) {
        self.all.undeclare(name);
        let collection = name.collection();
        if let Some(collection) = collection.and_then(|collection| self.collections.get_mut(&collection)) {
            collection.undeclare(name);
        }
    }

    /// This was restored from an earlier run of the relay, for the collection or the wildcard.
    pub(super) fn restored(&mut self, collection: Option<&Name>, names: impl Iterator<Item = Name>) {
        let of = match collection {
            None => Some(&mut self.all),
            Some(collection) => self.collections.get_mut(collection),
        };
        if let Some(of) = of {
            of.restored(names);
        }
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        self.all.disconnected();
        self.collections.values_mut().for_each(Completeness::disconnected);
        self.busy.clear();
    }

    /// The present response has an entry or a removal for a name, which may be in this collection. Returns whether it is news: the name was
    /// new, or unconfirmed.
    pub(super) fn mention(&mut self, collection: Option<&Name>, name: &Name, how: Mention) -> bool {
        let news = how.new | self.all.confirm(name, how.resent);
        if let Some((key, of)) = collection.and_then(|name| Some((name, self.collections.get_mut(name)?))) {
            let news = of.confirm(name, how.resent && !how.asked) | (news && !how.gone);
            *self.mentioned.entry(key.clone()).or_default() |= news;
        }
        news
    }

    /// A held name in this collection is now requested by itself as well.
    pub(super) fn asked(&mut self, collection: &Name, name: &Name) {
        if let Some(collection) = self.collections.get_mut(collection) {
            collection.asked(name);
        }
    }

    /// The relay rejects a response (E-22).
    pub(super) fn refuse(&mut self) {
        self.each(Completeness::refuse);
    }

    /// The present response is read to its end; `full`: it has all that belongs to what it mentions. Returns what that means.
    pub(super) fn heard(
        &mut self,
        heard: Heard,
        dialect: Dialect,
        full: bool,
        patience: Patience,
        now: Instant,
    ) -> SettledTypes {
        let mut settled = SettledTypes::default();
        if heard.more == Some(false) {
            self.each_busy(|collection| collection.ended(now));
        }
        for (name, news) in std::mem::take(&mut self.mentioned) {
            if full {
                settled.whole.extend(self.finish(&name).then_some(name));
            } else if let Some(collection) = self.collections.get_mut(&name) {
                // Another relay may say that this answer is finished, but that does not mean that it knows the whole collection.
                let more = heard.more.filter(|more| *more);
                let heard = Heard { news, more, ..heard };
                add(&mut settled, &name, collection.heard(heard, patience.unlearned(), now));
                self.busy.insert(name);
            }
        }
        self.rest();
        let asked = self.wildcard.is_asked();
        match dialect {
            // One response has all that the wildcard covers.
            Dialect::Sotw => settled.complete = asked && self.all.finish(),
            Dialect::Delta if asked || self.all.complete() => {
                // The end of another relay's answer says nothing of single names.
                let more = heard.more.filter(|_| asked);
                let all = self.all.heard(Heard { more, ..heard }, patience.wildcard(), now);
                (settled.complete, settled.pause) = (all.complete, all.pause);
                settled.gone.extend(all.gone);
            }
            Dialect::Delta => {}
        }
        settled
    }

    /// The server has sent the whole collection. Returns whether it is newly complete.
    pub(super) fn finish(&mut self, collection: &Name) -> bool {
        self.busy.remove(collection);
        self.collections.get_mut(collection).is_some_and(Completeness::finish)
    }

    /// What the present response mentions says nothing about the rest.
    pub(super) fn forget_mentioned(&mut self) {
        self.mentioned.clear();
    }

    /// The relay's ACKs for all responses so far are sent.
    pub(super) fn answered(&mut self, now: Instant) {
        self.each(|one| one.answered(now));
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        self.each(|one| one.bytes(at));
    }

    /// Whether nothing is waited for.
    pub(super) fn rests(&self) -> bool {
        self.all.rests() && self.busy.is_empty()
    }

    pub(super) fn deadline(&self, patience: Patience) -> Option<Instant> {
        let busy = self.busy.iter().filter_map(|name| self.collections.get(name));
        let busy = busy.filter_map(|collection| collection.deadline(patience.unlearned()));
        busy.chain(self.all.deadline(patience.wildcard())).min()
    }

    pub(super) fn timeout(&mut self, patience: Patience, now: Instant) -> SettledTypes {
        let mut settled = self.all.timeout(patience.wildcard(), now);
        for name in &self.busy {
            if let Some(collection) = self.collections.get_mut(name) {
                add(&mut settled, name, collection.timeout(patience.unlearned(), now));
            }
        }
        self.rest();
        settled
    }

    fn each(&mut self, mut act: impl FnMut(&mut Completeness)) {
        act(&mut self.all);
        self.each_busy(act);
    }

    fn each_busy(&mut self, mut act: impl FnMut(&mut Completeness)) {
        for name in &self.busy {
            if let Some(collection) = self.collections.get_mut(name) {
                act(collection);
            }
        }
    }

    fn rest(&mut self) {
        let all = &self.collections;
        self.busy
            .retain(|name| all.get(name).is_some_and(|collection| !collection.rests()));
    }
}

/// Adds what follows for a collection.
fn add(all: &mut SettledTypes, collection: &Name, of: SettledTypes) {
    all.gone.extend(of.gone);
    all.whole.extend(of.complete.then(|| collection.clone()));
}
