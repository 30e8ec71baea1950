//! What a stream reads: the content of one server for each authority.
//!
//! Owns the naive lookup of names, in any spelling. Does not know how a server is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds::{Cut, Expiry, Known, Name, Reason, Resource, Slot, State, Version};

use super::access::Permitted;
use super::body::Type;
use super::feed::Zone;
use super::names::{authority, canonical, is_nothing};
use super::witness::{Book, Place};

/// What a session reads: for each authority the view of one server.
pub(crate) struct Reading<'a> {
    pub(crate) zones: &'a [Zone],
    pub(crate) reads: BTreeMap<Option<String>, (usize, Arc<Cut>)>,
    /// The client's parameter (TP2).
    pub(crate) own: Option<&'static str>,
    /// What the client may have (S-01), in a world with rules.
    pub(crate) permitted: Option<Permitted<'a>>,
    /// What it may have of wildcards.
    pub(crate) parts: BTreeMap<Type, Arc<State>>,
}

/// One type of a reading.
#[derive(Clone, Copy)]
pub(crate) struct Lens<'a> {
    reading: &'a Reading<'a>,
    kind: Type,
}

static NOWHERE: Known = Known::Absent(Reason::Said);

impl<'a> Reading<'a> {
    /// Creates the reading of a stream for which there is only one server.
    pub(crate) fn alone(
        zones: &'a [Zone],
        zone: usize,
        own: Option<&'static str>,
        permitted: Option<Permitted<'a>>,
    ) -> Self {
        let cut = zones[zone].view.cut();
        let part = |kind: Type| Some((kind, permitted?.part(kind, &cut)?));
        Self {
            zones,
            parts: Type::ALL.into_iter().filter_map(part).collect(),
            reads: BTreeMap::from([(None, (zone, cut))]),
            own,
            permitted,
        }
    }

    pub(crate) fn lens(&self, kind: Type) -> Lens<'_> {
        Lens { reading: self, kind }
    }

    /// The book of the server that is read for a name.
    pub(crate) fn book(&self, name: &str) -> Option<&Book> {
        let (server, _) = self.reads.get(&authority(name))?;
        Some(&self.zones[*server].book)
    }

    /// D-03: whether the server that is read has said that a cluster is gone, and clients must not hear that yet. `named`: whether
    /// the client asks for it by name, too.
    pub(crate) fn departs(&self, cluster: &str, named: bool, now: Instant) -> bool {
        let server = self.reads.get(&authority(cluster));
        server.is_some_and(|(server, _)| self.zones[*server].farewells.waits(cluster, named, now))
    }

    /// The version of a revision, from whichever server.
    pub(crate) fn version(&self, revision: u64) -> Option<Version> {
        self.zones.iter().find_map(|zone| zone.book.version(revision))
    }
}

