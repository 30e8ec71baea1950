//! One type on one upstream stream: the wanted names, the held content, and how responses change it.
//!
//! Owns what concerns several of its parts at once. Knows nothing of the dialect's messages and the other types.

mod absence;
mod clients;
mod errors;
mod exchange;
mod members;
mod moved;
mod name_errors;
mod requests;
mod responses;
mod restored;
mod streams;
mod times;
mod whole;
mod written;

use std::sync::Arc;
use std::time::Instant;

use super::awaited::{Awaited, Patience};
use super::collections::Collections;
use super::completeness::Completeness;
use super::entry::Entry;
use super::kept::{Brought, Kept};
use super::outbound::Outbound;
use exchange::Exchange;
pub(super) use exchange::Silence;
pub(crate) use moved::MovedName;
pub(super) use moved::named;
use name_errors::NameErrors;
use whole::Wildcard;
use xds::{Changes, Name, Reason, Resource, ServerFeatures, ServerWords, Target, TypeUrl, Update};

/// One type on one stream.
///
/// Invariant: either a wildcard is wanted or names are, never both; everything in `kept` is wanted.
#[derive(Debug)]
pub(super) struct Feed {
    type_url: TypeUrl,
    outbound: Outbound,
    exchange: Exchange,
    wildcard: Wildcard,
    completeness: Completeness,
    names: Awaited,
    collections: Collections,
    kept: Kept,
    /// The errors of wanted names.
    errors: NameErrors,
}

impl Feed {
    pub(super) fn new(type_url: TypeUrl, patience: Patience, features: ServerFeatures) -> Self {
        Self {
            type_url,
            outbound: Outbound::default(),
            exchange: Exchange::new(patience),
            wildcard: Wildcard::Unwanted,
            completeness: Completeness::new(),
            names: Awaited::default(),
            collections: Collections::default(),
            kept: Kept::default(),
            errors: NameErrors::new(features),
        }
    }

    pub(super) const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    pub(super) const fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// Returns the same, for what has nothing to do with content.
    pub(super) const fn outbound_mut(&mut self) -> &mut Outbound {
        &mut self.outbound
    }

    pub(super) const fn wanted(&self) -> bool {
        self.wildcard.is_wanted() || !self.names.is_empty()
    }

    /// Returns what the server said about the resource of this name, if it is held.
    pub(super) fn words(&self, name: &Name) -> Option<ServerWords> {
        let key = self.kept.canonical(name.as_str())?;
        let (_, version) = self.kept.held(key.as_str())?;
        Some(self.exchange.words(version))
    }

    /// Whether the server's first answer has left out what it was sent versions of, and it is not known what that means.
    pub(super) fn is_unsure(&self) -> bool {
        self.completeness.is_unsure()
    }

    /// While it is not known what an answer that left names out means, returns a resource that it had, what is asked for to find that out,
    /// and what is brought.
    pub(super) fn sample(&self) -> Option<(Arc<Resource>, Target, Vec<Brought>)> {
        let sample = self.kept.sample().filter(|_| self.is_unsure())?;
        let name = sample.0.name().clone();
        Some(match self.wildcard.is_asked() {
            true => (sample.0, Target::Wildcard, self.kept.brought().collect()),
            false => (sample.0.clone(), Target::Name(name), vec![sample]),
        })
    }

    /// All of this is held, as if an answer had just ended.
    pub(super) fn bring_all(&mut self, brought: &[Brought]) {
        self.completeness.finish();
        for (resource, version) in brought {
            self.kept.hold(resource, version.clone());
        }
    }

    /// It is known now whether the server ignores the versions that it is sent.
    pub(super) fn tried(&mut self, ignores: bool) -> Option<Changes> {
        let gone = self.completeness.tried(ignores);
        let mut updates = Vec::new();
        gone.iter().for_each(|name| self.gone(name, Reason::Said, &mut updates));
        self.changes(updates, None, None)
    }

    /// Whether the server has said anything about the type since then, on this stream.
    pub(super) fn has_heard_since(&self, then: Instant) -> bool {
        self.exchange.has_heard_since(then)
    }

    /// Returns whether nothing is known yet of something that is wanted.
    pub(super) fn lacks(&self) -> bool {
        let wildcard = self.wildcard.is_wanted() && !self.completeness.complete();
        wildcard && self.kept.names().next().is_none() || self.names.lacks()
    }

    /// A name is wanted from now on. If it was wanted already, it is requested in one more spelling.
    pub(super) fn want(&mut self, name: &Name, written: Option<&Name>) -> Vec<Update> {
        let known = !self.names.insert(name);
        match self.write(name, written, known) {
            Some(updates) => return updates,
            None if known => return Vec::new(),
            None => {}
        }
        self.outbound.join(name.clone());
        if name.is_collection() {
            self.collections.insert(name);
        }
        self.expect(name);
        Vec::new()
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
            self.outbound.forget_answer();
        }
        if name.is_collection() {
            return self.unwant_collection(name);
        }
        let Some(canonical) = self.kept.canonical(name.as_str()).cloned() else {
            return vec![Update::Forget(name.clone())];
        };
        let resource = self.kept.resource(canonical.as_str());
        let others = resource
            .is_some_and(|resource| self.names_of(resource.name(), resource.aliases()).next().is_some())
            || self.collections.covering(canonical.as_str()).is_some();
        match (others, canonical == *name) {
            // Another requested name still needs the resource.
            (true, true) => Vec::new(),
            (true, false) => vec![Update::Forget(name.clone())],
            (false, same) => {
                self.kept.remove(&canonical);
                let alias = (!same).then(|| Update::Forget(name.clone()));
                std::iter::once(Update::Forget(canonical)).chain(alias).collect()
            }
        }
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
        // A name that was given up and then requested again ignores what was sent before that.
        self.names_of(&entry.name, &entry.aliases)
            .filter(|name| !self.outbound.is_leaving(name.as_str()))
    }

    fn changes(&self, updates: Vec<Update>, complete: Option<bool>, answered: Option<bool>) -> Option<Changes> {
        let any = !updates.is_empty() || complete.is_some() || answered.is_some();
        (any && !self.wildcard.is_hidden()).then(|| Changes {
            type_url: self.type_url.clone(),
            wildcard: self.wildcard.is_asked(),
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

    /// Each view has one for each of its types, and there may be very many views. The allocator takes 1,024 bytes for it.
    #[test]
    fn what_every_type_of_every_view_takes() {
        assert!(size_of::<Feed>() <= 1056, "{}", size_of::<Feed>());
    }
}
