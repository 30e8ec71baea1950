// SPDX-License-Identifier: Apache-2.0
//! The merged content of all files of one source: one full state.
//!
//! Owns the rule that a name occurs once. Knows nothing of how files are read and of who wants what.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use crate::json::Place;
use crate::xds::{Expiry, Name, Resource, TypeUrl};

use super::parsed_file::Stated;

/// A full state of every type (I-06).
#[derive(Clone, Debug, Default)]
pub struct FileContents {
    types: BTreeMap<TypeUrl, Names>,
    /// Whether the content is complete: a name without a resource does not exist.
    whole: bool,
    /// When the next time to live ends, including those of repeated resources.
    ends: Option<Instant>,
}

/// The resources of one type by name.
#[derive(Clone, Debug, Default)]
struct Names {
    resources: BTreeMap<Name, Arc<Resource>>,
    aliases: BTreeMap<Name, Name>,
    /// The ends of those with a time to live.
    expiries: BTreeMap<Name, Expiry>,
    /// Those that are still in a file although their time to live is over.
    over: BTreeSet<Name>,
}

/// A name that occurs twice, with different content: its resource does not change (E-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The number of the file with the second occurrence.
    pub file: usize,
    /// Where it is in that file.
    pub place: Option<Place>,
    /// The number of the file with the first occurrence.
    pub first: usize,
    /// Where it is in that file.
    pub first_place: Option<Place>,
    /// The type and the name.
    pub name: String,
}

impl FileContents {
    /// Merges the resources of the files at `now`. An unchanged resource keeps its allocation from `before`.
    pub fn merge(files: &mut [&mut [Stated]], before: &Self, whole: bool, now: Instant) -> (Self, Vec<Twice>) {
        let mut merged = Self::default();
        let mut found: BTreeMap<(TypeUrl, Name), (usize, Option<Place>)> = BTreeMap::new();
        let mut twice = Vec::new();
        let mut disputed = BTreeSet::new();
        for (file, stated) in files.iter_mut().enumerate() {
            for one in stated.iter_mut() {
                let name = one.resource.name().clone();
                // E-11: a resource whose time to live is over is gone, even if it is still in the file.
                if one.until.is_some_and(|until| until <= now) {
                    merged.names(&one.type_url).over.insert(name);
                    continue;
                }
                merged.ends = merged.ends.into_iter().chain(one.until).min();
                if let Some(old) = before.get(&one.type_url, &name)
                    && old.same_content(&one.resource)
                {
                    one.resource = old.clone();
                }
                let key = (one.type_url.clone(), name.clone());
                let Some((first, first_place)) = found.get(&key) else {
                    merged.put(&one.type_url, one.resource.clone());
                    merged.lives(&one.type_url, &name, one.until, before);
                    found.insert(key, (file, one.place));
                    continue;
                };
                let same = merged
                    .get(&key.0, &key.1)
                    .is_some_and(|other| other.same_content(&one.resource));
                if same {
                    let first = merged.expiry(&key.0, &key.1).map(|expiry| expiry.at);
                    // Of two equal resources the longer time to live counts.
                    let until = first.zip(one.until).map(|(first, until)| first.max(until));
                    merged.lives(&key.0, &key.1, until, before);
                } else {
                    twice.push(Twice {
                        file,
                        place: one.place,
                        first: *first,
                        first_place: *first_place,
                        name: format!("{} `{name}`", one.type_url),
                    });
                    disputed.insert(key);
                }
            }
        }
        let mut known = true;
        for (type_url, name) in disputed {
            merged.remove(&type_url, &name);
            let until = before.expiry(&type_url, &name).map(|expiry| expiry.at);
            match before.get(&type_url, &name) {
                Some(_) if until.is_some_and(|until| until <= now) => {}
                Some(old) => {
                    merged.put(&type_url, old.clone());
                    merged.lives(&type_url, &name, until, before);
                    merged.ends = merged.ends.into_iter().chain(until).min();
                }
                None => known = false,
            }
        }
        // The first complete state needs every file to be good. After that, a name that was never good does not exist.
        merged.whole = before.whole || whole && known;
        (merged, twice)
    }

    /// Whether the content is complete: a name without a resource does not exist.
    #[must_use]
    pub const fn whole(&self) -> bool {
        self.whole
    }

    /// Returns when the next time to live ends.
    #[must_use]
    pub const fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Returns when the time to live of the resource of this name ends, if it has one (K-17).
    #[must_use]
    pub fn expiry(&self, type_url: &TypeUrl, name: &Name) -> Option<Expiry> {
        self.types.get(type_url)?.expiries.get(name).copied()
    }

