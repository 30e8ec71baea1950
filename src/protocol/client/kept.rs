// SPDX-License-Identifier: Apache-2.0
//! The content that is held of one type from one server.
//!
//! Owns the content, its aliases and its time to live. Does not know who wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use arcstr::ArcStr;

use super::entry::{Entry, build};
use super::unsaid::Unsaid;
use xds::{Dialect, Expiry, Name, Resource, TypeUrl, Update, Version};

/// The resources that a server has sent, by canonical name.
///
/// Invariant: `aliases`, `members` and `expiries` describe exactly what is in `resources`.
#[derive(Debug, Default)]
pub(super) struct Kept {
    resources: BTreeMap<Name, One>,
    aliases: BTreeMap<Name, Name>,
    /// The new-style names by their collections (F-10). Very many collections can be in one directory, with other parameters each.
    members: BTreeMap<Name, BTreeSet<Name>>,
    expiries: BTreeSet<(Instant, Name)>,
    unsaid: Unsaid,
    /// The dialect in which the server gave the versions, and that of the stream. They are sent only if both are the same.
    versions_of: Option<Dialect>,
    dialect: Option<Dialect>,
}

#[derive(Debug)]
pub(super) struct One {
    resource: Arc<Resource>,
    /// The server's own version; valid for this server alone (E-04).
    version: ArcStr,
    odd: Option<Box<Odd>>,
}

/// A resource, with the server's version of it.
pub(super) type Brought = (Arc<Resource>, ArcStr);

/// What few resources have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Odd {
    seed: u64,
    expiry: Option<Expiry>,
    beats: u32,
    /// The server's spelling of the name, if that is not the canonical one.
    written: Option<Name>,
}

