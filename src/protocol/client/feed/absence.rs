//! Removals: which names are gone, and how the relay knows.
//!
//! Owns the effects of a removal on the names of the resource. Knows nothing of the content that may replace it.

use std::collections::BTreeSet;

use super::Feed;
use crate::client::entry::Entry;
use crate::client::ingest::Message;
use xds::{Name, Reason, Update};

impl Feed {
    /// The server says that a name does not exist. Returns whether that confirms something that was in doubt.
    pub(super) fn absent(&mut self, name: &str, reason: Reason, updates: &mut Vec<Update>) -> bool {
        // that some name does not exist says nothing about a resource without a name, which answers to all names.
        if !name.is_empty() && self.kept.canonical(name).is_some_and(Name::is_empty) {
            self.names.known(name);
            return false;
        }
        if let Some(canonical) = self.kept.canonical(name).cloned() {
            self.gone(&canonical, reason, updates);
            if let Some(collection) = self.covering(canonical.as_str()) {
                self.collections.mention(&collection, &canonical, false, false);
            }
            return self.completeness.confirm(&canonical, false);
        }
        // E-06 holds for removed names too: only names that were requested count.
        if let Some(asked) = self.names.get(name).cloned() {
            self.names.known(name);
            self.errors.forget(&asked);
            updates.push(Update::Absent(asked, reason));
        }
        self.errors.absolve(name, updates);
        false
    }

    /// Takes the removed names of a response; `aliases` are those of its resources. Returns whether any removal confirms
    /// something that was in doubt.
    pub(super) fn remove(
        &mut self,
        message: &mut Message,
        aliases: &BTreeSet<Name>,
        updates: &mut Vec<Update>,
    ) -> bool {
        let mut news = false;
        for name in std::mem::take(&mut message.removed) {
            // F-07: if the name was requested in several spellings, another one may still exist.
            if !self.outbound.ways().is_empty() && !self.all_absent(&name, message.removed_as.get(&name)) {
                continue;
            }
            match self.collections.get(&name).cloned() {
                Some(collection) if self.outbound.is_leaving(&name) => drop(collection),
                Some(collection) => self.empty(&collection, updates),
                // The name was that of a removed resource, and is now the alias of another one (C-20).
                None if aliases.contains(name.as_str()) && self.kept.held(&name).is_none() => {}
                None => news |= self.absent(&name, Reason::Said, updates),
            }
        }
        news
    }

    /// C-21, E-10: an entry for a resource that does not exist stands for all names in it.
    pub(super) fn missing(&mut self, entry: &Entry, updates: &mut Vec<Update>) -> bool {
        entry.names().fold(false, |news, name| {
            self.absent(name.as_str(), Reason::Said, updates) | news
        })
    }

    /// The resource with this canonical name is gone.
    pub(super) fn gone(&mut self, canonical: &Name, reason: Reason, updates: &mut Vec<Update>) {
        if reason == Reason::Said && self.errors.keep_deleted() {
            return self.keep_deleted(canonical, updates);
        }
        let Some(resource) = self.kept.remove(canonical) else {
            return;
        };
        self.errors.forget(canonical);
        self.outbound.lost(canonical);
        let asked: Vec<Name> = self.names_of(canonical, resource.aliases()).cloned().collect();
        // A resource that leaves a wildcard is only not covered by it any more; the name may still exist (K-05).
        if !asked.contains(canonical) {
            updates.push(Update::Forget(canonical.clone()));
        }
        for name in asked {
            self.names.known(name.as_str());
            updates.push(Update::Absent(name, reason));
        }
    }

    /// E-07: a full state deletes every held resource that is not in it. It does not prove that a name that was never received
    /// does not exist.
    pub(super) fn delete_others(&mut self, mentioned: &BTreeSet<Name>, updates: &mut Vec<Update>) {
        let others = self.kept.names().filter(|name| !mentioned.contains(*name));
        for name in others.cloned().collect::<Vec<_>>() {
            self.gone(&name, Reason::Said, updates);
            // C-22: a collection whose members are left out is as whole as one whose members are sent.
            if let Some(collection) = self.covering(name.as_str()) {
                self.names.known(collection.as_str());
                self.collections.mention(&collection, &name, false, false);
            }
        }
    }
}
