//! A naive witness beside each client stream: it notes what the client asked for and was sent, and judges whether that was
//! right.
//!
//! Owns its own reading of every request and response, and shares no code with the relay's machine. It judges a response at
//! the moment when it is emitted, with the cut that the relay looked at.

mod checks;
mod full;
mod notes;
mod order;
mod refusals;
mod requests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::xds::{Dialect, Known, Name, Reason, Resource, Version};

use super::body::Type;
use super::names::{canonical, covers};
use super::reading::{Lens, Reading};
use super::tally::Rule;
use super::variants;

/// The bookkeeper of one stream.
pub(crate) struct Witness {
    dialect: Dialect,
    /// What the client can read.
    pub(crate) ttl: bool,
    pub(crate) wrapper: bool,
    nonces: BTreeSet<String>,
    prefix: Option<String>,
    watches: BTreeMap<Type, Watch>,
    pub(crate) sent: u64,
}

/// What is known of one type on the stream.
#[derive(Default)]
pub(crate) struct Watch {
    /// Whether any request has named anything.
    named: bool,
    wildcard: bool,
    names: BTreeSet<String>,
    /// Whether a wildcard was ever asked for.
    covered: bool,
    /// Names that it gave up.
    dropped: BTreeSet<String>,
    /// Collections that it asks for.
    collections: BTreeSet<String>,
    /// Whether its requests list all that it asks for (SotW).
    listed: bool,
    /// What the client was sent on this stream and has not let go, by canonical name.
    sent: BTreeMap<String, Sent>,
    /// What it said it holds from before: name and version.
    remembered: BTreeMap<String, String>,
    /// All names that it ever said so of.
    memory: BTreeSet<String>,
    /// SotW: it began with a version, so it may hold any of these names that it began with.
    reborn: BTreeSet<String>,
    open: Vec<Open>,
    /// Whether the last response said that more follows.
    chain: bool,
    /// Names that must be answered, and why.
    asked: BTreeMap<String, Asked>,
    /// Names that may be sent once more without a change.
    licence: BTreeSet<String>,
    /// Whether everything that the wildcard covers was asked for again.
    again: bool,
    /// What was held then, and must be sent once more.
    all_again: BTreeSet<String>,
    /// Endpoints that must follow their cluster (K-13).
    forced: BTreeSet<String>,
    first: bool,
    refused: Vec<Refused>,
    /// SotW full state: the last set, if it was refused.
    refused_set: Option<BTreeMap<String, u64>>,
    /// SotW: what it was sent of what it asks for by name, since it does.
    own: BTreeSet<String>,
    /// SotW: what its wildcard has brought it to, and how often the wildcard had lost it by then.
    brought: BTreeMap<String, u64>,
    /// Of what the wildcard has or had, what it may have lost or gained while nothing was said: the relay may have seen it, or not.
    perhaps: BTreeSet<String>,
    /// All that the wildcard had when the last answer was made, of which this may be a part, and how often it had lost each by then.
    coming: BTreeMap<String, u64>,
    /// The sets that versions of this stream stood for.
    sets: BTreeMap<String, BTreeMap<String, u64>>,
}

/// What was sent under a name.
#[derive(Clone)]
struct Sent {
    revision: u64,
    /// For whom alone it is.
    whom: Option<&'static str>,
    version: String,
    /// Its place in the order in which the view had contents of this name, if its server ever said it.
    place: Option<Place>,
    /// Whether the client surely has it: it has not refused the response.
    sure: bool,
    /// Whether the relay has kept no more of it than that the client has it (K-16).
    hollow: bool,
    refers: Arc<[String]>,
    aliases: Vec<String>,
    /// Whether the client was told that it ends by itself.
    mortal: bool,
}

struct Open {
    nonce: String,
    /// What it said of each name; none is a removal.
    members: BTreeMap<String, Option<u64>>,
}

struct Asked {
    rule: Rule,
    at: Instant,
    /// The version with which the client already has it, where that is good enough (C-14).
    enough: Option<String>,
    /// Of a collection: whether the client has heard that something that it held of it is gone.
    lost: bool,
}

struct Refused {
    members: BTreeMap<String, Option<u64>>,
    /// Whether all of it may be sent again: one of them was seen to be different.
    released: bool,
    /// Whether all of it must be sent again: one of them was given up, or was another when the refusal came.
    freed: bool,
}

