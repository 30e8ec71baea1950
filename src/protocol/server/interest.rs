//! What a client wants of one type: how it begins and how it ends.
//!
//! Owns what each beginning and end does to what is held, owed and on its way. Refuses to read requests.

use super::held_names::Entry;
use super::subscription::{Glance, Rest, Subscription};
use crate::xds::{Answers, Batch, Dialect, Held, Name, Seen, Target, Want};

impl Subscription {
    /// K-13: the client waits for this name again, even if nothing about it has changed.
    pub(super) fn force(&mut self, name: &Name) {
        if self.comes(name) {
            return;
        }
        // That it is gone is said after the cluster, and does not wait.
        self.recall_of(name);
        if self.names.contains(name) || self.wildcard && self.seen.held(name).perhaps() {
            self.owed.insert(name.clone());
        }
    }

    /// Begins or ends the wildcard. What was known only through it is forgotten with it (C-09).
    pub(super) fn set_wildcard(&mut self, wanted: bool) {
        if self.wildcard == wanted {
            return;
        }
        self.recall();
        self.wildcard = wanted;
        // What the client remembers besides is compared with the wildcard that begins (C-13), and so is what is on its way.
        if wanted {
            let flights = self.flights.iter().filter(|_| self.dialect == Dialect::Delta);
            let items = flights.flat_map(|flight| flight.batch.items_of(flight.chunk));
            let names = items.map(|item| (item.resource.name().clone(), Held::Unknown));
            self.seen.note(names.collect());
        } else {
            self.seen = Seen::default();
        }
        self.first = wanted;
        self.again = false;
        if !wanted {
            self.owed.retain(|name| self.names.contains(name));
            self.let_spellings_go();
            self.forget_parameters(&Name::from(Name::WILDCARD));
            self.give_up_unwanted();
        }
        self.want(Target::Wildcard, wanted);
    }

    /// The name that the client means by a text.
    pub(super) fn name(&self, text: &str, answers: &impl Answers) -> Name {
        let known = self.names.name(text).filter(|name| !name.is_nothing());
        known
            .cloned()
            .unwrap_or_else(|| match Name::read(text, &self.type_url) {
                name if name.is_new_style() => answers.name(name.as_str()),
                _ => answers.name(text),
            })
    }

    /// Whether the client asked for the name itself.
    pub(super) fn asks(&self, name: &Name) -> bool {
        self.globs.contains(name) || self.names.get(name).is_some_and(|entry| !entry.is_member())
    }

    /// All names that the client asked for.
    pub(super) fn asked_names(&self) -> impl Iterator<Item = &Name> {
        self.single_names().map(|(name, _)| name).chain(self.globs.iter())
    }

    /// Those of them that are no collections. K-21: who asked for collections alone has none, however many members there are.
    pub(super) fn single_names(&self) -> impl Iterator<Item = (&Name, Entry<'_>)> {
        let any = self.names.len() > self.names.members_len();
        let all = any.then(|| self.names.iter()).into_iter().flatten();
        all.filter(|(_, entry)| !entry.is_member())
    }

    /// The client asks once more for what it has asked for: it must be answered.
    pub(super) fn owe(&mut self, name: Name) {
        if self.globs.contains(&name) {
            self.repeat_collection(&name);
        } else {
            self.owed.insert(name);
        }
    }

    pub(super) fn add(&mut self, name: Name, held: Held) {
        if name.is_collection() {
            self.add_collection(name);
        } else {
            self.add_name(name, held);
        }
    }

    pub(super) fn drop_asked(&mut self, name: &Name) {
        if !self.asks(name) {
            return;
        }
        if let Some(told) = &mut self.told {
            told.remove(name);
        }
        self.forget_parameters(name);
        if name.is_collection() {
            self.drop_collection(name);
        } else if self.globs.covers(name) {
            // Whoever has several reasons to hold a name does not know whether one is left, until we say so.
            self.owed.insert(name.clone());
            self.names.mark(name, true);
            self.want(Target::Name(name.clone()), false);
        } else {
            self.drop_name(name);
        }
        // F-09: an answer that is still owed calls the name as the client did.
        let answers = self.dialect == Dialect::Delta && self.owed.contains(name) && !self.names.contains(name);
        if !answers {
            self.spellings.forget(name);
        }
    }

    /// Forgets how the client wrote what it does not ask for and is owed no answer for.
    pub(super) fn let_spellings_go(&mut self) {
        if self.spellings.is_empty() {
            return;
        }
        let mut spellings = std::mem::take(&mut self.spellings);
        spellings.retain(|name| self.asks(name) || self.owed.contains(name));
        self.spellings = spellings;
    }

    fn add_name(&mut self, name: Name, held: Held) {
        self.names.mark(&name, false);
        self.owed.insert(name.clone());
        self.want(Target::Name(name.clone()), true);
        self.names.set(name, held);
    }

    /// B-15: dropping a name forgets that it was sent.
    fn drop_name(&mut self, name: &Name) {
        let Some(held) = self.names.get(name) else { return };
        let canonical = held.content().map_or(name, |content| content.name());
        let recalled = self.is_to_come(canonical) || self.is_to_come(name);
        if recalled {
            self.recall();
        }
        let Some(held) = self.names.remove(name) else { return };
        let owed = self.owed.remove(name).is_some();
        self.forget_beat(name);
        if let Glance::Names(names) = &mut self.dirty {
            names.remove(name);
        }
        self.want(Target::Name(name.clone()), false);
        if !self.wildcard {
            return self.give_up(name);
        }
        // C-08: under a wildcard the client does not know whether the name is still covered, until we say so.
        let sure = self
            .seen
            .held(name)
            .content()
            .is_some_and(|covered| held.is(covered.version()));
        // B-28: a full state without it may be all that tells the client that the wildcard does not cover it.
        if self.full_state() && held.content().is_some() && !self.seen.held(name).perhaps() {
            self.seen.note(vec![(name.clone(), held.clone())]);
        }
        self.note_own(name, &held);
        if self.dialect == Dialect::Delta || recalled || owed || !sure {
            // C-20: who asked by an alias holds the resource under its own name.
            let own = held
                .content()
                .map(|content| content.name())
                .filter(|own| !self.names.contains(own));
            self.owed.extend(own.into_iter().chain([name]).cloned());
        }
    }

