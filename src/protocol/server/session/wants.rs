// SPDX-License-Identifier: Apache-2.0
//! What the client asks for and gives up, and what servers are asked for on its behalf.
//!
//! Owns what each of these does to the ledger, and which names servers are asked for: none that the client may not have, and each as the
//! client wrote it (F-07). Does not read requests, and does not know what is current.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Subscription;
use crate::server::ledger::{Entry, Row};
use crate::server::turn::Work;
use xds::{Answers, Dialect, Name, Owners, Target, TypeUrl};

impl Subscription {
    /// Whether a name that the client asks for may be one of a resource with another name (C-20).
    pub(super) fn asks_by_alias(&self) -> bool {
        self.reader.has_aliases() && self.books.ledger().own().asks_any()
    }

    /// The client has given up a name. C-20: only the client knows by which alias it keeps a resource.
    pub(super) fn drop(&mut self, name: &Name) {
        let by_alias = self.asks_by_alias() && self.books.ledger().get(name).perhaps();
        self.books.drop(name, by_alias);
    }

    /// K-13: a cluster that takes these endpoints is sent: the client waits for them again, even if they are the same.
    pub(in crate::server) fn force(&mut self, name: &Name) {
        let texts: Vec<Name> = self.want.texts(name).cloned().collect();
        for text in texts {
            let row = self.books.ledger().get(&text);
            let has = matches!(row, Row::Sent(_) | Row::Brought(_)) && self.is_wanted(&text);
            if has || matches!(row, Row::Nothing) && self.books.ledger().asks(&text) {
                self.books.ask(&text);
            }
        }
    }

    /// Whether the client wants a name for any reason.
    pub(super) fn is_wanted(&self, name: &Name) -> bool {
        let covered = self.want.wildcard() && !name.is_new_style();
        self.books.ledger().asks(name) || covered || self.want.covering(name).is_some() || self.is_wanted_by_alias(name)
    }

    fn is_wanted_by_alias(&self, name: &Name) -> bool {
        if name.is_empty() && self.reader.has_nameless() {
            return self.books.ledger().own().asks_any();
        }
        let row = self.reader.has_aliases().then(|| self.books.ledger().get(name));
        let sent = row.as_ref().and_then(Row::sent);
        sent.is_some_and(|sent| sent.aliases().iter().any(|alias| self.books.ledger().asks(alias)))
    }

    /// The client asks for a name or a collection.
    pub(super) fn subscribe(&mut self, name: &Name) {
        if !self.books.ledger().asks(name) {
            self.begin_want(name);
        }
        if name.is_collection() {
            let all = self.want.meaning(name).clone();
            self.want.add_collection(all.clone());
            self.books.agenda_mut().sweep(Some(all), true);
        }
        self.books.begin(name);
    }

    /// The client asks for everything.
    pub(super) fn subscribe_all(&mut self, answers: &impl Answers, now: Instant) {
        self.asked.more(now);
        let again = !self.want.set_wildcard(true);
        if again {
            // C-11: the client may have forgotten what it was sent.
            if let Some(base) = self.books.ledger().base().cloned() {
                self.books.doubt_shared(answers.doubted(&base));
            }
        } else {
            self.want_target(None, true);
        }
        self.want.set_hello(true);
        self.books.look_at_rows(again);
    }

    /// The client does not ask for a name or a collection any more. Returns the collection if nothing asks for it now: what it covers must
    /// be let go. Then `unsubscribed` must be called after the last one.
    pub(super) fn unsubscribe(&mut self, name: &Name) -> Option<Name> {
        if !self.books.ledger().asks(name) {
            return None;
        }
        self.end_want(name);
        self.books.end(name);
        let ends = if name.is_collection() {
            self.end_collection(name)
        } else {
            self.end_single(name);
            None
        };
        self.want.unspell(name);
        ends
    }

    fn end_collection(&mut self, text: &Name) -> Option<Name> {
        let all = self.want.meaning(text).clone();
        self.drop(text);
        if self.want.texts(&all).any(|text| self.books.ledger().asks(text)) {
            return None;
        }
        self.want.remove_collection(&all);
        let flying: Vec<Name> = {
            let covers = all.coverage();
            let flying = self.books.flights().names();
            flying.filter(|name| covers(name)).cloned().collect()
        };
        self.let_go(flying);
        Some(all)
    }

    fn end_single(&mut self, name: &Name) {
        self.books.agenda_mut().look([name.clone()]);
        let idle = self.reader.dialect() == Dialect::Sotw && !self.books.ledger().get(name).perhaps();
        if !self.is_wanted(name) || idle {
            self.drop(name);
        } else if self.reader.dialect() == Dialect::Delta {
            // C-08: the client had several reasons to hold the name, and does not know whether one is left.
            self.books.ask(name);
        }
    }

    /// Lets go of the next rows that a collection has covered, from the first name that is not less than a text. Returns the first name of
    /// those that are left.
    pub(super) fn let_go_within(&mut self, collection: &Name, text: &str, work: &mut Work) -> Option<Name> {
        let rows = self.books.ledger().within(collection, text).map(Entry::name);
        let mut names: Vec<Name> = rows.take(work.left() + 1).cloned().collect();
        let next = if names.len() > work.left() { names.pop() } else { None };
        work.add(names.len());
        self.let_go(names);
        next
    }

