//! A naive witness beside each client stream: it notes what the client asked for and was sent, and judges whether that was
//! right.
//!
//! Owns its own reading of every request and response, and shares no code with the relay's machine. It judges a response at
//! the moment when it is emitted, with the cut that the relay looked at.

mod checks;
mod full;
mod listed;
mod notes;
mod order;
mod refusals;
mod requests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds::{Dialect, Known, Name, Reason, Resource, Version};

use super::body::Type;
use super::names::{canonical, covers};
use super::reading::{Lens, Reading};
use super::tally::Rule;
use super::variants;

/// The record of one stream.
pub(crate) struct Witness {
    dialect: Dialect,
    /// Whether the client reads times to live, and SotW entries in a wrapper.
    pub(crate) ttl: bool,
    pub(crate) wrapper: bool,
    /// Whether it is an Envoy: it names neither, and reads both (B-30).
    pub(crate) envoy: bool,
    /// Whether it is gRPC (G-18).
    pub(crate) grpc: bool,
    nonces: BTreeSet<String>,
    prefix: Option<String>,
    watches: BTreeMap<Type, Watch>,
    pub(crate) sent: u64,
}

/// The record of one type on the stream.
#[derive(Default)]
pub(crate) struct Watch {
    /// Whether any request has listed a name.
    named: bool,
    wildcard: bool,
    names: BTreeSet<String>,
    /// Whether a wildcard was ever asked for.
    covered: bool,
    /// Names that the client gave up and has not asked for again.
    dropped: BTreeSet<String>,
    /// Collections that the client asks for.
    collections: BTreeSet<String>,
    /// Whether its requests list all that it asks for (SotW).
    listed: bool,
    /// What the client was sent on this stream and has not given up, by canonical name.
    sent: BTreeMap<String, Sent>,
    /// Names and versions that the client declared to hold from an earlier stream.
    remembered: BTreeMap<String, String>,
    /// All names that the client has ever declared, and those on their way when it asked for the wildcard.
    memory: BTreeSet<String>,
    /// SotW: the names of the first request, if that had a version: the client may hold any of them.
    reborn: BTreeSet<String>,
    open: Vec<Open>,
    /// C-20: what a response on its way perhaps brought without an alias by which the client holds it and asks for it.
    renamed: BTreeSet<String>,
    /// Whether the last response said that more follows.
    chain: bool,
    /// Another server is read since the last response: its wildcard's answer begins anew with the next one.
    moved: bool,
    /// Names that must be answered, and why.
    asked: BTreeMap<String, Asked>,
    /// Names that may be sent again unchanged.
    licence: BTreeSet<String>,
    /// Whether a request for the wildcard is not answered yet, the first one or a repeated one.
    again: bool,
    /// Whether the wildcard was repeated since the last response.
    repeated: bool,
    /// What the client held when it repeated the wildcard: it must be sent again.
    all_again: BTreeSet<String>,
    /// What the wildcard had when the answer to that began, and was not sent since. If that answer is cut off, this may come at any
    /// time.
    rest_again: BTreeSet<String>,
    /// Endpoints that must follow their cluster (K-13).
    forced: BTreeSet<String>,
    first: bool,
    refused: Vec<Refused>,
    /// Variants that the client rejected, or whose removal it rejected, by name and constraint.
    doubted: BTreeSet<(String, &'static str)>,
    /// SotW full state: the last set, if it was refused.
    refused_set: Option<BTreeMap<String, u64>>,
    /// SotW: names that the client asks for and that it was sent since then.
    own: BTreeSet<String>,
    /// SotW: names that the wildcard has brought, with how often the wildcard had lost each of them by then.
    brought: BTreeMap<String, u64>,
    /// SotW: names that the wildcard may have gained or lost without a response. The relay may count them in its version or not.
    perhaps: BTreeSet<String>,
    /// All names that the wildcard had when the last answer began, with how often it had lost each by then. The next response may
    /// be a part of that answer.
    coming: BTreeMap<String, u64>,
    /// The set for which each version on this stream stood.
    sets: BTreeMap<String, BTreeMap<String, u64>>,
}

/// What was sent under a name.
#[derive(Clone)]
struct Sent {
    revision: u64,
    /// The constraint of the variant, if it is one (TP2).
    whom: Option<&'static str>,
    version: String,
    /// Its place among the contents that the view has had of this name, if the server ever sent it.
    place: Option<Place>,
    /// Whether the client certainly has it: it has not rejected the response.
    sure: bool,
    /// Whether the relay has kept only a hash of it, so that no full state can list it again (K-16).
    hollow: bool,
    refers: Arc<[String]>,
    aliases: Vec<String>,
    /// Whether the client was sent a time to live for it.
    mortal: bool,
}

struct Open {
    nonce: String,
    /// The revision that it had of each name; `None` is a removal.
    members: BTreeMap<String, Option<u64>>,
    /// Those of them that are heartbeats.
    beats: Vec<String>,
    /// The variants that it brought or removed, by name and constraint.
    variants: Vec<(String, &'static str)>,
    /// Those of them that the client held before, and perhaps need not be sent again if it rejects this.
    held: BTreeSet<String>,
    /// Those of them that a later response removed, or brought although this one removed them.
    undone: BTreeSet<String>,
}

struct Asked {
    rule: Rule,
    at: Instant,
    /// The version that the client declared to hold: if the resource still has it, nothing need be sent (C-14).
    enough: Option<String>,
    /// For a collection: whether the client was told that a member that it held is gone.
    lost: bool,
    /// For a collection: whether a response with one of its members was on its way when the client asked. So it may hold that.
    arriving: bool,
    /// An alias: whether the client was sent, without it, what it held by it. So it may hold that.
    renamed: bool,
}

struct Refused {
    members: BTreeMap<String, Option<u64>>,
    /// Those of them that the client held before, and that need not come again. Perhaps they were only listed beside the others.
    held: BTreeSet<String>,
    /// Whether all members may be sent again: one of them has changed, or is not wanted any more.
    released: bool,
    /// Whether all members must be sent again: one of them was given up, or had changed before the rejection came.
    freed: bool,
}

/// What the relay read when it made a response.
pub(crate) struct Scene<'a> {
    pub(crate) reading: &'a Reading<'a>,
    /// Whether there is only one server for the class.
    pub(crate) alone: bool,
    pub(crate) now: Instant,
    /// Whether a gate opened for this response because its time was over.
    pub(crate) expired: bool,
    pub(crate) unanswered: Duration,
}

/// The place of a content among all that one view, during one life, has had of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    life: (u64, u64),
    whom: Option<&'static str>,
    at: usize,
}

