// SPDX-License-Identifier: Apache-2.0
//! What servers are asked for on behalf of one client.
//!
//! Owns which names of the client that are: none that it may not have, and each as the client wrote it (F-07). Does not know what is known
//! of them.

use std::collections::BTreeSet;

use super::Subscription;
use xds::{Name, Owners, Target, TypeUrl};

impl Subscription {
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
