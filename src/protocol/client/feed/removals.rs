// SPDX-License-Identifier: Apache-2.0
//! What is gone, and what is in error: the server says so, leaves it out, or is silent.
//!
//! Owns the effects on the names of a resource. Knows nothing of the content that may replace it, and not how errors are passed on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Feed;
use crate::client::entry::Entry;
use crate::client::ingest::Message;
use xds::{Changes, Name, Reason, ResourceError, Update};

impl Feed {
    /// The server says that a name does not exist. C-22: a collection is empty then.
    pub(super) fn absent(&mut self, name: &str, reason: Reason, updates: &mut Vec<Update>) {
        if let Some(collection) = self.coverage.collection(name).cloned() {
            if !self.outbound.is_leaving(name) {
                self.empty(&collection, updates);
            }
            return;
        }
        // that some name does not exist says nothing about a resource without a name, which answers to all names.
        if !name.is_empty() && self.kept.canonical(name).is_some_and(Name::is_empty) {
            self.names.known(name);
            return;
        }
        if let Some(canonical) = self.kept.canonical(name).cloned() {
            self.mention_gone(&canonical);
            return self.gone(&canonical, reason, updates);
        }
        // E-06 holds for removed names too: only names that were requested count.
        if let Some(asked) = self.names.get(name).cloned() {
            self.names.known(name);
            self.errors.forget(&asked);
            updates.push(Update::Absent(asked, reason));
        }
        self.errors.absolve(name, updates);
    }

    /// There is nothing of a name, which may be in a collection.
    fn mention_gone(&mut self, name: &Name) {
        let news = self.kept.unsaid_mut().mention(name, false, false);
        if let Some(collection) = self.covering(name.as_str()) {
            self.coverage.mention(&collection, news);
        }
    }

    /// Takes the removed names of a response; `aliases` are those of its resources.
    pub(super) fn remove(&mut self, message: &mut Message, aliases: &BTreeSet<Name>, updates: &mut Vec<Update>) {
        for (name, texts) in std::mem::take(&mut message.removed) {
            // F-07: if the name was requested in several spellings, another one may still exist.
            if !self.outbound.ways().is_empty() && !self.all_absent(&name, texts) {
                continue;
            }
            // The name was that of a removed resource, and is now the alias of another one (C-20).
            if !aliases.contains(&name) || self.kept.key(name.as_str()).is_some() {
                self.absent(name.as_str(), Reason::Said, updates);
            }
        }
    }

    /// F-07: whether a removal in these spellings removes the whole name. It does not if other spellings may still exist.
    fn all_absent(&mut self, name: &Name, texts: BTreeSet<Name>) -> bool {
        let Some(asked) = self.names.get(name.as_str()).cloned() else {
            return true;
        };
        // A name that is not new-style has no other spelling.
        let texts = if texts.is_empty() {
            BTreeSet::from([name.clone()])
        } else {
            texts
        };
        if let Some(held) = self.kept.key(name.as_str()).map(|name| self.kept.text(name)) {
            return texts.contains(held);
        }
        let absent = texts.iter().map(|text| self.outbound.absent(&asked, text.as_str()));
        absent.fold(false, |all, one| all | one)
    }

    /// C-21, E-10: an entry for a resource that does not exist stands for all names in it.
    pub(super) fn missing(&mut self, entry: &Entry, updates: &mut Vec<Update>) {
        let names = entry.names();
        names.for_each(|name| self.absent(name.as_str(), Reason::Said, updates));
    }

