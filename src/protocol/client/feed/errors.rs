//! What errors of names do to the names: those that a server reports (E-09), faulty entries (G-15), and silence (E-08).
//!
//! Owns which names get an error. Does not know how errors are passed on.

use std::sync::Arc;

use super::Feed;
use crate::client::ingest::Message;
use xds::{Changes, Name, Reason, ResourceError, Update};

impl Feed {
    /// Takes the errors of a response, and the names of its faulty entries.
    pub(super) fn complain(&mut self, message: &mut Message, updates: &mut Vec<Update>) {
        // The server does not refuse the type any more.
        self.errors.absolve(Name::WILDCARD, updates);
        if self.errors.drop_content() {
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
        let covered = || (self.wildcard.is_asked() || self.covering(text).is_some()) && self.errors.have_room();
        let Some(name) = known.or_else(|| covered().then(|| Name::from(text))) else {
            return;
        };
        self.errors.note(name, Arc::new(ResourceError::rejected()), updates);
    }

    /// The server ends the stream whenever it is asked for this type. Every name that still waits gets the error, and so does the wildcard
    /// until it is answered.
    pub(in crate::client) fn refused(&mut self, error: &Arc<ResourceError>) -> Option<Changes> {
        let all = self.wildcard.is_asked() && !self.completeness.complete();
        let all = all.then(|| Name::from(Name::WILDCARD));
        let open = all.iter().chain(self.names.open());
        let open = open.filter(|name| self.errors.get(name) != Some(error));
        let open: Vec<Name> = open.cloned().collect();
        let mut updates = Vec::new();
        for name in open {
            self.errors.note(name, error.clone(), &mut updates);
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
            updates.push(Update::Absent(name.clone(), Reason::TimedOut));
            self.errors.note(name, error.clone(), &mut updates);
        }
        self.changes(updates, None, None)
    }

    /// G-13: remembers that the server has deleted a resource which the relay keeps anyway.
    pub(super) fn keep_deleted(&mut self, canonical: &Name, updates: &mut Vec<Update>) {
        if self.kept.resource(canonical.as_str()).is_some() {
            let error = Arc::new(ResourceError::deleted());
            self.errors.note(canonical.clone(), error, updates);
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
            (Some(kept), _) if error.is_final() && self.errors.drop_content() => {
                self.gone(&kept, Reason::Said, updates);
            }
            (None, Some(collection)) if error.is_final() && collection.is_collection() => {
                self.empty(collection, updates);
            }
            (None, Some(name)) if error.is_final() => updates.push(Update::Absent(name.clone(), Reason::Said)),
            (Some(_), _) | (None, _) => {}
        }
        if let Some(name) = asked {
            self.errors.note(name, Arc::new(error), updates);
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
        if self.errors.include_silence() {
            return self.errors.note(name, Arc::new(ResourceError::silence()), updates);
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
