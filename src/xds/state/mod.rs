// SPDX-License-Identifier: Apache-2.0
//! What is known of one type in one half of a view, at one instant.
//!
//! Owns the three-valued map and its structural sharing. Does not know who wants what.

mod expiry;
mod known;
mod nameless;
mod permitted;

use std::fmt;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

pub use expiry::Expiry;
pub use known::{Known, Reason};
pub use permitted::Permitted;

use super::value_id::next_id;
use super::{Brief, Name, Resource, ResourceError, TypeUrl, Update, Version};

/// Immutable map from name to what is known; shares its structure with its predecessor.
#[derive(Clone)]
pub struct State {
    id: u64,
    type_url: TypeUrl,
    entries: OrdMap<Name, Known>,
    aliases: OrdMap<Name, Name>,
    /// The new-style names of resources, each behind its collection (F-10). Very many collections can be in one directory, with other
    /// parameters each.
    members: OrdSet<(Name, Name)>,
    expiries: OrdMap<Name, Expiry>,
    /// Collections of which every member is known (C-22).
    whole: OrdSet<Name>,
    errors: OrdMap<Name, Arc<ResourceError>>,
    /// The names for which the server did not answer in time.
    silent: OrdSet<Name>,
    complete: bool,
    stale: bool,
    present: usize,
    bytes: usize,
    sum: Version,
}

impl State {
    /// Creates a state in which nothing is known.
    #[must_use]
    pub fn new(type_url: TypeUrl) -> Self {
        Self {
            id: next_id(),
            type_url,
            entries: OrdMap::new(),
            aliases: OrdMap::new(),
            members: OrdSet::new(),
            expiries: OrdMap::new(),
            whole: OrdSet::new(),
            errors: OrdMap::new(),
            silent: OrdSet::new(),
            complete: false,
            stale: false,
            present: 0,
            bytes: 0,
            sum: Version::EMPTY,
        }
    }

    /// Identifies this very state.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The type.
    pub const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Returns the names for which the server did not answer in time.
    pub const fn silent(&self) -> &OrdSet<Name> {
        &self.silent
    }

    /// For a wildcard: whether a name that is not in it certainly does not belong to it.
    pub const fn complete(&self) -> bool {
        self.complete
    }

    /// Whether it comes from an earlier run of the relay, and the server has not confirmed it since.
    pub const fn stale(&self) -> bool {
        self.stale
    }

    /// For a wildcard: whether the server itself has said that there is no more. K-16: what an earlier run knew is no reason to
    /// take anything from a client, which may hold more than was saved.
    pub const fn certain(&self) -> bool {
        self.complete && !self.stale
    }

    /// Returns the same content, marked as an earlier run's (`stale`) or as the server's own.
    pub(super) fn marked(&self, stale: bool) -> Self {
        Self { stale, ..self.clone() }
    }

    /// How many resources exist.
    pub const fn present(&self) -> usize {
        self.present
    }

    /// How many bytes the relay keeps for them.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The version of the set of all resources that exist.
    pub const fn sum(&self) -> Version {
        self.sum
    }

    /// All that is known, by name.
    pub const fn entries(&self) -> &OrdMap<Name, Known> {
        &self.entries
    }

    /// The expiries of those resources that have one.
    pub const fn expiries(&self) -> &OrdMap<Name, Expiry> {
        &self.expiries
    }