    /// The resource with this canonical name is gone. G-13: if the server has deleted it, the relay may keep it anyway.
    pub(super) fn gone(&mut self, canonical: &Name, reason: Reason, updates: &mut Vec<Update>) {
        if reason == Reason::Said && self.features.ignore_resource_deletion {
            if self.kept.key(canonical.as_str()).is_some() {
                let error = Arc::new(ResourceError::deleted());
                self.errors.note(canonical.clone(), error, updates);
            }
            return;
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

    /// There is nothing in a collection.
    fn empty(&mut self, collection: &Name, updates: &mut Vec<Update>) {
        self.names.known(collection.as_str());
        for name in self.members_alone(collection).cloned().collect::<Vec<_>>() {
            self.gone(&name, Reason::Said, updates);
        }
        if self.coverage.finish(collection) {
            updates.push(Update::Whole(collection.clone()));
        }
    }

    /// E-07: the first full state on a stream lacks these names of the first request.
    pub(super) fn lack<'a>(&mut self, names: impl Iterator<Item = &'a Name>, updates: &mut Vec<Update>) {
        for name in names.filter(|name| !name.is_collection()) {
            if self.names.waiting(name.as_str()).is_some() && !self.outbound.is_leaving(name.as_str()) {
                self.absent(name.as_str(), Reason::Said, updates);
            }
        }
    }

    /// E-07: a full state deletes every held resource that is not in it. It does not prove that a name that was never received
    /// does not exist, which the server may not have been asked for when it answered.
    pub(super) fn delete_others(&mut self, mentioned: &BTreeSet<Name>, updates: &mut Vec<Update>) {
        let others = self.kept.names().filter(|name| !mentioned.contains(*name));
        for name in others.cloned().collect::<Vec<_>>() {
            self.mention_gone(&name);
            self.gone(&name, Reason::Said, updates);
            // C-22: a collection whose members are left out is as whole as one whose members are sent.
            if let Some(collection) = self.covering(name.as_str()) {
                self.names.known(collection.as_str());
            }
        }
    }

    /// Takes the errors of a response, and the names of its faulty entries.
    pub(super) fn complain(&mut self, message: &mut Message, updates: &mut Vec<Update>) {
        // The server does not refuse the type any more.
        self.errors.absolve(Name::WILDCARD, updates);
        // G-13: without this feature, errors take nothing from any client.
        let fails = self.features.fail_on_data_errors;
        for name in &message.spoiled {
            if let Some(canonical) = self.kept.canonical(name.as_str()).filter(|_| fails).cloned() {
                self.gone(&canonical, Reason::Said, updates);
            }
            self.reject(name, updates);
        }
        for (name, error) in std::mem::take(&mut message.errors) {
            self.complain_of(name.as_str(), error, updates);
        }
    }

    /// G-15: an entry of this name is faulty; its held content stays.
    fn reject(&mut self, name: &Name, updates: &mut Vec<Update>) {
        let text = name.as_str();
        if self.outbound.is_leaving(text) {
            return;
        }
        let known = self.names.get(text).or_else(|| self.kept.key(text)).cloned();
        let covered = || self.covering(text).is_some() && self.errors.have_room();
        if let Some(name) = known.or_else(|| covered().then(|| name.clone())) {
            self.errors.note(name, Arc::new(ResourceError::rejected()), updates);
        }
    }

    /// E-09: an error ends the wait. NOT_FOUND and PERMISSION_DENIED are about the resource, any other error may pass.
    fn complain_of(&mut self, text: &str, error: ResourceError, updates: &mut Vec<Update>) {
        let asked = self.names.get(text).filter(|_| !self.outbound.is_leaving(text));
        let asked = asked.cloned();
        let counts = match self.kept.canonical(text) {
            Some(_) => self.features.fail_on_data_errors,
            None => asked.is_some(),
        };
        self.names.known(text);
        if error.is_final() && counts {
            self.absent(text, Reason::Said, updates);
        }
        if let Some(name) = asked {
            self.errors.note(name, Arc::new(error), updates);
        }
    }

    /// The server ends the stream whenever it is asked for this type. Every name that still waits gets the error, and so does the wildcard
    /// until it is answered.
    pub(in crate::client) fn refused(&mut self, error: &Arc<ResourceError>) -> Option<Changes> {
        let all = self.asks_wildcard() && !self.coverage.whole(Name::WILDCARD);
        let all = all.then(|| Name::from(Name::WILDCARD));
        let open = all.iter().chain(self.names.open());
        let open = open.filter(|name| self.errors.get(name) != Some(error));
        let mut updates = Vec::new();
        for name in open.cloned().collect::<Vec<_>>() {
            self.errors.note(name, error.clone(), &mut updates);
        }
        self.changes(updates, None, None)
    }

    /// The server cannot be asked for this type. Every name without content stops waiting, as if the server had not answered in
    /// time; `only`: no other name than this one waits.
    pub(in crate::client) fn unserved(&mut self, error: &Arc<ResourceError>, only: Option<&Name>) -> Option<Changes> {
        let one = only.map(|name| self.names.waiting(name.as_str()));
        let all = only.is_none().then(|| self.names.open()).into_iter().flatten();
        let open = one.flatten().into_iter().chain(all);
        let open = open.filter(|name| self.kept.canonical(name.as_str()).is_none());
        let mut updates = Vec::new();
        for name in open.cloned().collect::<Vec<_>>() {
            self.names.known(name.as_str());
            updates.push(Update::Absent(name.clone(), Reason::TimedOut));
            self.errors.note(name, error.clone(), &mut updates);
        }
        self.changes(updates, None, None)
    }

    /// E-08: the server has not answered for a name in time. A collection is answered if it is complete or has any member, but not
    /// by a member from before the stream whose version the server was not sent.
    pub(super) fn overdue(&mut self, name: Name, updates: &mut Vec<Update>) {
        let mut alone = Vec::new();
        if name.is_collection() {
            let versionless = |member: &Name| self.kept.declared(member.as_str()).is_none();
            let undeclared = |member: &&Name| versionless(member) || self.kept.unsaid().is_undeclared(member);
            alone.extend(self.members_alone(&name).filter(undeclared).cloned());
            let spoken =
                self.coverage.whole(name.as_str()) || !self.kept.within(&name).all(|member| undeclared(&member));
            if spoken && alone.is_empty() {
                return;
            }
        }
        // G-14: if the server reports errors itself, its silence says nothing about the resource.
        if self.features.resource_timer_is_transient_error {
            return self.errors.note(name, Arc::new(ResourceError::silence()), updates);
        }
        // K-16: clients that hold a member keep it, because the relay does not know the whole collection any more.
        if !alone.is_empty() {
            alone.iter().for_each(|name| self.gone(name, Reason::TimedOut, updates));
            self.coverage.insert(&name);
            updates.push(Update::Forget(name.clone()));
        }
        // The server was sent the versions of these members, so its silence is correct.
        if name.is_collection() && self.members_alone(&name).next().is_some() {
            return;
        }
        match self.kept.canonical(name.as_str()).cloned() {
            Some(canonical) => self.gone(&canonical, Reason::TimedOut, updates),
            None => updates.push(Update::Absent(name, Reason::TimedOut)),
        }
    }
}