/// All contents that a view has ever had, by name, in order.
#[derive(Default)]
pub(crate) struct Book {
    /// Revisions by key, in the order in which the view had them; 0 is a removal.
    order: BTreeMap<(Type, String), Vec<u64>>,
    /// The revision that a version of a resource stands for.
    revisions: BTreeMap<Version, u64>,
    versions: BTreeMap<u64, Version>,
    /// The constraints of those revisions that are variants.
    whom: BTreeMap<u64, &'static str>,
    /// The range of all revisions of this origin.
    range: Range<u64>,
    /// How many views there were before this one.
    life: u64,
    /// Names that the wildcards had and have lost.
    left: BTreeSet<(Type, String)>,
    /// How often the wildcard has lost a name.
    losses: BTreeMap<(Type, String), u64>,
}

impl Book {
    pub(crate) fn new(range: Range<u64>) -> Self {
        Self {
            range,
            ..Self::default()
        }
    }

    /// Returns the empty book of the next view.
    pub(crate) fn anew(&self) -> Self {
        Self {
            life: self.life + 1,
            ..Self::new(self.range.clone())
        }
    }

    pub(crate) fn has(&self, revision: u64) -> bool {
        self.range.contains(&revision)
    }

    pub(crate) fn version(&self, revision: u64) -> Option<Version> {
        self.versions.get(&revision).copied()
    }

    /// The revision that a version of a resource stands for.
    pub(crate) fn stands_for(&self, version: &str) -> Option<u64> {
        let version = Version::parse(version)?;
        self.revisions.get(&version).copied()
    }