impl<'a> Lens<'a> {
    pub(crate) fn slot(self, name: &str) -> Option<&'a Slot> {
        let (_, cut) = self.reading.reads.get(&authority(name))?;
        cut.slot(self.kind.type_url())
    }

    /// The state of the wildcard.
    pub(crate) fn state(self) -> Option<&'a Arc<State>> {
        match self.reading.permitted {
            Some(_) => self.reading.parts.get(&self.kind),
            None => self.slot("")?.wildcard.as_ref(),
        }
    }

    /// S-01: whether the client may have this name.
    pub(crate) fn allows(self, name: &str) -> bool {
        let permitted = self.reading.permitted;
        permitted.is_none_or(|permitted| permitted.allows(self.kind, name))
    }

    pub(crate) fn is_complete(self) -> bool {
        self.state().is_some_and(|state| state.complete())
    }

    /// Whether the wildcard has a resource of this name.
    pub(crate) fn covers(self, name: &str) -> bool {
        let state = self.state();
        let plain = |state: &Arc<State>| state.resource(&Name::from(name)).is_some();
        state.is_some_and(plain) || self.variant(name, false).is_some()
    }

    /// F-03: returns "does not exist" for a name that no server can have.
    pub(crate) fn nowhere(self, name: &str) -> Option<&'static Known> {
        let served = self.reading.reads.contains_key(&authority(name));
        (!served || is_nothing(self.kind, name) || !self.allows(name)).then_some(&NOWHERE)
    }

    /// All resources of the wildcard that this client sees.
    pub(crate) fn all(self) -> Vec<&'a Arc<Resource>> {
        let all = self.state().into_iter();
        self.seen(all.flat_map(|state| state.resources()))
    }

    /// Picks one resource for each name.
    fn seen(self, all: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<&'a Arc<Resource>> {
        let mut seen: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
        for resource in all {
            seen.entry(resource.name().as_str()).or_insert(resource);
        }
        seen.into_values().collect()
    }

    /// The variant of a name that is for this client: there are none.
    pub(crate) const fn variant(self, _: &str, _: bool) -> Option<&'a Arc<Resource>> {
        None
    }

    /// Whether a name has any variants.
    pub(crate) const fn is_for_others(self, _: &str) -> bool {
        false
    }

    /// What the half for names knows of a name.
    pub(crate) fn named(self, name: &str) -> Option<&'a Known> {
        let (slot, name) = (self.slot(name)?, Name::from(canonical(name)));
        let denied = |known: &&Known| {
            let found = known.resource();
            found.is_some_and(|found| !self.allows(found.name().as_str()))
        };
        let known = slot.named.known(&name);
        // The name may be another one of something in the wildcard that the client may not have.
        let covered = slot.wildcard.as_ref().and_then(|state| state.known(&name));
        let any_denied = known.iter().chain(&covered).any(denied);
        if any_denied { Some(&NOWHERE) } else { known }
    }

    /// The resource of a name or alias in the half for names.
    pub(crate) fn found(self, name: &str) -> Option<&'a Arc<Resource>> {
        let found = self.slot(name)?.named.resource(&Name::from(canonical(name)));
        found.filter(|found| self.allows(found.name().as_str()))
    }

    /// Whether the wildcard has other content of this resource.
    pub(crate) fn has_otherwise(self, found: &Resource) -> bool {
        let covered = self.state().and_then(|state| state.resource(found.name()));
        covered.is_some_and(|covered| covered.body() != found.body())
    }

    /// The resource of a name or alias.
    pub(crate) fn resource(self, name: &str) -> Option<&'a Arc<Resource>> {
        let slot = self.slot(name).filter(|_| self.nowhere(name).is_none())?;
        let variant = self.variant(name, true);
        let found = variant.or_else(|| slot.resource(&Name::from(canonical(name))));
        found.filter(|found| self.allows(found.name().as_str()))
    }

    /// The known members of a collection, as this client sees them.
    pub(crate) fn members(self, collection: &str) -> Vec<&'a Arc<Resource>> {
        let slot = self.slot(collection).filter(|_| self.nowhere(collection).is_none());
        let named = slot.into_iter().map(|slot| &slot.named);
        let named = named.flat_map(|state| state.resources());
        let members = named.filter(|resource| super::names::covers(collection, resource.name().as_str()));
        self.seen(members.filter(|member| self.allows(member.name().as_str())))
    }

    /// When a resource ends: this client's variant if `whom` is given, else the resource for all clients.
    pub(crate) fn expiry(self, name: &str, _: Option<&str>) -> Option<Expiry> {
        self.slot(name)?.expiry(&Name::from(canonical(name)))
    }

    /// The revision of a resource in the view.
    pub(crate) fn revision(self, resource: &Resource) -> u64 {
        let book = self.reading.book(resource.name().as_str());
        book.map_or(0, |book| book.revision(resource))
    }

    /// The place of a content among all that the server has ever sent for the name.
    pub(crate) fn place(self, name: &str, revision: u64) -> Option<Place> {
        let book = self.reading.book(name)?;
        book.place(self.kind, &canonical(name), revision)
    }

    /// The place of a content that is sent now. The `rest` of an answer may bring a content that the server has repeated since that
    /// answer began: then its first place counts.
    pub(crate) fn sent_place(self, name: &str, revision: u64, rest: bool) -> Option<Place> {
        if !rest {
            return self.place(name, revision);
        }
        let book = self.reading.book(name)?;
        book.first_place(self.kind, &canonical(name), revision)
    }

    /// Whether the server has sent nothing newer for this name.
    pub(crate) fn is_latest(self, name: &str, revision: u64) -> bool {
        let book = self.reading.book(name);
        book.is_some_and(|book| book.is_latest(self.kind, &canonical(name), revision))
    }

    /// How often the wildcard has lost a name.
    pub(crate) fn losses(self, name: &str) -> u64 {
        let (book, own) = (self.reading.book(""), super::variants::key(name, self.reading.own));
        let book = book.into_iter();
        book.map(|book| book.losses(self.kind, name) + book.losses(self.kind, &own))
            .sum()
    }

    /// Whether the wildcard had a name and has lost it.
    pub(crate) fn has_left(self, name: &str) -> bool {
        let (book, own) = (self.reading.book(""), super::variants::key(name, self.reading.own));
        let left = book.is_some_and(|book| book.has_left(self.kind, name) || book.has_left(self.kind, &own));
        left && self.allows(name)
    }
}