    /// Whether a name is in a response that the client has not settled: it may take it in after it asked for the name again.
    pub(super) fn is_on_its_way(&self, name: &Name) -> bool {
        let mut flights = self.flights.iter();
        flights.any(|flight| {
            let items = flight.batch.items_of(flight.chunk);
            items.binary_search_by(|item| item.resource.name().cmp(name)).is_ok()
        })
    }

    /// Whether a name is in a chunk that is not sent yet.
    fn is_to_come(&self, name: &Name) -> bool {
        let goes = |(batch, chunk): (&Batch, usize)| batch.removed_of(chunk).binary_search(name).is_ok();
        self.comes(name) || self.to_come().any(goes)
    }

    /// The same, as a resource.
    fn comes(&self, name: &Name) -> bool {
        self.to_come().any(|(batch, chunk)| {
            let items = batch.items_of(chunk);
            items.binary_search_by(|item| item.resource.name().cmp(name)).is_ok()
        })
    }

    fn to_come(&self) -> impl Iterator<Item = (&Batch, usize)> {
        let rest = self.rest.iter();
        rest.flat_map(|rest| (rest.next..rest.batch.chunks()).map(|chunk| (&*rest.batch, chunk)))
    }

    /// What is to come of a name is not held.
    pub(super) fn recall_of(&mut self, name: &Name) {
        if self.is_to_come(name) {
            self.recall();
        }
    }

    /// Recalls what has no bytes any more, and what was to go and may not go now (D-03).
    pub(super) fn recall_unfit(&mut self, removals: bool) {
        let Some(rest) = &self.rest else { return };
        let goes = self.traits().kind.gates() && !rest.batch.removed_of(rest.next).is_empty();
        if rest.batch.is_hollow() || goes && !removals {
            self.recall();
        }
    }

    /// Drops the chunks that are not sent yet: the client holds what it held before, and what is still wanted of them is owed.
    /// D-03: what it holds and was about to lose, unasked, waits like any removal.
    pub(super) fn recall(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        let Rest {
            batch, next, before, ..
        } = *rest;
        let mut told = Vec::new();
        // No wildcard covers a collection: what is said of that is owed by itself.
        let covered = self.wildcard;
        let under_wildcard = |name| Some(name).filter(|name: &&Name| covered && !name.is_collection());
        // C-20: what does not come replaces nothing that is held by another of its names. What comes in parts is in the order of names.
        let comes = |name: &Name| {
            let mut items = (next..batch.chunks()).map(|chunk| batch.items_of(chunk));
            items.any(|items| items.binary_search_by(|item| item.resource.name().cmp(name)).is_ok())
        };
        let names = before.names.iter();
        let replaced = names.filter(|(asked, held)| held.own_name(asked).is_some_and(comes));
        replaced.for_each(|(asked, held)| self.names.note(asked, held.clone()));
        for chunk in next..batch.chunks() {
            let items = batch.items_of(chunk).iter();
            let items = items.map(|item| (item.resource.name(), item.resource.aliases(), false));
            let removed = batch.removed_of(chunk).iter().map(|name| (name, &[][..], true));
            for (name, aliases, goes) in items.chain(removed) {
                for asked in std::iter::once(name).chain(aliases) {
                    match before.names.get(asked) {
                        Some(held) if self.names.contains(asked) => self.names.note(asked, held.clone()),
                        // A member that was about to leave its collection.
                        Some(held) if held.perhaps() => told.push((asked.clone(), held.clone())),
                        // C-15: one that was given up, and is a member as long as it is owed its answer.
                        Some(_) if goes && before.owed.contains(asked) && self.globs.covers(asked) => {
                            self.names.set(asked.clone(), Held::Nothing);
                            self.names.mark(asked, true);
                        }
                        Some(_) | None => {}
                    }
                }
                let held = before.seen.held(name);
                let holds = self.names.get(name).map_or(held.perhaps(), Entry::perhaps);
                // Whether a member of a collection that never came is there any more nobody asked.
                if (goes && holds || self.names.has_member(name)) && !before.owed.contains(name) {
                    self.look_at(name.clone());
                } else if let Some(owed) = self.wanted(name, aliases).or_else(|| under_wildcard(name)) {
                    // C-08: under a wildcard also what was given up.
                    self.owed.insert(owed.clone());
                }
                if held.perhaps() || self.seen.held(name).perhaps() {
                    told.push((name.clone(), held));
                }
            }
        }
        self.seen.note(told);
        let unsaid = (next..batch.chunks()).flat_map(|chunk| {
            let items = batch.items_of(chunk).iter().map(|item| item.resource.name());
            items.chain(batch.removed_of(chunk).iter().filter(|name| name.is_collection()))
        });
        self.unsettle(unsaid);
    }

    pub(super) fn want(&mut self, target: Target, wanted: bool) {
        // F-03: what names nothing is asked of nobody.
        if self.traits().withheld || matches!(&target, Target::Name(name) if name.is_nothing()) {
            return;
        }
        if wanted {
            let wants = self.wants_of(target);
            return self.wants.extend(wants);
        }
        self.wants.push(Want {
            type_url: self.type_url.clone(),
            target,
            wanted,
            written: None,
        });
    }
}
