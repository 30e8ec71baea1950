//! What is gone, and how that is known.
//!
//! Owns what follows for the names of what was held. Refuses to know what came in its place.

use std::collections::BTreeSet;

use super::Feed;
use crate::protocol::client::entry::Entry;
use crate::protocol::client::ingest::Message;
use crate::xds::{Name, Reason, Update};

impl Feed {
    /// The server says that a name does not exist. Whether that was news.
    pub(super) fn absent(&mut self, name: &str, reason: Reason, updates: &mut Vec<Update>) -> bool {
        // that there is nothing of some name says nothing about what has no name and answers to all.
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
        // E-06 holds for names too that are said to be gone.
        if let Some(asked) = self.names.get(name).cloned() {
            self.names.known(name);
            self.errors.remove(name);
            updates.push(Update::Absent(asked, reason));
        }
        self.absolve(name, updates);
        false
    }

    /// Names that the server says are gone, in a response that gave these `aliases` to what it has. Whether that was news.
    pub(super) fn remove(
        &mut self,
        message: &mut Message,
        aliases: &BTreeSet<Name>,
        updates: &mut Vec<Update>,
    ) -> bool {
        let mut news = false;
        for name in std::mem::take(&mut message.removed) {
            // F-07: of a name that is asked for in several ways, another one may still be there.
            if !self.outbound.ways.is_empty() && !self.all_absent(&name, message.removed_as.get(&name)) {
                continue;
            }
            match self.collections.get(&name).cloned() {
                Some(collection) if self.outbound.is_leaving(&name) => drop(collection),
                Some(collection) => self.empty(&collection, updates),
                // What was removed had this name for its own; it is another's from now on (C-20).
                None if aliases.contains(name.as_str()) && self.kept.held(&name).is_none() => {}
                None => news |= self.absent(&name, Reason::Said, updates),
            }
        }
        news
    }

    /// C-21: an entry of a virtual host that does not exist stands for all names in it.
    pub(super) fn missing(&mut self, entry: &Entry, updates: &mut Vec<Update>) -> bool {
        entry.names().fold(false, |news, name| {
            self.absent(name.as_str(), Reason::Said, updates) | news
        })
    }

    /// What is held under a canonical name ends.
    pub(super) fn gone(&mut self, canonical: &Name, reason: Reason, updates: &mut Vec<Update>) {
        // G-13: the one switch that keeps what the server has deleted.
        if reason == Reason::Said && self.features.ignore_resource_deletion {
            return self.keep_deleted(canonical, updates);
        }
        let Some(resource) = self.kept.remove(canonical) else {
            return;
        };
        self.errors.remove(canonical);
        self.outbound.lost(canonical);
        if resource.constraints().is_some() {
            return self.withdraw(resource, reason, updates);
        }
        let asked: Vec<Name> = self.names_of(canonical, resource.aliases()).cloned().collect();
        // What leaves a wildcard is not covered by it any more, and that says nothing about the name itself (K-05).
        if !asked.contains(canonical) {
            updates.push(self.uncovered(&resource));
        }
        for name in asked {
            // E-08: what ends by itself is no answer for the variants that are left.
            if reason != Reason::Expired || !self.kept.has_variants(name.as_str()) {
                self.names.known(name.as_str());
            }
            updates.push(Update::Absent(name, reason));
        }
    }

    /// E-07: of a full state, what is held and not in it is deleted; a name never received is not proved absent by it.
    pub(super) fn delete_others(&mut self, mentioned: &BTreeSet<Name>, updates: &mut Vec<Update>) {
        let others = self.kept.names().filter(|name| !mentioned.contains(*name));
        for name in others.cloned().collect::<Vec<_>>() {
            self.gone(&name, Reason::Said, updates);
        }
    }
}