    /// All resources among the entries, by name.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.entries.values().filter_map(Known::resource)
    }

    /// Returns what is known of a name, or of the resource that has it as an alias (C-20).
    pub fn known(&self, name: &Name) -> Option<&Known> {
        match self.entries.get(name) {
            Some(known @ Known::Present(_)) => Some(known),
            absent => self
                .aliases
                .get(name)
                .and_then(|canonical| self.entries.get(canonical))
                .or_else(|| self.nameless())
                .or(absent)
                .or_else(|| self.implied(name)),
        }
    }

    /// C-22: if every member of a collection is known, there are no others; without any member the collection does not exist.
    fn implied(&self, name: &Name) -> Option<&'static Known> {
        if self.whole.is_empty() || !name.is_new_style() {
            return None;
        }
        let absent = match name.collection() {
            Some(collection) => self.whole.contains(&collection),
            None => self.whole.contains(name) && self.members(name).next().is_none(),
        };
        absent.then_some(&Known::Absent(Reason::Said))
    }

    /// Returns the error of a name (E-09).
    pub fn error(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.errors.get(name)
    }

    /// All errors, by name.
    pub const fn errors(&self) -> &OrdMap<Name, Arc<ResourceError>> {
        &self.errors
    }

    /// Whether every member of a collection is known (C-22).
    pub fn whole(&self, collection: &Name) -> bool {
        self.whole.contains(collection)
    }

    /// The known resources in a collection (F-10).
    pub fn members<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Arc<Resource>> {
        let members = self.members.range((collection.clone(), Name::from(""))..);
        let members = members.take_while(move |(of, _)| of == collection);
        members.filter_map(|(_, name)| self.entries.get(name)?.resource())
    }

    /// Returns the resource of this name or alias.
    pub fn resource(&self, name: &Name) -> Option<&Arc<Resource>> {
        self.known(name)?.resource()
    }

    /// Returns when the resource of this canonical name expires.
    pub fn expiry(&self, name: &Name) -> Option<Expiry> {
        if self.expiries.is_empty() {
            None
        } else {
            self.expiries.get(name).copied()
        }
    }

    /// A client says that it holds this version of a name.
    pub fn hold(&mut self, name: Name, version: Brief) {
        self.entries.insert(name, Known::Held(version));
    }

    /// Returns the same names without any version: what a client holds of them is unknown (C-11).
    pub fn doubted(&self) -> Self {
        let mut bytes = 0;
        let entries = self.entries.iter().map(|(name, known)| {
            let known = match known {
                Known::Present(resource) => {
                    let resource = Arc::new(resource.doubted());
                    bytes += resource.weight();
                    Known::Present(resource)
                }
                Known::Absent(reason) => Known::Absent(*reason),
                Known::Held(_) => Known::Held(Brief::ANY),
            };
            (name.clone(), known)
        });
        Self {
            entries: entries.collect(),
            bytes,
            id: next_id(),
            ..self.clone()
        }
    }

    /// Returns the next state, with the updates applied, and the names and aliases for which something changed.
    pub fn with(&self, updates: &[Update], complete: Option<bool>) -> (Self, Vec<Name>) {
        let mut next = Self {
            id: next_id(),
            ..self.clone()
        };
        let mut changed = Vec::with_capacity(updates.len());
        for update in updates {
            // E-09: an error is kept until the name gets another update.
            if !next.errors.is_empty() && !matches!(update, Update::Error(..)) {
                next.note_error(update.name(), None, &mut changed);
            }
            match update {
                Update::Put(resource, expiry) => next.put(resource, *expiry, &mut changed),
                Update::Absent(name, reason) => next.replace(name, Some(Known::Absent(*reason)), &mut changed),
                Update::Forget(name) => {
                    next.whole.remove(name);
                    next.replace(name, None, &mut changed);
                }
                Update::Whole(collection) => {
                    next.replace(collection, None, &mut changed);
                    if next.whole.insert(collection.clone()).is_none() {
                        changed.push(collection.clone());
                    }
                }
                Update::Error(name, error) => next.note_error(name, error.as_ref(), &mut changed),
            }
        }
        if let Some(complete) = complete {
            next.complete = complete;
            next.stale = false;
        }
        changed.sort_unstable();
        changed.dedup();
        (next, changed)
    }

    fn note_error(&mut self, name: &Name, error: Option<&Arc<ResourceError>>, changed: &mut Vec<Name>) {
        let old = match error {
            Some(error) => self.errors.insert(name.clone(), error.clone()),
            None => self.errors.remove(name),
        };
        if old.as_ref() != error {
            changed.push(name.clone());
        }
    }

    fn put(&mut self, resource: &Arc<Resource>, expiry: Option<Expiry>, changed: &mut Vec<Name>) {
        let name = resource.name();
        let same = self
            .entries
            .get(name)
            .is_some_and(|old| *old == Known::Present(resource.clone()));
        if !same {
            self.replace(name, Some(Known::Present(resource.clone())), changed);
        }
        let before = self.expiry(name);
        match expiry {
            Some(expiry) => drop(self.expiries.insert(name.clone(), expiry)),
            None if before.is_some() => drop(self.expiries.remove(name)),
            None => {}
        }
        if before != expiry {
            changed.push(name.clone());
            changed.extend(resource.aliases().iter().cloned());
        }
    }

    fn replace(&mut self, name: &Name, known: Option<Known>, changed: &mut Vec<Name>) {
        let old = match known {
            Some(ref known) => self.entries.insert(name.clone(), known.clone()),
            None => self.entries.remove(name),
        };
        if old == known {
            return;
        }
        changed.push(name.clone());
        let is_present = |known: &Option<Known>| matches!(known, Some(Known::Present(_)));
        if is_present(&old) != is_present(&known) {
            self.move_member(name, is_present(&known));
        }
        if matches!(known, Some(Known::Absent(Reason::TimedOut))) {
            self.silent.insert(name.clone());
        } else if !self.silent.is_empty() {
            self.silent.remove(name);
        }
        if let Some(Known::Present(old)) = old {
            self.present -= 1;
            self.bytes -= old.weight();
            self.sum = self.sum.minus(old.version());
            for alias in old.aliases() {
                changed.push(alias.clone());
                if self.aliases.get(alias) == Some(name) {
                    self.aliases.remove(alias);
                }
            }
            self.expiries.remove(name);
        }
        if let Some(Known::Present(new)) = known {
            self.present += 1;
            self.bytes += new.weight();
            self.sum = self.sum.plus(new.version());
            for alias in new.aliases() {
                changed.push(alias.clone());
                self.aliases.insert(alias.clone(), name.clone());
            }
        }
    }

    /// A resource joins its collection, or leaves it.
    fn move_member(&mut self, name: &Name, joins: bool) {
        let Some(collection) = name.collection() else { return };
        let known = self.members.range((collection.clone(), Name::from(""))..).next();
        // All members share one text.
        let collection = known
            .map(|(of, _)| of.clone())
            .filter(|of| *of == collection)
            .unwrap_or(collection);
        if joins {
            self.members.insert((collection, name.clone()));
        } else {
            self.members.remove(&(collection, name.clone()));
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complete = if self.complete { "complete" } else { "open" };
        write!(f, "{:?}#{} {complete} ", self.type_url, self.id)?;
        f.debug_map().entries(self.entries.iter()).finish()
    }
}
