//! Variants of a name that are not for everybody (TP2).
//!
//! Owns the effects of removed variants on their name. Does not choose a variant for a client.
//!
//! A declared version cannot mean one of several variants, so names with variants are not declared (E-04), and a server sends all
//! their variants again. Variants that it does not send are removed. If a wildcard or a collection requested them, that happens
//! as for everything unconfirmed; if the name itself was requested, with the first response that mentions the name.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::Feed;
use crate::client::entry::Entry;
use crate::client::ingest::Message;
use xds::{Name, Reason, Resource, Update, split_variant_key};

impl Feed {
    /// C-23: a variant is gone; with the last one, the name is gone too.
    pub(super) fn withdraw(&mut self, resource: Arc<Resource>, reason: Reason, updates: &mut Vec<Update>) {
        let name = resource.name().clone();
        updates.push(Update::Withdraw(resource));
        if !self.is_left(&name) && self.names.contains(name.as_str()) {
            updates.push(Update::Absent(name, reason));
        }
    }

    /// E-11: the entry's time to live is zero. If nothing else is left of the name, the name does not exist.
    pub(super) fn dead(&mut self, entry: &Entry, updates: &mut Vec<Update>) {
        if entry.variant.is_none() || self.kept.key(entry.key()).is_some() {
            self.absent(entry.key(), Reason::Expired, updates);
        } else if let Some(name) = self.names.get(entry.name.as_str()).filter(|name| !self.is_left(name)) {
            updates.push(Update::Absent(name.clone(), Reason::Expired));
        }
    }

    /// A resource for everybody has left a wildcard or a collection. Returns the update that publishes this.
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

    /// A name is not wanted any more, so its variants are dropped unless a collection needs them. Returns the updates.
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

    /// A stream begins: the server is not sent the versions of requested names that have variants, so all their variants are in
    /// doubt.
    pub(super) fn doubt_variants(&mut self) {
        let names = self.names.iter().filter(|name| self.kept.has_variants(name.as_str()));
        let held = names.flat_map(|name| self.all_of(name.as_str()));
        self.doubted = held.collect();
    }

    /// Returns all variants of a name, with the resource for everybody; empty if the name has no variants.
    fn all_of(&self, name: &str) -> Vec<Name> {
        let mut all = self.variants_of(name);
        all.extend(self.kept.key(name).filter(|_| !all.is_empty()).cloned());
        all
    }

    /// The content of a requested name is from before the stream, so its variants are in doubt: the server is not sent their
    /// versions.
    pub(super) fn doubt_held(&mut self, name: &Name) {
        let held = self.all_of(name.as_str());
        self.doubted.extend(held);
    }

    /// Removes variants that a response leaves out although it mentions their name. `mentioned`: the keys of its entries. In
    /// delta, only variants from before the stream are removed in this way: any other one is removed by its full name (C-23).
    /// SotW and relays have no such removals.
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

    /// The server has answered for a name, so nothing of it is in doubt any more. Returns what was, whether or not it is still
    /// held.
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
