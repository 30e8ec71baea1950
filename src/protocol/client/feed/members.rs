//! The effects of responses and time on the collections of a type (C-22).
//!
//! Owns the members that are held only for a collection. Knows nothing of the other names.

use std::time::Instant;

use super::Feed;
use crate::client::completeness::{Heard, Settled};
use xds::{Name, Reason, Update};

impl Feed {
    /// A collection is not wanted any more. Drops its members, except those that were requested by name.
    pub(super) fn unwant_collection(&mut self, collection: &Name) -> Vec<Update> {
        self.collections.remove(collection);
        let mut updates = vec![Update::Forget(collection.clone())];
        for name in self.members_alone(collection).cloned().collect::<Vec<_>>() {
            self.errors.forget(&name);
            self.kept.remove(&name);
            updates.push(Update::Forget(name));
        }
        let alone = |name: &&Name| !self.names.contains(name.as_str()) && self.kept.resource(name.as_str()).is_none();
        let rejected = self.errors.within(collection).filter(alone);
        for name in rejected.cloned().collect::<Vec<_>>() {
            self.errors.absolve(name.as_str(), &mut updates);
        }
        updates
    }

    /// Returns the collection that an entry of this name belongs to, if it is still wanted.
    pub(super) fn covering(&self, name: &str) -> Option<Name> {
        let collection = self.collections.covering(name)?;
        (!self.outbound.is_leaving(collection.as_str())).then(|| collection.clone())
    }

    /// A name is wanted from now on. E-08: it is not waited for if its content is held already, because a server may not send that
    /// again (C-14). A member from before the stream whose version the server was not sent is waited for: if the server still has
    /// it, it sends it.
    pub(super) fn expect(&mut self, name: &Name) {
        let Some(held) = self.kept.canonical(name.as_str()).cloned() else {
            return;
        };
        if let Some(collection) = self.collections.covering(held.as_str()).cloned() {
            if self.collections.undeclared(&collection, &held) {
                return;
            }
            self.collections.asked(&collection, &held);
        }
        self.names.rest(name.as_str());
    }

    /// C-22: the server says that a collection is empty.
    pub(super) fn empty(&mut self, collection: &Name, updates: &mut Vec<Update>) {
        self.names.known(collection.as_str());
        for name in self.members_alone(collection).cloned().collect::<Vec<_>>() {
            self.gone(&name, Reason::Said, updates);
        }
        if self.collections.finish(collection) {
            updates.push(Update::Whole(collection.clone()));
        }
    }

    /// The present delta response is read to its end.
    pub(super) fn heard(&mut self, heard: Heard, now: Instant, updates: &mut Vec<Update>) {
        let quiet = self.exchange.patience().unlearned();
        let settled = self.collections.heard(heard, quiet, now);
        self.members_settled(settled, updates);
    }

    pub(super) fn members_settled(&mut self, settled: Vec<(Name, Settled)>, updates: &mut Vec<Update>) {
        for (collection, settled) in settled {
            for name in settled.gone {
                self.gone(&name, Reason::Said, updates);
            }
            if settled.complete {
                updates.push(Update::Whole(collection));
            }
        }
    }

    /// The server does not answer for a collection, and was not sent the versions of these members.
    pub(super) fn forget_members(&mut self, collection: &Name, members: &[Name], updates: &mut Vec<Update>) {
        for name in members {
            self.gone(name, Reason::TimedOut, updates);
        }
        self.collections.remove(collection);
        self.collections.insert(collection);
        updates.push(Update::Forget(collection.clone()));
    }

    /// Returns the members that were not requested by name.
    pub(super) fn members_alone<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        self.kept.within(collection).filter(|name| {
            let aliases = self.kept.resource(name.as_str()).map(|resource| resource.aliases());
            self.names_of(name, aliases.unwrap_or_default()).next().is_none()
        })
    }
}
