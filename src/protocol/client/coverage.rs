// SPDX-License-Identifier: Apache-2.0
//! What is wanted of one type as a whole: the wildcard, which is the collection of everything, and collections (C-22).
//!
//! Owns who wants the wildcard, and what each still waits for. Knows nothing of the content of members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::completeness::{Completeness, Heard, Quiet, Settled};
use xds::{Dialect, Name};

/// The wildcard and the collections. Each is complete under the same conditions.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    wildcard: Wildcard,
    /// By names. Without the wildcard, what has its name are the names that are requested by themselves and of which the server was sent the
    /// versions.
    all: BTreeMap<Name, Box<Completeness>>,
    /// Those that still wait for something.
    busy: BTreeSet<Name>,
    /// When the first of these is to be looked at.
    next: Option<Instant>,
    /// How long the server must be quiet.
    quiet: Quiet,
    /// Those that the present response mentions, and whether it has news of them.
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
    pub(super) fn new(quiet: Quiet) -> Self {
        Self {
            quiet,
            ..Self::default()
        }
    }

    /// The server must be quiet for so long from now on.
    pub(super) const fn set_quiet(&mut self, quiet: Quiet) {
        self.quiet = quiet;
    }

    pub(super) const fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    /// The wildcard is wanted. Returns what it was before.
    pub(super) fn want_all(&mut self) -> Wildcard {
        let before = std::mem::replace(&mut self.wildcard, Wildcard::Wanted);
        if before == Wildcard::Unwanted {
            self.all.insert(Name::from(Name::WILDCARD), Box::default());
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
        self.remove(&Name::from(Name::WILDCARD));
    }

    pub(super) fn insert(&mut self, collection: &Name) {
        self.all.entry(collection.clone()).or_default();
    }

    pub(super) fn remove(&mut self, collection: &Name) {
        self.all.remove(collection);
        self.busy.remove(collection);
    }

    pub(super) fn collection(&self, text: &str) -> Option<&Name> {
        let known = self.all.get_key_value(text).map(|(name, _)| name);
        known.filter(|name| name.is_collection())
    }

    /// Returns the wanted collection that a name belongs to (F-10), which may be that of everything.
    pub(super) fn covering(&self, name: &str) -> Option<&Name> {
        if self.wildcard.is_asked() {
            return self.all.get_key_value(Name::WILDCARD).map(|(all, _)| all);
        }
        let last = self.all.last_key_value().filter(|(last, _)| last.is_collection());
        last.and_then(|_| self.collection(Name::from(name).collection()?.as_str()))
    }

    /// Returns whether every member of the collection, or all that the wildcard covers, is known.
    pub(super) fn whole(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|of| of.complete())
    }

    /// Whether nothing is known yet of what somebody wants.
    pub(super) fn lacks_all(&self) -> bool {
        self.wildcard == Wildcard::Wanted && !self.whole(Name::WILDCARD)
    }

    /// A delta stream begins. `held` returns what is held of a collection or of the wildcard, and for each name whether the server is told
    /// of its version. What is incomplete is requested without versions: then the server sends everything, and the end of its answer can
    /// be seen.
    pub(super) fn connected(&mut self, held: impl Fn(&Name) -> BTreeMap<Name, bool>) {
        if !self.wildcard.is_asked() {
            self.all.remove(Name::WILDCARD);
        }
        for (name, of) in &mut self.all {
            let mut held = held(name);
            held.values_mut().for_each(|declared| *declared &= of.complete());
            of.connected(held);
        }
    }

    /// These names are requested by themselves; the server is sent their versions.
    pub(super) fn named(&mut self, held: BTreeMap<Name, bool>) {
        let of = self.all.entry(Name::from(Name::WILDCARD)).or_default();
        of.finish();
        of.connected(held);
    }

    /// Returns whether this member is from before the stream, the server was not sent its version, and has not mentioned it.
    pub(super) fn undeclared(&self, collection: &Name, member: &Name) -> bool {
        self.all.get(collection).is_some_and(|of| of.undeclared(member))
    }

    /// E-04: the server is sent another version of the name than its own.
    pub(super) fn undeclare(&mut self, name: &Name) {
        for of in [Some(Name::from(Name::WILDCARD)), name.collection()]
            .into_iter()
            .flatten()
        {
            self.change(of.as_str(), |of| of.undeclare(name));
        }
    }

    /// Whether the first answer has left names out, and it is not known what that means.
    pub(super) fn is_unsure(&self) -> bool {
        self.all.get(Name::WILDCARD).is_some_and(|all| all.is_unsure())
    }

    /// What has this name is changed, if it is there.
    pub(super) fn change<R: Default>(&mut self, name: &str, act: impl FnOnce(&mut Completeness) -> R) -> R {
        self.all.get_mut(name).map_or_else(R::default, |of| act(of))
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        self.all.values_mut().for_each(|of| of.disconnected());
        self.busy.clear();
        self.next = None;
    }

    /// The present response has an entry or a removal for a name, which may be in this collection. It is news if the name was new, or
    /// unconfirmed.
    pub(super) fn mention(&mut self, collection: Option<&Name>, name: &Name, how: Mention) {
        let mut news = how.new;
        for of in std::iter::once(Name::WILDCARD).chain(collection.map(Name::as_str)) {
            let Some((key, _)) = self.all.get_key_value(of) else {
                continue;
            };
            let (key, all) = (key.clone(), is_all(key));
            let resent = how.resent && (all || !how.asked);
            news &= all || !how.gone;
            news |= self.change(of, |of| of.confirm(name, resent));
            *self.mentioned.entry(key).or_default() |= news;
        }
    }

    /// The relay rejects a response (E-22).
    pub(super) fn refuse(&mut self) {
        self.each(Completeness::refuse);
    }

    /// The present response is read to its end; `full`: it has all that belongs to what it mentions. Returns what that means.
    pub(super) fn heard(
        &mut self,
        (more, uncertain): (Option<bool>, bool),
        dialect: Dialect,
        full: bool,
        now: Instant,
    ) -> Vec<(Name, Settled)> {
        let mut settled = Vec::new();
        if more == Some(false) {
            self.each(|of| of.ended(now));
        }
        let mut mentioned = std::mem::take(&mut self.mentioned);
        if let Some((all, _)) = self.all.get_key_value(Name::WILDCARD) {
            mentioned.entry(all.clone()).or_default();
        }
        for (name, news) in mentioned {
            let all = is_all(&name);
            // One SotW response has all that the wildcard covers.
            if full || all && dialect == Dialect::Sotw {
                let complete = self.finish(&name);
                settled.push((
                    name,
                    Settled {
                        complete,
                        ..Settled::default()
                    },
                ));
            } else {
                // Another relay may say that this answer is finished, but that does not mean that it knows a whole collection.
                let more = more.filter(|more| *more || all && self.wildcard.is_asked());
                let heard = Heard { news, more, uncertain };
                let quiet = self.quiet(&name);
                let of = self.change(name.as_str(), |of| of.heard(heard, quiet, now));
                self.busy.insert(name.clone());
                settled.push((name, of));
            }
        }
        self.rest();
        settled
    }

    /// The server has sent the whole collection. Returns whether it is newly complete.
    pub(super) fn finish(&mut self, collection: &Name) -> bool {
        self.busy.remove(collection);
        self.change(collection.as_str(), Completeness::finish)
    }

    /// What the present response mentions says nothing about the rest.
    pub(super) fn forget_mentioned(&mut self) {
        self.mentioned.clear();
    }

    /// The relay's ACKs for all responses so far are sent.
    pub(super) fn answered(&mut self, now: Instant) {
        self.each(|of| of.answered(now));
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        self.each(|of| of.bytes(at));
    }

    /// Whether nothing is waited for.
    pub(super) fn rests(&self) -> bool {
        self.busy.is_empty()
    }

    /// The server has gone on from the wildcard to what it was asked for later.
    pub(super) fn overtaken(&mut self) {
        self.change(Name::WILDCARD, Completeness::overtaken);
        self.rest();
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Returns what the passing of time means.
    pub(super) fn timeout(&mut self, now: Instant) -> Vec<(Name, Settled)> {
        let mut settled = Vec::new();
        for name in &self.busy {
            let quiet = self.quiet(name);
            let of = self.all.get_mut(name).and_then(|of| of.timeout(quiet, now));
            settled.extend(of.map(|of| (name.clone(), of)));
        }
        self.rest();
        settled
    }

    fn each(&mut self, mut act: impl FnMut(&mut Completeness)) {
        for name in &self.busy {
            self.all.get_mut(name).into_iter().for_each(|of| act(of));
        }
        self.rest();
    }

    fn rest(&mut self) {
        let all = &self.all;
        self.busy.retain(|name| all.get(name).is_some_and(|of| !of.rests()));
        let due = |name| self.all.get(name)?.deadline(self.quiet(name));
        self.next = self.busy.iter().filter_map(due).min();
    }

    /// For collections, the learned time does not count: their members may come in another rhythm than those of the wildcard.
    fn quiet(&self, name: &Name) -> Quiet {
        let needed = if is_all(name) {
            self.quiet.needed
        } else {
            self.quiet.unknown
        };
        Quiet { needed, ..self.quiet }
    }
}

fn is_all(name: &Name) -> bool {
    name.as_str() == Name::WILDCARD
}