/// What the relay looked at when it spoke.
pub(crate) struct Scene<'a> {
    pub(crate) reading: &'a Reading<'a>,
    /// Whether it is the one server of its class.
    pub(crate) alone: bool,
    pub(crate) now: Instant,
    /// Whether a gate opened by itself for this response.
    pub(crate) expired: bool,
    pub(crate) unanswered: Duration,
}

/// Where a content stands in the order of all contents of its name: in one life of one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    life: (u64, u64),
    whom: Option<&'static str>,
    at: usize,
}

/// What a view has ever said, by name, in order.
#[derive(Default)]
pub(crate) struct Book {
    /// Revisions by key, in the order in which the view had them.
    order: BTreeMap<(Type, String), Vec<u64>>,
    /// The revision that a version of a resource stands for.
    revisions: BTreeMap<Version, u64>,
    versions: BTreeMap<u64, Version>,
    /// Whom a revision is for.
    whom: BTreeMap<u64, &'static str>,
    /// Revisions of one origin lie in one range.
    range: Range<u64>,
    /// How many views there were before this one.
    life: u64,
    /// What the wildcards have had and have no more.
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

    /// Another view begins.
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

    /// The view has a name no more.
    pub(crate) fn gone(&mut self, kind: Type, key: &str) {
        if let Some(order) = self.order.get_mut(&(kind, key.to_owned())) {
            order.push(0);
        }
    }

    /// A wildcard has a name, or has it no more.
    pub(crate) fn cover(&mut self, kind: Type, key: &str, covers: bool) {
        let key = (kind, key.to_owned());
        if covers {
            self.left.remove(&key);
        } else {
            *self.losses.entry(key.clone()).or_default() += 1;
            self.left.insert(key);
        }
    }

    /// What the order of a content's name is kept under, variants by themselves.
    fn key(&self, kind: Type, name: &str, revision: u64) -> (Type, String) {
        (kind, variants::key(name, self.whom.get(&revision).copied()))
    }

    pub(crate) fn losses(&self, kind: Type, name: &str) -> u64 {
        let losses = self.losses.get(&(kind, name.to_owned()));
        losses.copied().unwrap_or_default()
    }

    /// Whether the wildcard has had this name and has it no more: whoever holds it by the wildcard was told that it goes.
    pub(crate) fn has_left(&self, kind: Type, name: &str) -> bool {
        self.left.contains(&(kind, name.to_owned()))
    }

    pub(crate) fn revision(&self, resource: &Resource) -> u64 {
        self.revisions.get(&resource.version()).copied().unwrap_or_default()
    }

    /// Whether the view has had nothing newer of this name, in either half.
    pub(crate) fn is_latest(&self, kind: Type, name: &str, revision: u64) -> bool {
        let order = self.order.get(&self.key(kind, name, revision));
        order.and_then(|order| order.iter().rfind(|other| **other != 0)) == Some(&revision)
    }

    pub(crate) fn place(&self, kind: Type, name: &str, revision: u64) -> Option<Place> {
        let order = self.order.get(&self.key(kind, name, revision))?;
        let at = order.iter().rposition(|other| *other == revision)?;
        let life = (self.range.start, self.life);
        let whom = self.whom.get(&revision).copied();
        Some(Place { life, whom, at })
    }
}

/// What is known of a name, as far as an interest covers it.
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
}

impl Place {
    /// Whether it stands before another one; nobody can say so of what different views said.
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
    /// Whether it is asked for by a name of its own, or with its collection.
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
        // C-20: what is asked for by another of its names is asked for.
        let aliases = lens.found(name).into_iter().flat_map(|found| found.aliases());
        let aliased = aliases.into_iter().any(|alias| self.names.contains(alias.as_str()));
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
                known => known,
            },
            None if lens.is_complete() => return Seen::Uncovered,
            None => None,
        };
        known.map_or(Seen::Unknown, Seen::from)
    }

    /// What is known of a collection as such.
    fn extent<'a>(&self, collection: &str, lens: Lens<'a>) -> Seen<'a> {
        match lens.members(collection).first() {
            Some(member) => Seen::Present(member),
            None => lens
                .nowhere(collection)
                .or_else(|| lens.named(collection))
                .map_or(Seen::Unknown, Seen::from),
        }
    }

    /// All that the interest covers and that exists, as the client calls it.
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
                // Who asks by a text of its name as well is sent it by that.
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
            nonces: BTreeSet::new(),
            prefix: None,
            watches: BTreeMap::new(),
            sent: 0,
        }
    }

    fn full_state(&self, kind: Type) -> bool {
        self.dialect == Dialect::Sotw && kind.full_state()
    }

    /// Whether the client refused this content, and nothing of what it refused with it has changed.
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