    pub(crate) fn note(&mut self, kind: Type, resource: &Resource, revision: u64) {
        self.revisions.insert(resource.version(), revision);
        self.versions.insert(revision, resource.version());
        let whom = variants::whom(kind, resource);
        self.whom.extend(whom.map(|whom| (revision, whom)));
        let key = variants::key(resource.name().as_str(), whom);
        let order = self.order.entry((kind, key)).or_default();
        if order.last() != Some(&revision) {
            order.push(revision);
        }
    }

    /// Notes that the view no longer has anything of a name.
    pub(crate) fn gone(&mut self, kind: Type, key: &str) {
        if let Some(order) = self.order.get_mut(&(kind, key.to_owned())) {
            order.push(0);
        }
    }

    /// Notes that a wildcard has gained or lost a name.
    pub(crate) fn cover(&mut self, kind: Type, key: &str, covers: bool) {
        let key = (kind, key.to_owned());
        if covers {
            self.left.remove(&key);
        } else {
            *self.losses.entry(key.clone()).or_default() += 1;
            self.left.insert(key);
        }
    }

    /// The key of a content in `order`: each variant of a name has its own.
    fn key(&self, kind: Type, name: &str, revision: u64) -> (Type, String) {
        (kind, variants::key(name, self.whom.get(&revision).copied()))
    }

    pub(crate) fn losses(&self, kind: Type, name: &str) -> u64 {
        let losses = self.losses.get(&(kind, name.to_owned()));
        losses.copied().unwrap_or_default()
    }

    /// Whether the wildcard had this name and has lost it: clients that held it by the wildcard were told that it is gone.
    pub(crate) fn has_left(&self, kind: Type, name: &str) -> bool {
        self.left.contains(&(kind, name.to_owned()))
    }

    pub(crate) fn revision(&self, resource: &Resource) -> u64 {
        self.revisions.get(&resource.version()).copied().unwrap_or_default()
    }

    /// Whether the view never had anything newer of this name, in either half.
    pub(crate) fn is_latest(&self, kind: Type, name: &str, revision: u64) -> bool {
        let order = self.order.get(&self.key(kind, name, revision));
        order.and_then(|order| order.iter().rfind(|other| **other != 0)) == Some(&revision)
    }

    pub(crate) fn place(&self, kind: Type, name: &str, revision: u64) -> Option<Place> {
        self.places(kind, name, revision).next_back()
    }

    /// The place that a content had when it came for the first time.
    pub(crate) fn first_place(&self, kind: Type, name: &str, revision: u64) -> Option<Place> {
        self.places(kind, name, revision).next()
    }

    fn places(&self, kind: Type, name: &str, revision: u64) -> impl DoubleEndedIterator<Item = Place> {
        let life = (self.range.start, self.life);
        let whom = self.whom.get(&revision).copied();
        let order = self
            .order
            .get(&self.key(kind, name, revision))
            .map_or(&[][..], Vec::as_slice);
        let places = order.iter().enumerate().filter(move |(_, other)| **other == revision);
        places.map(move |(at, _)| Place { life, whom, at })
    }
}

/// What is known of a name, for a client with a given interest.
#[derive(Debug)]
enum Seen<'a> {
    Unwanted,
    Uncovered,
    Unknown,
    Absent(Reason),
    Present(&'a Arc<Resource>),
}

impl Refused {
    fn may_come(&self) -> bool {
        self.released || self.freed
    }

    /// A member has changed or was given up. One that was perhaps only listed beside the others may have been the bad one, too, but
    /// the others need not come again because of it.
    fn lose(&mut self, name: &str) {
        let listed = self.held.contains(name);
        self.released |= listed;
        self.freed |= !listed;
    }
}

impl Place {
    /// Whether it is before another place. Places in different views are not comparable.
    fn is_before(self, other: Self) -> bool {
        (self.life, self.whom) == (other.life, other.whom) && self.at < other.at
    }
}

impl Scene<'_> {
    fn lens(&self, kind: Type) -> Lens<'_> {
        self.reading.lens(kind)
    }
}

impl Watch {
    /// Whether the client asks for this name, or for its collection.
    fn asks(&self, name: &str) -> bool {
        self.names.contains(name)
            || self
                .collections
                .iter()
                .any(|collection| covers(collection, name) && canonical(name) == name)
    }

    fn explicit(&self, name: &str, aliases: &[String]) -> bool {
        self.asks(name) || aliases.iter().any(|alias| self.names.contains(alias))
    }

