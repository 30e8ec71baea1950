//! Variants of a name that are not for everybody (TP2).
//!
//! Owns what becomes of a name when its variants go. Refuses to choose one for a client.
//!
//! No version that we declare can mean one of several variants, so names that have any are not declared (E-04): a server sends all
//! that it has of them anew. What it does not send goes, where a wildcard or a collection asked for it, like anything else that is
//! not confirmed; where the name itself was asked for, with the first response that says anything of the name.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::Feed;
use crate::protocol::client::entry::Entry;
use crate::protocol::client::ingest::Message;
use crate::xds::{Name, Reason, Resource, Update, split_variant_key};

impl Feed {
    /// C-23: a variant is gone, and with the last of all the name itself.
    pub(super) fn withdraw(&mut self, resource: Arc<Resource>, reason: Reason, updates: &mut Vec<Update>) {
        let name = resource.name().clone();
        updates.push(Update::Withdraw(resource));
        if !self.is_left(&name) && self.names.contains(name.as_str()) {
            updates.push(Update::Absent(name, reason));
        }
    }

    /// E-11: an entry that does not live. Of a name of which there is nothing else, that is all.
    pub(super) fn dead(&mut self, entry: &Entry, updates: &mut Vec<Update>) {
        if entry.variant.is_none() || self.kept.key(entry.key()).is_some() {
            self.absent(entry.key(), Reason::Expired, updates);
        } else if let Some(name) = self.names.get(entry.name.as_str()).filter(|name| !self.is_left(name)) {
            updates.push(Update::Absent(name.clone(), Reason::Expired));
        }
    }

    /// What is for everybody has left a wildcard or a collection.
    pub(super) fn uncovered(&self, resource: &Arc<Resource>) -> Update {
        let name = resource.name();
        if self.kept.has_variants(name.as_str()) {
            return Update::Withdraw(resource.clone());
        }
        Update::Forget(name.clone())
    }

    fn is_left(&self, name: &Name) -> bool {
        self.kept.resource(name.as_str()).is_some() || self.kept.has_variants(name.as_str())
    }

    /// A name is wanted no more, and none of its variants, unless a collection has them. What that makes of each.
    pub(super) fn drop_variants(&mut self, name: &Name) -> Vec<Update> {
        if self.collections.covering(name.as_str()).is_some() {
            return Vec::new();
        }
        let variants = self.variants_of(name.as_str()).into_iter();
        let dropped = variants.filter_map(|variant| self.kept.remove(&variant));
        dropped.map(Update::Withdraw).collect()
    }

    /// All variants of a name are gone.
    pub(super) fn variants_gone(&mut self, name: &Name, reason: Reason, updates: &mut Vec<Update>) {
        for variant in self.variants_of(name.as_str()) {
            self.gone(&variant, reason, updates);
        }
    }

    /// A stream begins: of names that were asked for by themselves and have variants the server is told nothing.
    pub(super) fn doubt_variants(&mut self) {
        let names = self.names.iter().filter(|name| self.kept.has_variants(name.as_str()));
        let held = names.flat_map(|name| self.all_of(name.as_str()));
        self.doubted = held.collect();
    }

    /// Of a name that has variants, they and what is for everybody.
    fn all_of(&self, name: &str) -> Vec<Name> {
        let mut all = self.variants_of(name);
        all.extend(self.kept.key(name).filter(|_| !all.is_empty()).cloned());
        all
    }

    /// What an earlier run knew of a name that was asked for by itself: the server is not told of it.
    pub(super) fn doubt_restored(&mut self, name: &Name) {
        let held = self.all_of(name.as_str());
        self.doubted.extend(held);
    }

    /// What a response says of names by leaving out variants of them: `mentioned` are the keys of its entries. In delta only of
    /// what is from before the stream, as anything else is taken away by its full name (C-23), which SotW cannot say, and
    /// relays do not.
    pub(super) fn settle_variants(&mut self, mentioned: &[Name], message: &Message, updates: &mut Vec<Update>) {
        if self.doubted.is_empty() && !(message.whole && self.kept.varies()) {
            return;
        }
        let mentioned = mentioned.iter().map(Name::as_str);
        let mentioned: BTreeSet<&str> = mentioned.chain(message.spoiled.iter().map(String::as_str)).collect();
        let names = mentioned
            .iter()
            .copied()
            .chain(message.removed.iter().map(String::as_str));
        let names: BTreeSet<&str> = names.map(|key| split_variant_key(key).0).collect();
        let mut gone = Vec::new();
        for name in names {
            let doubted = self.settle_doubts(name);
            for held in self.all_of(name) {
                let counts = doubted.contains(&held) || message.whole;
                if counts && !mentioned.contains(held.as_str()) {
                    gone.push(held);
                }
            }
        }
        for held in gone {
            self.gone(&held, Reason::Said, updates);
        }
    }

    /// The server has said something of a name: nothing of it is in doubt any more. What was, whether it is still held or not.
    fn settle_doubts(&mut self, name: &str) -> Vec<Name> {
        let from = (Bound::Included(name), Bound::Unbounded);
        let all = self.doubted.range::<str, _>(from);
        let all: Vec<Name> = all
            .take_while(|key| split_variant_key(key.as_str()).0 == name)
            .cloned()
            .collect();
        for key in &all {
            self.doubted.remove(key);
        }
        all
    }

    pub(super) fn variants_of(&self, name: &str) -> Vec<Name> {
        if self.kept.varies() {
            self.kept.variants(name).cloned().collect()
        } else {
            Vec::new()
        }
    }
}