    /// The client has given up some names.
    pub(super) fn unsubscribed(&mut self) {
        self.forget_disputes();
        self.let_go_by_other_names();
    }

    /// C-20, A-09: names that were given up may have meant resources of other names.
    fn let_go_by_other_names(&mut self) {
        if self.reader.has_aliases() || self.reader.has_nameless() {
            self.books.agenda_mut().wake();
            let others = self
                .books
                .ledger()
                .own()
                .from("")
                .filter(|entry| entry.perhaps() && !entry.is_asked());
            let others = others.map(Entry::name).filter(|name| !self.is_wanted(name));
            self.let_go(others.cloned().collect());
        }
    }

    /// The client does not ask for everything any more.
    pub(super) fn unsubscribe_all(&mut self) {
        if !self.want.set_wildcard(false) {
            return;
        }
        self.want.set_hello(false);
        // C-20: only the client knows by which alias it keeps a resource.
        let keeps = (self.reader.has_aliases() || self.reader.has_nameless()) && self.books.ledger().own().asks_any();
        self.books.forget_shared(keeps);
        let own = self.books.ledger().own().from("").map(Entry::name);
        let all = own
            .chain(self.books.flights().names())
            .filter(|name| !name.is_new_style());
        self.let_go(all.cloned().collect());
        self.forget_disputes();
        self.want_target(None, false);
    }

    /// Of what it does not want any more the client rejects nothing.
    fn forget_disputes(&mut self) {
        let left = self.books.rejections().disputes().map(|(name, _)| name);
        let left: Vec<Name> = left.filter(|name| !self.is_wanted(name)).cloned().collect();
        left.iter()
            .for_each(|name| _ = self.books.rejections_mut().forget(name));
    }

    /// There is one reason less to want these names.
    fn let_go(&mut self, names: Vec<Name>) {
        for name in names {
            if self.is_wanted(&name) {
                self.books.agenda_mut().look([name]);
            } else {
                self.drop(&name);
            }
        }
    }

    /// The views must be asked for a name, as the client wrote it (F-07).
    pub(super) fn begin_want(&mut self, text: &Name) {
        self.want.spell(text, self.reader.type_url());
        let name = self.want.meaning(text).clone();
        self.want_target(Some((&name, text)), true);
    }

    /// The same name may be wanted in another spelling.
    pub(super) fn end_want(&mut self, text: &Name) {
        let name = self.want.meaning(text).clone();
        let is_asked = |other: &Name| other != text && self.books.ledger().asks(other);
        if !self.want.texts(&name).any(is_asked) {
            self.want_target(Some((&name, &name)), false);
        }
    }

    /// The views must be told that a name, or the wildcard, is wanted, or is not any more.
    pub(super) fn want_target(&mut self, asked: Option<(&Name, &Name)>, wanted: bool) {
        let denied = asked.is_some_and(|(name, _)| !self.reader.is_served(name));
        if !denied && !self.reader.has_nothing() {
            let said = self.said(asked, wanted);
            self.add_wants([said]);
        }
    }

    fn said(&self, asked: Option<(&Name, &Name)>, wanted: bool) -> xds::Want {
        xds::Want {
            type_url: self.reader.type_url().clone(),
            target: asked.map_or(Target::Wildcard, |(name, _)| Target::Name(name.clone())),
            wanted,
            written: asked.and_then(|(name, text)| name.written(text.as_str())),
        }
    }

    pub(super) fn add_wants(&mut self, wants: impl IntoIterator<Item = xds::Want>) {
        self.wants.get_or_insert_default().extend(wants);
    }

    /// Returns the next thing that the views must be told.
    pub(in crate::server) fn poll_want(&mut self) -> Option<xds::Want> {
        let want = self.wants.as_mut()?.pop_front();
        self.wants.take_if(|wants| wants.is_empty());
        want
    }

    /// Returns what servers are asked for: each name, and how the client wrote it; `None` stands for the wildcard.
    fn served(&self) -> impl Iterator<Item = Option<(&Name, &Name)>> {
        let names = self.books.ledger().asked().map(|text| (self.want.meaning(text), text));
        let names = names.filter(|(name, _)| self.reader.is_served(name)).map(Some);
        let any = !self.reader.has_nothing();
        let all = self.want.wildcard().then_some(None);
        all.into_iter().chain(names).filter(move |_| any)
    }

    /// Returns all that servers are asked for.
    pub(super) fn requests(&self) -> BTreeSet<xds::Want> {
        self.served().map(|asked| self.said(asked, true)).collect()
    }

    /// Returns everything that is wanted, for whose name (`None`: the wildcard) `counts` is true.
    pub(in crate::server) fn wants_if(
        &self,
        counts: impl Fn(&TypeUrl, Option<&Name>) -> bool,
    ) -> impl Iterator<Item = xds::Want> {
        let counted = self
            .served()
            .filter(move |asked| counts(self.type_url(), asked.map(|(name, _)| name)));
        counted.map(move |asked| self.said(asked, true))
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
}
