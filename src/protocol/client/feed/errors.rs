//! Errors of names: those that a server reports (E-09), faulty entries, and the effects of the server's features (G-13, G-14,
//! G-15).
//!
//! Owns the errors that are remembered. Does not know how they are passed on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Feed;
use crate::client::ingest::Message;
use xds::{Changes, Name, Reason, ResourceError, Trouble, Update};

/// At most this many faulty names are remembered among those that nobody requested by name.
const REJECTED_MAX: usize = 1024;

impl Feed {
    /// Takes the errors of a response, and the names of its faulty entries.
    pub(super) fn complain(&mut self, message: &mut Message, updates: &mut Vec<Update>) {
        // The server does not refuse the type any more.
        self.absolve(Name::WILDCARD, updates);
        // G-13: errors take nothing from any client, unless the feature `fail_on_data_errors` of the server says so.
        if self.features.fail_on_data_errors {
            for text in &message.spoiled {
                if let Some(canonical) = self.kept.canonical(text).cloned() {
                    self.gone(&canonical, Reason::Said, updates);
                }
            }
        }
        for text in &message.spoiled {
            self.reject(text, updates);
        }
        for (text, error) in std::mem::take(&mut message.errors) {
            self.complain_of(&text, error, updates);
        }
    }

    /// G-15: an entry of this name is faulty; its held content stays.
    fn reject(&mut self, text: &str, updates: &mut Vec<Update>) {
        if self.outbound.is_leaving(text) {
            return;
        }
        let known = self.names.get(text).or_else(|| self.kept.key(text)).cloned();
        let covered = || (self.wildcard || self.covering(text).is_some()) && self.errors.len() < REJECTED_MAX;
        let Some(name) = known.or_else(|| covered().then(|| Name::from(text))) else {
            return;
        };
        self.remember(name, ResourceError::rejected(), updates);
    }

    /// G-15: a complete response does not mention these names any more, and nobody requested them by name, so their faults are
    /// forgotten.
    pub(super) fn absolve_others(&mut self, mentioned: &BTreeSet<Name>, updates: &mut Vec<Update>) {
        let rejected = self.errors.iter().filter(|(name, error)| {
            let alone = !self.names.contains(name.as_str());
            alone && error.trouble == Trouble::Rejected && !mentioned.contains(name.as_str())
        });
        for name in rejected.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.absolve(name.as_str(), updates);
        }
    }

    /// The server ends the stream whenever it is asked for this type. Every name that still waits gets the error, and so does the wildcard
    /// until it is answered.
    pub(in crate::client) fn refused(&mut self, error: &Arc<ResourceError>) -> Option<Changes> {
        let all = (self.wildcard && !self.completeness.complete()).then(|| Name::from(Name::WILDCARD));
        let open = all.iter().chain(self.names.open());
        let open = open.filter(|name| self.errors.get(*name) != Some(error));
        let open: Vec<Name> = open.cloned().collect();
        let mut updates = Vec::new();
        for name in open {
            self.errors.insert(name.clone(), error.clone());
            updates.push(Update::Error(name, Some(error.clone())));
        }
        self.changes(updates, None, None)
    }

    /// The server cannot be asked for this type. Every name without content stops waiting, as if the server had not answered in
    /// time; `only`: no other name than this one waits.
    pub(in crate::client) fn unserved(&mut self, error: &Arc<ResourceError>, only: Option<&Name>) -> Option<Changes> {
        let held = |name: &&Name| self.kept.canonical(name.as_str()).is_some();
        let open: Vec<Name> = match only {
            Some(name) => self
                .names
                .waiting(name.as_str())
                .filter(|name| !held(name))
                .cloned()
                .into_iter()
                .collect(),
            None => self.names.open().filter(|name| !held(name)).cloned().collect(),
        };
        let mut updates = Vec::new();
        for name in open {
            self.names.known(name.as_str());
            self.errors.insert(name.clone(), error.clone());
            updates.push(Update::Absent(name.clone(), Reason::TimedOut));
            updates.push(Update::Error(name, Some(error.clone())));
        }
        self.changes(updates, None, None)
    }

    /// G-13: remembers that the server has deleted a resource which the relay keeps anyway.
    pub(super) fn keep_deleted(&mut self, canonical: &Name, updates: &mut Vec<Update>) {
        if self.kept.resource(canonical.as_str()).is_some() {
            self.remember(canonical.clone(), ResourceError::deleted(), updates);
        }
    }

    /// E-09: an error ends the wait. NOT_FOUND and PERMISSION_DENIED are about the resource, any other error may pass.
    fn complain_of(&mut self, text: &str, error: ResourceError, updates: &mut Vec<Update>) {
        let asked = self
            .names
            .get(text)
            .filter(|_| !self.outbound.is_leaving(text))
            .cloned();
        let kept = self.kept.canonical(text).cloned();
        self.names.known(text);
        match (kept, &asked) {
            (Some(kept), _) if error.is_final() && self.features.fail_on_data_errors => {
                self.gone(&kept, Reason::Said, updates);
            }
            (None, Some(collection)) if error.is_final() && collection.is_collection() => {
                self.empty(collection, updates);
            }
            (None, Some(name)) if error.is_final() => updates.push(Update::Absent(name.clone(), Reason::Said)),
            (Some(_), _) | (None, _) => {}
        }
        if let Some(name) = asked {
            self.remember(name, error, updates);
        }
    }

    fn remember(&mut self, name: Name, error: ResourceError, updates: &mut Vec<Update>) {
        let error = Arc::new(error);
        self.errors.insert(name.clone(), error.clone());
        updates.push(Update::Error(name, Some(error)));
    }

    /// The server has sent something else for a name, so its error is forgotten.
    pub(super) fn absolve(&mut self, text: &str, updates: &mut Vec<Update>) {
        if let Some((name, _)) = self.errors.remove_entry(text) {
            updates.push(Update::Error(name, None));
        }
    }

    /// E-08: the server has not answered for a name in time. A collection is answered if it is complete or has any member, but not
    /// by a member from before the stream whose version the server was not sent.
    pub(super) fn overdue(&mut self, name: Name, updates: &mut Vec<Update>) {
        let mut alone = Vec::new();
        if name.is_collection() {
            let versionless = |member: &Name| self.kept.declared(member.as_str()).is_none();
            let undeclared = |member: &&Name| versionless(member) || self.collections.undeclared(&name, member);
            alone.extend(self.members_alone(&name).filter(undeclared).cloned());
            let spoken = self.collections.whole(&name) || !self.kept.within(&name).all(|member| undeclared(&member));
            if spoken && alone.is_empty() {
                return;
            }
        }
        // G-14: if the server reports errors itself, its silence says nothing about the resource.
        if self.features.resource_timer_is_transient_error {
            return self.remember(name, ResourceError::silence(), updates);
        }
        // K-16: clients that hold a member keep it, because the relay does not know the whole collection any more.
        if !alone.is_empty() {
            self.forget_members(&name, &alone, updates);
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
