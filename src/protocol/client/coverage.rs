// SPDX-License-Identifier: Apache-2.0
//! What is wanted of one type as a whole: the wildcard, which is the collection of everything, and collections (C-22).
//!
//! Owns who wants the wildcard, and what each still waits for. Knows nothing of the content of members.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::completeness::{Heard, OpenAnswer, Quiet};
use xds::Name;

/// The wildcard and the collections. Each is complete under the same conditions.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    wildcard: Wildcard,
    /// By names, and whether each is complete.
    all: BTreeMap<Name, bool>,
    /// The answers that have begun and are not complete.
    open: BTreeMap<Name, OpenAnswer>,
    /// When the server last spoke, if the wildcard counts as complete after a shorter quiet than an unknown server needs.
    guessed: Option<Instant>,
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

/// Those that are newly complete, and the longest pause within the answer for the wildcard, if the end of that was seen.
pub(super) type Ends = (Vec<Name>, Option<Duration>);

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
            self.insert(&Name::from(Name::WILDCARD));
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

    /// A collection is wanted, of which nothing is known yet.
    pub(super) fn insert(&mut self, collection: &Name) {
        self.remove(collection);
        self.all.insert(collection.clone(), false);
    }

    pub(super) fn remove(&mut self, collection: &Name) {
        self.all.remove(collection);
        self.open.remove(collection);
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
        self.all.first_key_value()?;
        self.collection(Name::from(name).collection()?.as_str())
    }

    /// Returns whether every member of the collection, or all that the wildcard covers, is known.
    pub(super) fn whole(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|complete| *complete)
    }

    /// Whether nothing is known yet of what somebody wants.
    pub(super) fn lacks_all(&self) -> bool {
        self.wildcard == Wildcard::Wanted && !self.whole(Name::WILDCARD)
    }

    /// The stream ended; what is complete stays so (G-19).
    pub(super) fn disconnected(&mut self) {
        self.open.clear();
        self.guessed = None;
    }

    /// The present response has an entry or a removal for a name in this collection, which may be news.
    pub(super) fn mention(&mut self, collection: &Name, news: bool) {
        *self.mentioned.entry(collection.clone()).or_default() |= news;
    }

    /// What the present response mentions says nothing about the rest.
    pub(super) fn forget_mentioned(&mut self) {
        self.mentioned.clear();
    }

    /// The present response is read to its end; it has all that the wildcard covers if it is `whole`, and all that belongs to whatever it
    /// mentions if it is `full`.
    pub(super) fn heard(
        &mut self,
        (more, uncertain): (Option<bool>, bool),
        (whole, full): (bool, bool),
        now: Instant,
    ) -> Ends {
        let (mut complete, mut pause) = (Vec::new(), None);
        if more == Some(false) {
            self.open.values_mut().for_each(|of| of.ended(now));
        }
        let mut mentioned = std::mem::take(&mut self.mentioned);
        if self.wildcard.is_asked() {
            mentioned.entry(Name::from(Name::WILDCARD)).or_default();
        }
        for (name, news) in mentioned {
            if full || whole && is_all(&name) {
                complete.extend(self.finish(&name).then_some(name));
            } else if self.whole(name.as_str()) {
                if news && is_all(&name) {
                    pause = self.pause_after_all(now);
                }
            } else {
                let heard = Heard {
                    news,
                    more: more == Some(true),
                    uncertain,
                };
                let of = self.open.entry(name).or_insert_with(|| OpenAnswer::new(now));
                of.heard(heard, now);
            }
        }
        (complete, pause)
    }

    /// The wildcard counted as complete, and then more news came: the server paused for longer than it was given. Returns that
    /// pause.
    fn pause_after_all(&mut self, now: Instant) -> Option<Duration> {
        let pause = now.saturating_duration_since(self.guessed?);
        self.guessed = (pause < self.quiet.unknown).then_some(now);
        self.guessed.map(|_| pause)
    }

    /// The server has sent the whole collection. Returns whether it is newly complete.
    pub(super) fn finish(&mut self, collection: &Name) -> bool {
        self.open.remove(collection);
        let complete = self.all.get_mut(collection);
        complete.is_some_and(|complete| !std::mem::replace(complete, true))
    }

    /// The relay's ACKs for all responses so far are sent.
    pub(super) fn answered(&mut self, now: Instant) {
        self.open.values_mut().for_each(|of| of.answered(now));
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        self.open.values_mut().for_each(|of| of.bytes(at));
    }

    /// Whether no answer is open.
    pub(super) fn rests(&self) -> bool {
        self.open.is_empty()
    }

    /// The server has gone on from the wildcard to what it was asked for later.
    pub(super) fn overtaken(&mut self) {
        self.open
            .get_mut(Name::WILDCARD)
            .into_iter()
            .for_each(OpenAnswer::overtake);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = self.open.iter().filter_map(|(name, of)| of.deadline(self.quiet(name)));
        due.min()
    }

    /// Time has passed: answers may count as complete.
    pub(super) fn timeout(&mut self, now: Instant) -> Ends {
        let over = |(name, of): &(&Name, &OpenAnswer)| of.deadline(self.quiet(name)).is_some_and(|at| at <= now);
        let over: Vec<Name> = self.open.iter().filter(over).map(|(name, _)| name.clone()).collect();
        let mut pause = None;
        for name in &over {
            if let Some(of) = self.open.remove(name).filter(|_| is_all(name)) {
                (pause, self.guessed) = of.end(self.quiet, now);
            }
            self.finish(name);
        }
        (over, pause)
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