impl Kept {
    pub(super) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().map(|one| &one.resource)
    }

    /// Returns everything that is held, as updates.
    pub(super) fn puts(&self) -> impl Iterator<Item = Update> {
        self.resources
            .values()
            .map(|one| Update::Put(one.resource.clone(), one.expiry()))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.resources.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Returns what is held of a collection (F-10), or of the wildcard.
    pub(super) fn within<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let all = (collection.as_str() == Name::WILDCARD).then(|| self.resources.keys());
        let members = self.members.get(collection).into_iter().flatten();
        all.into_iter().flatten().chain(members)
    }

    /// Returns the stored name with this text, and the server's version of that resource.
    pub(super) fn held(&self, text: &str) -> Option<(&Name, &ArcStr)> {
        self.resources.get_key_value(text).map(|(key, one)| (key, &one.version))
    }

    /// Returns the stored name with this text.
    pub(super) fn key(&self, text: &str) -> Option<&Name> {
        self.held(text).map(|(key, _)| key)
    }

    /// Returns the canonical name of the resource with this name or alias. A-09: a resource without a name answers to every name.
    pub(super) fn canonical(&self, name: &str) -> Option<&Name> {
        let nameless = || self.names().next().filter(|name| name.is_empty());
        self.key(name).or_else(|| self.aliases.get(name)).or_else(nameless)
    }

    pub(super) fn resource(&self, name: &str) -> Option<&Arc<Resource>> {
        self.resources.get(name).map(|one| &one.resource)
    }

    /// Returns the version of the content that is held under a name.
    pub(super) fn version(&self, name: &Name) -> Option<Version> {
        let key = self.canonical(name.as_str())?;
        self.resource(key.as_str()).map(|resource| resource.version())
    }

    /// A stream begins. `is_whole`: whether all is known of what is asked for as a whole and has a name; `None`: the name is asked for by itself.
    /// What is not whole is requested without versions: then the server sends everything, and the end of its answer can be seen.
    pub(super) fn connected(&mut self, dialect: Dialect, is_whole: impl Fn(&Name) -> Option<bool>) {
        self.dialect = Some(dialect);
        self.versions_of.get_or_insert(dialect);
        let names = self.resources.keys();
        let sent = |name: &Name| is_whole(name).map(|whole| whole && self.declared(name.as_str()).is_some());
        self.unsaid = Unsaid::of(names.map(|name| (name.clone(), sent(name))));
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        self.unsaid = Unsaid::default();
    }

    /// Returns what the server has not sent on this stream.
    pub(super) const fn unsaid(&self) -> &Unsaid {
        &self.unsaid
    }

    /// Returns the same, for what the server is told and says.
    pub(super) const fn unsaid_mut(&mut self) -> &mut Unsaid {
        &mut self.unsaid
    }

    /// The server has answered. E-23: only now is it certain that it does not refuse this dialect.
    pub(super) fn answered(&mut self, dialect: Dialect) {
        if self.versions_of.replace(dialect) != Some(dialect) {
            self.forget_versions();
        }
    }

    /// Returns the server's spelling of a name.
    pub(super) fn text<'a>(&'a self, name: &'a Name) -> &'a Name {
        let odd = self.resources.get(name).and_then(|one| one.odd.as_ref());
        odd.and_then(|odd| odd.written.as_ref()).unwrap_or(name)
    }

    /// Returns the version that the server is sent for this name, if it has given one. A resource without a name cannot be declared.
    pub(super) fn declared(&self, name: &str) -> Option<&ArcStr> {
        let (_, version) = self.held(name)?;
        let told = self.versions_of == self.dialect && !name.is_empty();
        Some(version).filter(|version| told && !version.is_empty())
    }

    /// Takes a resource that an earlier run of the relay held, unless one is held under that name already.
    pub(super) fn restore(&mut self, resource: &Arc<Resource>) -> Update {
        let name = resource.name();
        if !self.resources.contains_key(name) {
            self.put(One::new(resource.clone()));
        }
        let one = self.resources.get(name);
        Update::Put(
            one.map_or(resource, |one| &one.resource).clone(),
            one.and_then(One::expiry),
        )
    }

    /// Holds a resource with the server's version of it.
    pub(super) fn hold(&mut self, (resource, version): Brought) {
        let one = One::new(resource);
        self.put(One { version, ..one });
    }

    /// Returns a resource that the server has sent on this stream under its only name, with the server's version of it.
    pub(super) fn sample(&self) -> Option<Brought> {
        let plain = |one: &&One| {
            let name = one.resource.name();
            let said = !self.unsaid.contains(name) && one.odd.is_none() && !one.version.is_empty();
            said && !name.is_new_style() && !name.is_empty() && one.resource.aliases().is_empty()
        };
        let one = self.resources.values().find(plain)?;
        Some((one.resource.clone(), one.version.clone()))
    }

    /// Returns all that the server can be told the version of.
    pub(super) fn brought(&self) -> impl Iterator<Item = Brought> {
        let told = self
            .resources
            .iter()
            .filter(|(name, _)| self.declared(name.as_str()).is_some());
        told.map(|(_, one)| (one.resource.clone(), one.version.clone()))
    }

    /// Forgets the versions: they are of the other dialect, or another server has stood in since (G-12).
    pub(super) fn forget_versions(&mut self) {
        let none: ArcStr = ArcStr::new();
        for one in self.resources.values_mut() {
            one.version = none.clone();
        }
    }

    /// Takes the content of an entry; without a body, its confirmation of what is held. If that is news, returns it with the aliases that the
    /// resource has lost. The view may have dropped what was not said yet on this stream, so the first confirmation is news.
    pub(super) fn receive(
        &mut self,
        type_url: &TypeUrl,
        entry: &Entry,
        version: ArcStr,
        now: Instant,
    ) -> Option<(Update, Vec<Name>)> {
        let name = &entry.name;
        let renewed = match (self.resources.get(name), &entry.body) {
            (Some(one), Some(body)) => one.renewed(type_url, entry, body, now),
            (None, Some(body)) => Some((build(type_url, entry, body, 0, now), 0)),
            (_, None) => None,
        };
        let (same, said) = (renewed.is_none(), !self.unsaid.contains(name));
        let plain = same && said && entry.ttl.is_none() && entry.written.is_none();
        if plain && let Some(one) = self.resources.get_mut(name).filter(|one| one.odd.is_none()) {
            one.version = version;
            return None;
        }
        let held = self.take(name);
        let before = held.as_ref().map(|one| (one.resource.clone(), one.expiry()));
        let odd = held.and_then(|one| one.odd);
        let mut odd = odd.map_or_else(Odd::default, |odd| *odd);
        if let Some((_, seed)) = renewed {
            odd.seed = seed;
        }
        let new = renewed.map(|(resource, _)| resource);
        let resource = new.or_else(|| Some(before.as_ref()?.0.clone()))?;
        // E-11: every entry sets the time to live anew, or ends it. K-17: stored is the end, not the duration. Each is another beat.
        let end = entry.ttl.and_then(|ttl| now.checked_add(ttl));
        odd.beats = odd.beats.wrapping_add(u32::from(end.is_some()));
        odd.expiry = end.map(|at| Expiry { at, beat: odd.beats });
        odd.written.clone_from(&entry.written);
        let expiry = odd.expiry;
        let odd = (odd != Odd::default()).then(|| Box::new(odd));
        let put = Update::Put(resource.clone(), expiry);
        self.insert(One { resource, version, odd });
        let Some((old, ended)) = before else {
            return Some((put, Vec::new()));
        };
        let lost = old.aliases().iter().filter(|alias| !self.aliases.contains_key(*alias));
        let lost = lost.cloned().collect();
        (!same || !said || ended != expiry).then_some((put, lost))
    }

    /// Adds a resource that the server has not sent on this stream.
    pub(super) fn put(&mut self, one: One) {
        self.unsaid.add(one.resource.name());
        self.insert(one);
    }

    /// Adds a resource; nothing is held under its name.
    fn insert(&mut self, one: One) {
        let name = one.resource.name().clone();
        if let Some(collection) = name.collection() {
            self.members.entry(collection).or_default().insert(name.clone());
        }
        if let Some(Expiry { at, .. }) = one.expiry() {
            self.expiries.insert((at, name.clone()));
        }
        let aliases = one.resource.aliases().iter();
        self.aliases.extend(aliases.map(|alias| (alias.clone(), name.clone())));
        self.resources.insert(name, one);
    }

    /// Drops the resource with this canonical name.
    pub(super) fn remove(&mut self, name: &Name) -> Option<Arc<Resource>> {
        self.take(name).map(|one| one.resource)
    }

    /// Takes the resource with this canonical name, with its version and its time to live.
    pub(super) fn take(&mut self, name: &Name) -> Option<One> {
        let one = self.resources.remove(name)?;
        self.unsaid.remove(name);
        if let Some(collection) = name.collection()
            && let Some(members) = self.members.get_mut(&collection)
        {
            members.remove(name);
            if members.is_empty() {
                self.members.remove(&collection);
            }
        }
        if let Some(Expiry { at, .. }) = one.expiry() {
            self.expiries.remove(&(at, name.clone()));
        }
        for alias in one.resource.aliases() {
            if self.aliases.get(alias) == Some(name) {
                self.aliases.remove(alias);
            }
        }
        Some(one)
    }

    /// Returns when the next resource expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.expiries.first().map(|(at, _)| *at)
    }

    /// Returns the canonical name of a resource that has expired.
    pub(super) fn expired(&self, now: Instant) -> Option<Name> {
        let (at, name) = self.expiries.first()?;
        (*at <= now).then(|| name.clone())
    }
}

impl One {
    fn new(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            version: ArcStr::new(),
            odd: None,
        }
    }

    fn expiry(&self) -> Option<Expiry> {
        self.odd.as_ref()?.expiry
    }

    /// Returns the content after an entry, with its seed; `None` if it is equal to what is held. Then the old one stays in
    /// memory, so that nobody sees a change.
    fn renewed(&self, type_url: &TypeUrl, entry: &Entry, body: &[u8], now: Instant) -> Option<(Arc<Resource>, u64)> {
        let bare = entry.passed_on.is_empty();
        if bare && self.resource.aliases() == entry.aliases && self.resource.is_only(body) {
            return None;
        }
        let seed = self.odd.as_ref().map_or(0, |odd| odd.seed);
        let new = build(type_url, entry, body, seed, now);
        if new.version() != self.resource.version() {
            return Some((new, seed));
        }
        if new.same_content(&self.resource) {
            return None;
        }
        // K-09: content counts as equal only if its bytes are equal, so a crafted hash collision hides nothing.
        let seed = seed.wrapping_add(1);
        Some((build(type_url, entry, body, seed, now), seed))
    }
}
