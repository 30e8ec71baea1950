// SPDX-License-Identifier: Apache-2.0
//! What a stream reads: for each authority the content of one server, as far as its client may have it.
//!
//! Owns the naive lookup of names, in any spelling. Does not know how a server is chosen, or what a client holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use peers::asked::Asked;
use xds::{Cut, Expiry, Known, Name, Reason, Resource, Slot};

use super::access::Permitted;
use super::body::Type;
use super::book::revision;
use super::names::{canonical, covers, is_collection, is_nothing, owner};

/// What a session reads at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The types that have a source (F-18).
    pub(crate) sourced: BTreeMap<Type, &'static str>,
    /// For each authority and source a zone, and what its view has.
    pub(crate) reads: BTreeMap<Option<String>, (usize, Arc<Cut>)>,
    /// What the client may have (S-01), in a world with rules.
    pub(crate) permitted: Option<Permitted>,
}

/// What is known of a name, for a client that asks for certain names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is not asked for, or it can be no name at all (F-03).
    Unwanted,
    Unknown,
    /// A wildcard that is complete does not have it.
    Uncovered,
    Absent(Reason),
    Present(u64),
}

impl Reading {
    /// The zone that is read for a name.
    pub(crate) fn zone(&self, kind: Type, name: &str) -> Option<usize> {
        self.reads.get(&self.owner(kind, name)).map(|(zone, _)| *zone)
    }

    fn owner(&self, kind: Type, name: &str) -> Option<String> {
        owner(kind, name, &self.sourced)
    }

    fn slot(&self, kind: Type, name: &str) -> Option<&Slot> {
        self.reads.get(&self.owner(kind, name))?.1.slot(kind.type_url())
    }

    /// S-01: whether the client may have this name.
    pub(crate) fn allows(&self, kind: Type, name: &str) -> bool {
        let permitted = self.permitted.as_ref();
        permitted.is_none_or(|permitted| permitted.allows(kind, name))
    }

    fn may_have(&self, kind: Type, resource: &Resource) -> bool {
        self.allows(kind, resource.name().as_str())
    }

    pub(crate) fn is_complete(&self, kind: Type) -> bool {
        let state = self.slot(kind, "").and_then(|slot| slot.wildcard.as_ref());
        state.is_some_and(|state| state.complete())
    }

    /// K-16: the same by the word of the server itself. What an earlier run of the relay knew takes nothing from a client.
    pub(crate) fn is_certain(&self, kind: Type) -> bool {
        let state = self.slot(kind, "").and_then(|slot| slot.wildcard.as_ref());
        state.is_some_and(|state| state.certain())
    }

    /// What is known of a name.
    pub(crate) fn seen(&self, kind: Type, name: &str, want: &Asked) -> Seen {
        if is_nothing(kind, name) {
            return Seen::Unwanted;
        }
        if is_collection(name) && want.names.contains(name) {
            return self.extent(kind, name);
        }
        let canonical = Name::from(canonical(kind, name));
        let slot = self.slot(kind, name);
        let explicit = want.asks(name);
        if !explicit && !want.covers(name) {
            return Seen::Unwanted;
        }
        if !self.reads.contains_key(&self.owner(kind, name)) || !self.allows(kind, name) {
            return Seen::Absent(Reason::Said);
        }
        let Some(slot) = slot else { return Seen::Unknown };
        let state = slot.wildcard.as_ref().filter(|_| !name.starts_with("xdstp:"));
        let covered = state.and_then(|state| state.known(&canonical));
        let named = slot.named.known(&canonical).filter(|_| explicit);
        // S-01: the name may be another one of something that the client may not have.
        let denied = |known: &Known| known.resource().is_some_and(|found| !self.may_have(kind, found));
        match covered.or(named) {
            Some(known) if denied(known) => Seen::Absent(Reason::Said),
            Some(Known::Present(resource)) => Seen::Present(revision(resource)),
            Some(Known::Absent(reason)) => Seen::Absent(*reason),
            None if !explicit && state.is_some_and(|state| state.certain()) => Seen::Uncovered,
            None | Some(Known::Held(_)) => Seen::Unknown,
        }
    }

    /// What is known of a collection: one member, or that there is none.
    fn extent(&self, kind: Type, collection: &str) -> Seen {
        if let Some(member) = self.members(kind, collection).first() {
            return Seen::Present(revision(member));
        }
        if !self.reads.contains_key(&self.owner(kind, collection)) || !self.allows(kind, collection) {
            return Seen::Absent(Reason::Said);
        }
        let known = self
            .slot(kind, collection)
            .and_then(|slot| slot.named.known(&Name::from(collection)));
        match known {
            Some(Known::Absent(reason)) => Seen::Absent(*reason),
            Some(Known::Present(_) | Known::Held(_)) | None => Seen::Unknown,
        }
    }

    /// The known members of a collection.
    pub(crate) fn members(&self, kind: Type, collection: &str) -> Vec<&Arc<Resource>> {
        let slot = self.slot(kind, collection).filter(|_| is_collection(collection));
        let all = slot.into_iter().flat_map(|slot| slot.named.resources());
        all.filter(|member| covers(collection, member.name().as_str()) && self.may_have(kind, member))
            .collect()
    }

    /// The resources of the wildcard.
    pub(crate) fn covered(&self, kind: Type) -> impl Iterator<Item = &Arc<Resource>> {
        let state = self.slot(kind, "").and_then(|slot| slot.wildcard.as_ref());
        let all = state.into_iter().flat_map(|state| state.resources());
        all.filter(move |resource| self.may_have(kind, resource))
    }

    /// Whether the wildcard has a resource of this name.
    pub(crate) fn covers(&self, kind: Type, name: &str) -> bool {
        self.covered(kind).any(|resource| resource.name().as_str() == name)
    }

    /// The resource of a name.
    pub(crate) fn resource(&self, kind: Type, name: &str) -> Option<&Arc<Resource>> {
        let found = self.slot(kind, name)?.resource(&Name::from(canonical(kind, name)));
        found.filter(|found| self.may_have(kind, found))
    }

    /// All names that are wanted, one by one: those that are asked for, and those of the wildcard and of collections.
    pub(crate) fn wanted(&self, kind: Type, want: &Asked) -> Vec<String> {
        let mut wanted: Vec<String> = want.names.iter().cloned().collect();
        let own = |resource: &Arc<Resource>| resource.name().as_str().to_owned();
        if want.wildcard {
            wanted.extend(self.covered(kind).map(own));
        }
        for collection in want.names.iter().filter(|name| is_collection(name)) {
            wanted.extend(self.members(kind, collection).into_iter().map(own));
        }
        wanted
    }

    pub(crate) fn expiry(&self, kind: Type, name: &str) -> Option<Expiry> {
        self.slot(kind, name)?.expiry(&Name::from(canonical(kind, name)))
    }

    /// Whether nothing is known of something that is wanted of an authority for which `counts` is true (G-03).
    pub(crate) fn lacks(&self, wants: &BTreeMap<Type, Arc<Asked>>, counts: impl Fn(Option<&str>) -> bool) -> bool {
        wants.iter().any(|(kind, want)| {
            let counts = |name: &&String| counts(self.owner(*kind, name).as_deref());
            let unknown = |name: &String| self.seen(*kind, name, want) == Seen::Unknown;
            let wildcard = want.wildcard && counts(&&String::new()) && !self.is_complete(*kind);
            wildcard || want.names.iter().filter(counts).any(unknown)
        })
    }
}
