// SPDX-License-Identifier: Apache-2.0
//! One type on one upstream stream: the wanted names, the held content, and how responses change it.
//!
//! Owns what is wanted, and what of the content is held for whom. Knows nothing of the dialect's messages and the other types.

mod exchange;
mod moved;
mod name_errors;
mod removals;
mod reports;
mod requests;
mod responses;
mod streams;

use std::sync::Arc;
use std::time::Instant;

use super::awaited::Awaited;
use super::coverage::{Coverage, Wildcard};
use super::doubt::Doubt;
use super::entry::Entry;
use super::kept::{Brought, Kept};
use super::late::RejectionReport;
use super::outbound::Outbound;
use super::rhythm::Patience;
use arcstr::ArcStr;
use exchange::Exchange;
pub(crate) use exchange::UNANSWERED;
pub(crate) use moved::MovedName;
pub(super) use moved::named;
use name_errors::NameErrors;
use xds::{Changes, Name, Reason, Resource, ServerFeatures, ServerWords, Target, TypeUrl, Update};

/// One type on one stream.
///
/// Invariant: either a wildcard is wanted or names are, never both; everything in `kept` is wanted.
#[derive(Debug)]
pub(crate) struct Feed {
    type_url: TypeUrl,
    outbound: Outbound,
    exchange: Exchange,
    coverage: Coverage,
    names: Awaited,
    kept: Kept,
    /// The errors of wanted names, and the features of the server that say what its errors mean (G-13, G-14).
    errors: NameErrors,
    features: ServerFeatures,
    /// E-24: what clients reject, if any has rejected anything.
    late: Option<Box<RejectionReport>>,
}

impl Feed {
    pub(super) fn new(type_url: TypeUrl, patience: Patience, features: ServerFeatures) -> Self {
        Self {
            type_url,
            outbound: Outbound::default(),
            exchange: Exchange::new(patience.answer),
            coverage: Coverage::new(patience.quiet),
            names: Awaited::default(),
            kept: Kept::default(),
            errors: NameErrors::default(),
            features,
            late: None,
        }
    }

