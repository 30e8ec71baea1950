// SPDX-License-Identifier: Apache-2.0
//! What may have changed: content, the view that is read, and the client's rights.
//!
//! Owns which names are looked at for that reason. Does not know what has changed of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Subscription;
use crate::server::ledger::Row;
use xds::{Dirty, Name, Resource, Rights, Viewer};

impl Subscription {
    /// What is known of these names may have changed.
    pub(in crate::server) fn handle_dirty(&mut self, dirty: Dirty) {
        match dirty {
            Dirty::All => self.look_at_all(),
            // A change of the wildcard alone has no names.
            Dirty::Names(names) if names.is_empty() => {}
            Dirty::Names(names) => self.touch_all(&names),
        }
    }

    /// Looks at what has to do with any of these names.
    fn touch_all(&mut self, names: &[Name]) {
        names.iter().for_each(|name| self.touch(name));
        let collections = names.iter().filter_map(|name| self.want.covering(name));
        for all in collections.collect::<BTreeSet<Name>>() {
            let open: Vec<Name> = self.open_texts(&all).cloned().collect();
            self.books.agenda_mut().look(open);
        }
        self.look_at_other_names(names);
    }

    /// C-20, A-09: looks at what may be meant by other names than its own.
    fn look_at_other_names(&mut self, names: &[Name]) {
        if self.reader.has_nameless() {
            self.books.agenda_mut().look([Name::from("")]);
        }
        if self.asks_by_alias() {
            self.books.agenda_mut().look(names.iter().cloned());
            self.books.agenda_mut().wake();
            self.look_at_called(names);
        }
    }

    /// C-20: looks at what the client knows by these aliases.
    fn look_at_called(&mut self, names: &[Name]) {
        let aliases: BTreeSet<&Name> = names.iter().filter(|name| self.books.ledger().asks(name)).collect();
        if aliases.is_empty() {
            return;
        }
        let has = |sent: &Arc<Resource>| sent.aliases().iter().any(|alias| aliases.contains(alias));
        let called = self
            .books
            .ledger()
            .own()
            .from("")
            .filter(|entry| entry.row().sent().is_some_and(has));
        let called: Vec<Name> = called.map(|entry| entry.name().clone()).collect();
        self.books.agenda_mut().look(called);
    }

    fn look_at_all(&mut self) {
        self.books.look_at_rows(false);
        self.books.agenda_mut().wake();
    }

    /// C-22: returns the texts by which the client asks for a collection and that are not answered yet. A member answers them when it
    /// is sent; if it goes before that, they may be empty.
    pub(super) fn open_texts<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let texts = self.want.texts(collection);
        texts.filter(|text| matches!(self.books.ledger().get(text), Row::Asked | Row::Perhaps))
    }

    fn touch(&mut self, name: &Name) {
        let others = self.want.texts(name).filter(|text| *text != name);
        self.books.agenda_mut().look(others.cloned());
        let own = self.books.ledger().own().get(name.as_str()).is_some();
        if own || self.want.covering(name).is_some() {
            self.books.agenda_mut().look([name.clone()]);
        }
        if self.want.has_collection(name) {
            self.books
                .agenda_mut()
                .sweep(Some(self.want.meaning(name).clone()), false);
        }
    }

    /// G-08, G-11: the names of an authority are read from another view. What differs there counts as a change, and nothing else does.
    pub(in crate::server) fn handle_moved(&mut self, now: Instant) {
        self.asked.interrupted(now);
        self.books.rejections_mut().tell_again();
        self.books.agenda_mut().forget_rest();
        self.look_at_all();
    }

    /// S-07: from now on the client may have this; `None`: everything. What it may not have any more goes like what is gone at the
    /// server, and is not asked for; what it may have now is asked for.
    pub(in crate::server) fn handle_rights(&mut self, rights: Option<Arc<Rights>>, now: Instant) {
        if self.reader.viewer().rights() == rights.as_ref() {
            return;
        }
        let before = self.requests();
        *self.reader.viewer_mut() = Viewer::new(rights);
        let after = self.requests();
        let ended = before.difference(&after).cloned();
        let ended: BTreeSet<xds::Want> = ended.map(xds::Want::over).collect();
        let begun: Vec<xds::Want> = after.difference(&before).cloned().collect();
        if !begun.is_empty() {
            self.asked.more(now);
        }
        self.add_wants(ended.into_iter().chain(begun));
        self.handle_moved(now);
    }
}
