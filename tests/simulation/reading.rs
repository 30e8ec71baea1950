//! What a stream reads: the content of one server for each authority.
//!
//! Owns the naive lookup of names, in any spelling. Does not know how a server is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use distributary::xds::{Cut, Expiry, Known, Name, Reason, Resource, Slot, State, Version};

use super::body::Type;
use super::feed::Zone;
use super::names::{authority, canonical, is_nothing};
use super::variants;
use super::witness::{Book, Place};

/// What a session reads: of each authority one server's view.
pub(crate) struct Reading<'a> {
    pub(crate) zones: &'a [Zone],
    pub(crate) reads: BTreeMap<Option<String>, (usize, Arc<Cut>)>,
    /// What the client says of itself (TP2).
    pub(crate) own: Option<&'static str>,
}

/// The same, as far as it is of one type.
#[derive(Clone, Copy)]
pub(crate) struct Lens<'a> {
    reading: &'a Reading<'a>,
    kind: Type,
}

static NOWHERE: Known = Known::Absent(Reason::Said);

impl<'a> Reading<'a> {
    /// Where there is one server.
    pub(crate) fn alone(zones: &'a [Zone], zone: usize, own: Option<&'static str>) -> Self {
        let cut = zones[zone].view.cut();
        Self {
            zones,
            reads: BTreeMap::from([(None, (zone, cut))]),
            own,
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

    /// The version of a revision, whoever said it.
    pub(crate) fn version(&self, revision: u64) -> Option<Version> {
        self.zones.iter().find_map(|zone| zone.book.version(revision))
    }
}

impl<'a> Lens<'a> {
    pub(crate) fn slot(self, name: &str) -> Option<&'a Slot> {
        let (_, cut) = self.reading.reads.get(&authority(name))?;
        cut.slot(self.kind.type_url())
    }

    /// What the wildcard has.
    pub(crate) fn state(self) -> Option<&'a Arc<State>> {
        self.slot("")?.wildcard.as_ref()
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

    /// F-03: what cannot exist, whoever is asked.
    pub(crate) fn nowhere(self, name: &str) -> Option<&'static Known> {
        let served = self.reading.reads.contains_key(&authority(name));
        (!served || is_nothing(self.kind, name)).then_some(&NOWHERE)
    }

    /// All that the wildcard has, as this client sees it.
    pub(crate) fn all(self) -> Vec<&'a Arc<Resource>> {
        let all = self.state().into_iter();
        self.seen(all.flat_map(|state| state.resources().chain(state.variants().map(|(variant, _)| variant))))
    }

    /// F-16: of several of one name the one that is for this client, and else what is for everybody.
    fn seen(self, all: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<&'a Arc<Resource>> {
        let mut seen: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
        for resource in all {
            match resource.constraints() {
                None => drop(seen.entry(resource.name().as_str()).or_insert(resource)),
                Some(_) if self.is_own(resource) => drop(seen.insert(resource.name().as_str(), resource)),
                Some(_) => {}
            }
        }
        seen.into_values().collect()
    }

    fn is_own(self, variant: &Resource) -> bool {
        self.reading.own.is_some() && variants::whom(self.kind, variant) == self.reading.own
    }

    /// The variant of a name that is for this client: what the wildcard has, and if it is asked for by name, what there is else.
    pub(crate) fn variant(self, name: &str, named: bool) -> Option<&'a Arc<Resource>> {
        let slot = self.slot(name).filter(|_| self.reading.own.is_some())?;
        let halves = slot.wildcard.iter().chain(named.then_some(&slot.named));
        let name = Name::from(canonical(name));
        let mut all = halves.flat_map(|state| state.variants_of(&name).map(|(variant, _)| variant).collect::<Vec<_>>());
        all.find(|variant| self.is_own(variant))
    }

    /// Whether there are variants of a name for others alone.
    pub(crate) fn is_for_others(self, name: &str) -> bool {
        let name = Name::from(canonical(name));
        let slot = self.slot(name.as_str());
        slot.is_some_and(|slot| slot.named.variants_of(&name).next().is_some())
    }

    /// What is known of a name among those that were asked for by name.
    pub(crate) fn named(self, name: &str) -> Option<&'a Known> {
        self.slot(name)?.named.known(&Name::from(canonical(name)))
    }

    /// The resource of a name or alias among those that were asked for by name.
    pub(crate) fn found(self, name: &str) -> Option<&'a Arc<Resource>> {
        self.slot(name)?.named.resource(&Name::from(canonical(name)))
    }

    /// The resource of a name or alias.
    pub(crate) fn resource(self, name: &str) -> Option<&'a Arc<Resource>> {
        let slot = self.slot(name).filter(|_| self.nowhere(name).is_none())?;
        let variant = self.variant(name, true);
        variant.or_else(|| slot.resource(&Name::from(canonical(name))))
    }

    /// The members of a collection that are known.
    pub(crate) fn members(self, collection: &str) -> Vec<&'a Arc<Resource>> {
        let slot = self.slot(collection).filter(|_| self.nowhere(collection).is_none());
        let named = slot.into_iter().map(|slot| &slot.named);
        let named = named.flat_map(|state| state.resources().chain(state.variants().map(|(variant, _)| variant)));
        self.seen(named.filter(|resource| super::names::covers(collection, resource.name().as_str())))
    }

    /// How long what is for somebody, or for everybody, still lives.
    pub(crate) fn expiry(self, name: &str, whom: Option<&str>) -> Option<Expiry> {
        if whom.is_some() {
            return self.slot(name)?.expiry_of(self.variant(name, true)?);
        }
        self.slot(name)?.expiry(&Name::from(canonical(name)))
    }

    /// The revision of a resource that is read.
    pub(crate) fn revision(self, resource: &Resource) -> u64 {
        let book = self.reading.book(resource.name().as_str());
        book.map_or(0, |book| book.revision(resource))
    }

    /// Where a content stands among all that the server has ever said of the name.
    pub(crate) fn place(self, name: &str, revision: u64) -> Option<Place> {
        let book = self.reading.book(name)?;
        book.place(self.kind, &canonical(name), revision)
    }

    /// Whether the server has said nothing newer of this name.
    pub(crate) fn is_latest(self, name: &str, revision: u64) -> bool {
        let book = self.reading.book(name);
        book.is_some_and(|book| book.is_latest(self.kind, &canonical(name), revision))
    }

    /// How often the wildcard has lost a name.
    pub(crate) fn losses(self, name: &str) -> u64 {
        let (book, own) = (self.reading.book(""), variants::key(name, self.reading.own));
        let book = book.into_iter();
        book.map(|book| book.losses(self.kind, name) + book.losses(self.kind, &own))
            .sum()
    }

    /// Whether the wildcard has had a name and has it no more.
    pub(crate) fn has_left(self, name: &str) -> bool {
        let (book, own) = (self.reading.book(""), variants::key(name, self.reading.own));
        book.is_some_and(|book| book.has_left(self.kind, name) || book.has_left(self.kind, &own))
    }
}