    /// Whether the files have a resource of this name whose time to live is over.
    #[must_use]
    pub fn is_over(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.types.get(type_url).is_some_and(|names| names.over.contains(name))
    }

    /// Returns the number of resources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.values().map(|names| names.resources.len()).sum()
    }

    /// The types that have resources.
    pub fn types(&self) -> impl Iterator<Item = &TypeUrl> {
        let types = self.types.iter().filter(|(_, names)| !names.resources.is_empty());
        types.map(|(type_url, _)| type_url)
    }

    /// Returns how many resources there are of each type.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<TypeUrl, usize> {
        let types = self.types.iter();
        let types = types.map(|(type_url, names)| (type_url.clone(), names.resources.len()));
        types.filter(|(_, count)| *count > 0).collect()
    }

    /// Whether there are no resources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resource of this name or alias (C-20).
    #[must_use]
    pub fn resource(&self, type_url: &TypeUrl, name: &Name) -> Option<&Arc<Resource>> {
        let names = self.types.get(type_url)?;
        let canonical = || names.aliases.get(name).and_then(|name| names.resources.get(name));
        names.resources.get(name).or_else(canonical)
    }

    /// Returns the resources that a wildcard covers: those with old-style names.
    pub fn covered(&self, type_url: &TypeUrl) -> impl Iterator<Item = &Arc<Resource>> {
        let names = self.types.get(type_url).into_iter();
        let all = names.flat_map(|names| names.resources.values());
        all.filter(|resource| !resource.name().is_new_style())
    }

    /// Returns the members of a collection (F-10).
    pub fn members<'a>(
        &'a self,
        type_url: &TypeUrl,
        collection: &'a Name,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + use<'a> {
        let names = self.types.get(type_url).into_iter();
        let from = (Bound::Included(collection.prefix()), Bound::Unbounded);
        let all = names.flat_map(move |names| names.resources.range::<str, _>(from));
        let all = all.take_while(|(name, _)| name.as_str().starts_with(collection.prefix()));
        let covers = collection.coverage();
        all.map(|(_, resource)| resource)
            .filter(move |resource| covers(resource.name()))
    }

    /// Returns the names by which a client can ask for anything of a type, and those whose time to live is over; some of them
    /// several times.
    pub fn names_of(&self, type_url: &TypeUrl) -> impl Iterator<Item = Name> {
        let names = self.types.get(type_url).into_iter();
        names.flat_map(|names| {
            let all = names.resources.values().flat_map(|resource| names_of(resource));
            all.chain(names.over.iter().cloned())
        })
    }

    fn get(&self, type_url: &TypeUrl, name: &Name) -> Option<&Arc<Resource>> {
        self.types.get(type_url)?.resources.get(name)
    }

    fn names(&mut self, type_url: &TypeUrl) -> &mut Names {
        self.types.entry(type_url.clone()).or_default()
    }

    /// Sets when the time to live of a resource ends. A new end is a new heartbeat.
    fn lives(&mut self, type_url: &TypeUrl, name: &Name, until: Option<Instant>, before: &Self) {
        let old = before.expiry(type_url, name);
        let expiries = &mut self.names(type_url).expiries;
        match (until, old) {
            (None, _) => drop(expiries.remove(name)),
            (Some(at), Some(old)) if old.at == at => drop(expiries.insert(name.clone(), old)),
            (Some(at), old) => {
                let beat = old.map_or(0, |old| old.beat.wrapping_add(1));
                expiries.insert(name.clone(), Expiry { at, beat });
            }
        }
    }

    fn put(&mut self, type_url: &TypeUrl, resource: Arc<Resource>) {
        let names = self.names(type_url);
        let name = resource.name().clone();
        let aliases = resource.aliases().iter();
        names.aliases.extend(aliases.map(|alias| (alias.clone(), name.clone())));
        names.resources.insert(name, resource);
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &Name) {
        if let Some(names) = self.types.get_mut(type_url) {
            names.expiries.remove(name);
            let removed = names.resources.remove(name);
            for alias in removed.iter().flat_map(|removed| removed.aliases()) {
                if names.aliases.get(alias) == Some(name) {
                    names.aliases.remove(alias);
                }
            }
        }
    }
}

/// Returns the names by which a client can ask for a resource: its own, its aliases, and its collection.
pub(super) fn names_of(resource: &Resource) -> impl Iterator<Item = Name> {
    let own = std::iter::once(resource.name().clone());
    let aliases = resource.aliases().iter().cloned();
    own.chain(aliases).chain(resource.name().collection())
}
