//! What a client wants of one type: how a subscription begins and how it ends.
//!
//! Owns what each beginning and end does to what is held, owed and on its way. Does not read requests.

use super::covered::Covered;
use super::entry::Entry;
use super::subscription::Subscription;
use xds::{Answers, Dialect, Held, Name, Target, Want};

impl Subscription {
    /// K-13: the client waits for this name again, even if its content has not changed.
    pub(super) fn force(&mut self, name: &Name) {
        if self.names.contains(name) || self.wildcard && self.covered.held(name).perhaps() {
            self.owed.insert(name.clone());
        }
    }

    /// Begins or ends the wildcard. What the client holds only through it is forgotten with it (C-09).
    pub(super) fn set_wildcard(&mut self, wanted: bool) {
        if self.wildcard == wanted {
            return;
        }
        self.cut_off();
        self.wildcard = wanted;
        // Resources that the client holds besides are compared with the wildcard that begins (C-13); so are resources on their
        // way.
        if wanted {
            let arriving = self.flights.arriving().filter(|_| self.dialect == Dialect::Delta);
            let names = arriving.map(|resource| (resource.name().clone(), Held::Unknown));
            self.note_covered(names.collect());
        } else {
            self.keep_by_alias();
            let declared = self.declared();
            self.covered = Covered::default();
            self.covered.note(declared);
        }
        self.first = wanted;
        if !wanted {
            self.owed.retain(|name| self.names.contains(name));
            self.let_spellings_go();
            self.give_up_unwanted();
        }
        self.want(Target::Wildcard, wanted);
    }

    /// C-13, C-20: the wildcard ends. What the client declared and was not told of may be what it asks for by an alias.
    fn declared(&self) -> Vec<(Name, Held)> {
        let may_be = self.dialect == Dialect::Delta && !self.names.is_empty();
        let extra = self.covered.seen().extra.iter().filter(|_| may_be);
        let unsure = extra
            .flat_map(|extra| extra.names())
            .filter(|(_, held)| matches!(held, Held::Version(_)));
        unsure.map(|(name, _)| (name.clone(), Held::Unknown)).collect()
    }

    /// C-20: the wildcard ends. What it brought and has lost since, the client keeps if it asks for one of its aliases.
    fn keep_by_alias(&mut self) {
        let lost = self
            .covered
            .seen()
            .extra
            .iter()
            .flat_map(|extra| extra.names().values());
        let unheld = |alias: &&Name| self.names.get(alias).is_some_and(|entry| !entry.perhaps());
        let kept = lost.filter_map(Held::content).flat_map(|content| {
            let aliases = content.aliases().iter().filter(unheld);
            aliases.map(move |alias| (alias.clone(), content.clone()))
        });
        let kept: Vec<_> = kept.collect();
        for (alias, content) in kept {
            self.look_at(alias.clone());
            self.names.set(alias, Held::Content(content));
        }
    }

    /// Returns the name that the client means by a text.
    pub(super) fn name(&self, text: &str, answers: &impl Answers) -> Name {
        let known = self.names.name(text).filter(|name| !name.is_nothing());
        known
            .cloned()
            .unwrap_or_else(|| match Name::read(text, &self.type_url) {
                name if name.is_new_style() => answers.name(name.as_str()),
                _ => answers.name(text),
            })
    }

    /// Returns whether the client asked for the name itself.
    pub(super) fn asks(&self, name: &Name) -> bool {
        self.collections.contains(name) || self.names.get(name).is_some_and(|entry| !entry.is_member())
    }

    /// Returns all names that the client asked for.
    pub(super) fn asked_names(&self) -> impl Iterator<Item = &Name> {
        self.single_names().map(|(name, _)| name).chain(self.collections.iter())
    }

    /// Returns those of them that are not collections. K-21: if the client asked for collections alone, this does not visit their
    /// members.
    pub(super) fn single_names(&self) -> impl Iterator<Item = (&Name, Entry<'_>)> {
        let any = self.names.len() > self.names.members_len();
        let all = any.then(|| self.names.iter()).into_iter().flatten();
        all.filter(|(_, entry)| !entry.is_member())
    }

    /// The client asks again for a name that it has asked for: it must be answered.
    pub(super) fn owe(&mut self, name: Name) {
        if self.collections.contains(&name) {
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
        self.told.forget(name);
        if name.is_collection() {
            self.drop_collection(name);
        } else if self.collections.covers(name) {
            // A client that had several reasons to hold a name does not know whether one is left, until the relay tells it.
            self.owed.insert(name.clone());
            self.names.mark(name, true);
            self.want(Target::Name(name.clone()), false);
        } else {
            self.drop_name(name);
        }
        // F-09: an answer that is still owed spells the name as the client did.
        let answers = self.dialect == Dialect::Delta && self.owed.contains(name) && !self.names.contains(name);
        if !answers {
            self.spellings.forget(name);
        }
    }

    /// Forgets the client's spellings of names that it does not ask for and that are not owed.
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
        let Some(held) = self.names.remove(name) else { return };
        let owed = self.owed.remove(name);
        self.forget_beat(name);
        self.dirty.remove(name);
        self.want(Target::Name(name.clone()), false);
        // K-08: if the client gives up a part of a rejected set, it would not be sent the same set again.
        if held.perhaps() {
            self.cold.divide_refused_set();
        }
        if !self.wildcard {
            return self.give_up(name);
        }
        // A begun answer may still contain a resource that has gone since, or was sent by name in a newer form.
        self.cut_off();
        // C-08: under a wildcard, the client does not know whether the name is still covered, until the relay tells it.
        let covered = self.covered.held(name);
        let sure = covered.content().is_some_and(|covered| held.is(covered.version()));
        // While the name was requested, the wildcard's content for it was not sent, so the client holds what was sent by name.
        // B-28: a full state without it may be the only message that the wildcard does not cover it. K-16: a name that the
        // wildcard cannot cover may be covered by a collection before the name is answered. B-22: in delta, the client holds what
        // it was sent, or perhaps was sent, until it is sent more.
        let besides = match self.dialect {
            Dialect::Sotw => self.full_state() && held.content().is_some(),
            Dialect::Delta if name.is_new_style() => held.perhaps(),
            Dialect::Delta => held.content().map_or(held.perhaps(), |content| content.name() == name),
        };
        if !sure && (covered.perhaps() || besides) {
            self.note_covered(vec![(name.clone(), held.clone())]);
        }
        if self.dialect == Dialect::Delta || owed || !sure {
            // C-20: a client that asked by an alias holds the resource under its own name.
            let own = held
                .content()
                .map(|content| content.name())
                .filter(|own| !self.names.contains(own));
            self.owed.extend(own.into_iter().chain([name]).cloned());
        }
    }

    pub(super) fn want(&mut self, target: Target, wanted: bool) {
        if self.has_nothing() || matches!(&target, Target::Name(name) if !self.is_served(name)) {
            return;
        }
        if wanted {
            self.add_wants(self.wants_of(target));
        } else {
            self.end_want(target);
        }
    }

    /// The views need not know the target any more for this client.
    pub(super) fn end_want(&mut self, target: Target) {
        self.add_wants([Want {
            type_url: self.type_url.clone(),
            target,
            wanted: false,
            written: None,
        }]);
    }
}