    /// How many resources are held.
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }

    pub(super) const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    pub(super) const fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    pub(super) fn wanted(&self) -> bool {
        self.coverage.wildcard() == Wildcard::Wanted || self.has_names()
    }

    pub(crate) const fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    pub(super) fn wants_name(&self, name: &Name) -> bool {
        self.names.contains(name.as_str())
    }

    pub(crate) const fn asks_wildcard(&self) -> bool {
        self.coverage.wildcard().is_asked()
    }

    /// Whether it must be remembered on this stream: something is wanted or to be sent, or no client has invented the type, so that the server
    /// may go on sending what nobody wants, and is asked for the type in another form the second time (E-17, E-20).
    pub(super) fn is_needed(&self) -> bool {
        self.type_url.traits().wildcard || self.wanted() || self.outbound.changed() || !self.outbound.acks().is_empty()
    }

    /// Returns whether nothing is known yet of something that is wanted.
    pub(super) fn lacks(&self) -> bool {
        self.coverage.lacks_all() && self.kept.is_empty() || self.names.lacks()
    }

    /// Returns what is held.
    pub(super) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.kept.resources()
    }

    /// Whether a resource is held as it was.
    pub(super) fn holds(&self, one: &Arc<Resource>) -> bool {
        let now = self.kept.resource(one.name().as_str());
        now.is_some_and(|now| Arc::ptr_eq(now, one))
    }

    /// Returns what the server said about the resource of this name, if it is held.
    pub(super) fn words(&self, name: &Name) -> Option<ServerWords> {
        let key = self.kept.canonical(name.as_str())?;
        let (_, version) = self.kept.held(key.as_str())?;
        Some(self.exchange.words(version))
    }

    /// Returns when the server has last said anything about the type on this stream.
    pub(super) const fn heard(&self) -> Option<Instant> {
        self.exchange.heard()
    }

    /// Whether it has since then.
    pub(crate) fn has_heard_since(&self, then: Instant) -> bool {
        self.heard().is_some_and(|heard| heard > then)
    }

    /// Returns since when the server owes the first answer of this stream.
    pub(super) fn unanswered(&self) -> Option<Instant> {
        let first = self.outbound.opened().filter(|_| self.heard().is_none());
        first.map(|first| first.at)
    }

    /// Whether the server has sent this resource on this stream. An answer that there is none does not count: such a name may be what
    /// silences the server elsewhere.
    pub(crate) fn has_heard_of(&self, name: &Name) -> bool {
        self.names.has_heard(name) && self.kept.canonical(name.as_str()).is_some()
    }

    /// Whether the server's first answer has left out what it was sent versions of, and it is not known what that means.
    pub(super) fn is_unsure(&self) -> bool {
        self.kept.unsaid().is_unsure()
    }

    /// Returns the question that finds out what an answer that left names out means, if there is a resource for it.
    pub(super) fn doubt_versions(&self) -> Option<Doubt> {
        let sample = self.kept.sample()?;
        let (resource, name) = (sample.0.clone(), sample.0.name().clone());
        let (target, brought) = match self.asks_wildcard() {
            true => (Target::Wildcard, self.kept.brought().collect()),
            false => (Target::Name(name), vec![sample]),
        };
        Some(Doubt::of_versions(self.wanting(target, None), resource, brought))
    }

    /// All of this is held, as if an answer had just ended.
    pub(super) fn bring_all(&mut self, brought: &[Brought]) {
        self.coverage.finish(&Name::from(Name::WILDCARD));
        brought.iter().cloned().for_each(|one| self.kept.hold(one));
    }

    /// It is known now whether the server ignores the versions that it is sent.
    pub(super) fn tried(&mut self, ignores: bool) -> Option<Changes> {
        let gone = self.kept.unsaid_mut().decide(ignores);
        let mut updates = Vec::new();
        gone.iter().for_each(|name| self.gone(name, Reason::Said, &mut updates));
        self.changes(updates, None, None)
    }

    /// The wildcard is wanted from now on. If the server was still sending it, returns the content at once.
    pub(super) fn want_wildcard(&mut self) -> Option<Changes> {
        match self.coverage.want_all() {
            Wildcard::Wanted => None,
            Wildcard::Unwanted => {
                self.outbound.join(&Name::from(Name::WILDCARD));
                None
            }
            Wildcard::Hidden => {
                let complete = self.coverage.whole(Name::WILDCARD).then_some(true);
                let answered = self.outbound.is_answered().then_some(true);
                let updates = self.kept.puts().chain(self.errors.updates()).collect();
                self.changes(updates, complete, answered)
            }
        }
    }

    /// The wildcard is not wanted any more. One stream cannot end it and begin it again (E-17): an answer to the first request
    /// could be mistaken for one to the second, and some servers do not answer the second. So the server goes on sending it, and
    /// the relay hides it.
    pub(super) fn unwant_wildcard(&mut self) {
        if self.outbound.has_told(Name::WILDCARD) {
            self.coverage.hide_all();
        } else {
            self.drop_wildcard();
            self.outbound.leave(&Name::from(Name::WILDCARD));
        }
    }

    fn drop_wildcard(&mut self) {
        self.coverage.drop_all();
        self.kept = Kept::default();
        self.errors.clear();
        self.outbound.acks_mut().accept(ArcStr::new());
    }

    /// A name is wanted from now on. If it was wanted already, it is requested in one more spelling.
    pub(super) fn want(&mut self, name: &Name, written: Option<&Name>) -> Vec<Update> {
        let known = !self.names.insert(name);
        let held = self.kept.canonical(name.as_str()).is_some();
        let asked = self.outbound.stays(name);
        self.outbound.ways_mut().add(name, written, known, held);
        let more = !self.names.is_unlisted(name) && self.outbound.join(name);
        // Only the spelling may be new.
        if known {
            if !more || !asked || name.is_collection() || held {
                return Vec::new();
            }
            // What the server said to another spelling says nothing about this one.
            self.names.remove(name);
            self.names.insert(name);
            return vec![Update::Forget(name.clone())];
        }
        if name.is_collection() {
            self.coverage.insert(name);
        }
        self.expect(name);
        Vec::new()
    }

    /// A name is wanted from now on. E-08: it is not waited for if its content is held already, because a server may not send that
    /// again (C-14). A member from before the stream whose version the server was not sent is waited for: if the server still has
    /// it, it sends it.
    fn expect(&mut self, name: &Name) {
        let Some(held) = self.kept.canonical(name.as_str()).cloned() else {
            return;
        };
        if self.coverage.covering(held.as_str()).is_some() {
            if self.kept.unsaid().is_undeclared(&held) {
                return;
            }
            self.kept.unsaid_mut().ask(&held);
        }
        self.names.rest(name.as_str());
    }

    /// A name is not wanted any more: its content is forgotten.
    pub(super) fn unwant(&mut self, name: &Name) -> Vec<Update> {
        if !self.names.remove(name) {
            return Vec::new();
        }
        self.outbound.leave(name);
        self.errors.forget(name);
        if !self.wanted() {
            self.outbound.give_up();
        }
        if name.is_collection() {
            return self.unwant_collection(name);
        }
        let Some(canonical) = self.kept.canonical(name.as_str()).cloned() else {
            return vec![Update::Forget(name.clone())];
        };
        let needed = self.is_named(&canonical) || self.coverage.covering(canonical.as_str()).is_some();
        let (same, mut updates) = (canonical == *name, Vec::new());
        if !needed {
            self.kept.remove(&canonical);
            updates.push(Update::Forget(canonical));
        }
        updates.extend((!same).then(|| Update::Forget(name.clone())));
        updates
    }

    /// A collection is not wanted any more. Drops its members, except those that were requested by name.
    fn unwant_collection(&mut self, collection: &Name) -> Vec<Update> {
        self.coverage.remove(collection);
        let mut updates = vec![Update::Forget(collection.clone())];
        for name in self.members_alone(collection).cloned().collect::<Vec<_>>() {
            self.errors.forget(&name);
            self.kept.remove(&name);
            updates.push(Update::Forget(name));
        }
        let alone = |name: &&Name| !self.wants_name(name) && self.kept.resource(name.as_str()).is_none();
        let rejected = self.errors.within(collection).filter(alone);
        for name in rejected.cloned().collect::<Vec<_>>() {
            self.errors.absolve(name.as_str(), &mut updates);
        }
        updates
    }

    /// Returns the collection that an entry of this name belongs to, if it is still wanted.
    fn covering(&self, name: &str) -> Option<Name> {
        let collection = self.coverage.covering(name)?;
        (!self.outbound.is_leaving(collection.as_str())).then(|| collection.clone())
    }

    /// Returns the members that were not requested by name.
    fn members_alone<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        self.kept.within(collection).filter(|name| !self.is_named(name))
    }

    /// Whether a held resource was requested by name.
    fn is_named(&self, canonical: &Name) -> bool {
        let aliases = self
            .kept
            .resource(canonical.as_str())
            .map(|resource| resource.aliases());
        self.names_of(canonical, aliases.unwrap_or_default()).next().is_some()
    }

    /// Returns the requested names that this resource answers. A-09: a resource without a name answers all names that no other
    /// resource has.
    fn names_of<'a>(&'a self, canonical: &'a Name, aliases: &'a [Name]) -> impl Iterator<Item = &'a Name> {
        let any = canonical.is_empty().then(|| self.names.iter()).into_iter().flatten();
        let any = any.filter(|name| name.is_empty() || self.kept.key(name.as_str()).is_none());
        // Names mostly end in order: then the last ones are still requested.
        let own = std::iter::once(canonical).chain(aliases.iter().rev());
        own.filter(|name| !name.is_empty() && self.names.contains(name.as_str()))
            .chain(any)
    }

    fn names_asked<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Name> {
        // A name that was given up and then requested again ignores what was sent before that. One that is to leave its list was not given up.
        self.names_of(&entry.name, &entry.aliases)
            .filter(|name| !self.outbound.is_leaving(name.as_str()) || self.names.is_unlisted(name))
    }

    fn changes(&self, updates: Vec<Update>, complete: Option<bool>, answered: Option<bool>) -> Option<Changes> {
        let any = !updates.is_empty() || complete.is_some() || answered.is_some();
        (any && self.coverage.wildcard() != Wildcard::Hidden).then(|| Changes {
            type_url: self.type_url.clone(),
            wildcard: self.asks_wildcard(),
            updates,
            complete,
            answered,
            phase: self.exchange.phase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each view has one for each of its types, and there may be very many views. The allocator takes 1,280 bytes for it.
    #[test]
    fn what_every_type_of_every_view_takes() {
        assert!(size_of::<Feed>() <= 1280, "{}", size_of::<Feed>());
    }
}