    fn wants_any(&self) -> bool {
        self.wildcard || !self.names.is_empty() || !self.collections.is_empty()
    }

    fn seen<'a>(&self, name: &str, lens: Lens<'a>) -> Seen<'a> {
        // C-20: a resource is asked for if one of its aliases is. S-01: one that the client may not have means nothing.
        let aliases = lens.found(name).into_iter().flat_map(|found| found.aliases());
        let asks = |alias: &Name| self.names.contains(alias.as_str()) && lens.allows(alias.as_str());
        let aliased = aliases.into_iter().any(asks);
        let explicit = self.asks(name) || aliased;
        // No wildcard covers names of new style.
        let wildcard = self.wildcard && !name.starts_with("xdstp:");
        if !explicit && !wildcard {
            return Seen::Unwanted;
        }
        if let Some(known) = lens.nowhere(name) {
            return Seen::from(known);
        }
        if lens.slot(name).is_none() {
            return Seen::Unknown;
        }
        if let Some(variant) = lens.variant(name, explicit) {
            return Seen::Present(variant);
        }
        let state = lens.state().filter(|_| !name.starts_with("xdstp:"));
        let known = match state.and_then(|state| state.known(&Name::from(name))) {
            Some(known) => Some(known),
            None if explicit => match lens.named(name) {
                // F-16: there is something, but not for this client.
                None if lens.is_for_others(name) => return Seen::Absent(Reason::Said),
                // C-20: it is unknown what an alias means while the wildcard has other content of the resource.
                Some(Known::Present(found)) if found.name().as_str() != name && lens.has_otherwise(found) => None,
                known => known,
            },
            None if lens.is_complete() => return Seen::Uncovered,
            None => None,
        };
        known.map_or(Seen::Unknown, Seen::from)
    }

    /// What is known of a collection: one member, or that there is none.
    fn extent<'a>(&self, collection: &str, lens: Lens<'a>) -> Seen<'a> {
        match lens.members(collection).first() {
            Some(member) => Seen::Present(member),
            None => lens
                .nowhere(collection)
                .or_else(|| lens.named(collection))
                .map_or(Seen::Unknown, Seen::from),
        }
    }

    /// All existing resources that the client asks for, by the names that the client uses.
    fn present<'a>(&self, lens: Lens<'a>) -> BTreeMap<String, &'a Arc<Resource>> {
        let mut present = BTreeMap::new();
        let own = |resource: &'a Arc<Resource>| (resource.name().as_str().to_owned(), resource);
        if self.wildcard {
            present.extend(lens.all().into_iter().map(own));
        }
        present.extend(
            self.collections
                .iter()
                .flat_map(|collection| lens.members(collection))
                .map(own),
        );
        for name in &self.names {
            if let Some(resource) = lens.resource(name) {
                let alias = resource.aliases().iter().any(|alias| alias.as_str() == name);
                let own = resource.name().as_str();
                // A client that also asks by a spelling of the resource's own name is sent it by that.
                if alias && self.names.iter().any(|text| canonical(text) == own) {
                    continue;
                }
                let called = if alias { own } else { name };
                present.entry(called.to_owned()).or_insert(resource);
            }
        }
        present
    }
}

impl<'a> From<&'a Known> for Seen<'a> {
    fn from(known: &'a Known) -> Self {
        match known {
            Known::Absent(reason) => Self::Absent(*reason),
            Known::Present(resource) => Self::Present(resource),
        }
    }
}

impl Witness {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            ttl: false,
            wrapper: false,
            envoy: false,
            grpc: false,
            nonces: BTreeSet::new(),
            prefix: None,
            watches: BTreeMap::new(),
            sent: 0,
        }
    }

    fn full_state(&self, kind: Type) -> bool {
        self.dialect == Dialect::Sotw && kind.full_state()
    }

    /// Whether the client rejected this content, and nothing that it rejected with it has changed.
    pub(crate) fn refuses(&self, kind: Type, name: &str) -> bool {
        self.watches.get(&kind).is_some_and(|watch| {
            watch.refused_set.is_some()
                || watch
                    .refused
                    .iter()
                    .any(|refused| !refused.may_come() && refused.members.contains_key(name))
        })
    }
}
