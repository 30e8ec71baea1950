// SPDX-License-Identifier: Apache-2.0
//! What the streams of one view ask their server for.
//!
//! Owns the split between a wildcard and names of the same type. Knows nothing of streams and responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use crate::sorted::{Named, Sorted};
use xds::{Cut, Known, Name, Resource, State, Target, TypeUrl, Want};

/// Divides what a view wants between two streams, because one subscription cannot tell what its wildcard covers from what was
/// also requested by name (K-05).
///
/// Of each type, the kind that is wanted first (wildcard or names) goes to the main stream, and the other kind to the aside
/// stream. So a stream with a wildcard of a type has never named resources of that type.
///
/// Invariant: a name is requested only if it is wanted; if the type has a complete wildcard, only if that does not cover the
/// name.
#[derive(Debug, Default)]
pub struct Demand {
    types: BTreeMap<TypeUrl, Split>,
    sweep_at: usize,
}

/// One of the two streams of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LegKind {
    /// The stream that is always there.
    Main,
    /// The stream for what cannot share a subscription with the main stream.
    Aside,
}

#[derive(Debug)]
struct Split {
    /// The stream with the wildcard; names are on the other stream.
    wildcard_on: LegKind,
    wildcard: bool,
    /// Whether names wait until the wildcard is complete. E-20: for most types, a server may never answer a wildcard.
    waits: bool,
    names: Sorted<WantedName>,
    /// The spellings of each name that clients do not write in the canonical way alone (F-07); `None` is the canonical one.
    written: BTreeMap<Name, BTreeSet<Option<Name>>>,
    /// The wildcard's state at the last look, while names are wanted too.
    looked_at: Option<Arc<State>>,
}

/// A name that is wanted.
#[derive(Debug)]
struct WantedName {
    name: Name,
    /// Whether it is requested.
    asked: bool,
}

/// The relay keeps up to this number of types that nobody wants any more.
const TYPES_REMEMBERED: usize = 1024;

impl Named for WantedName {
    const STAYS: bool = true;

    fn name(&self) -> &Name {
        &self.name
    }
}

impl LegKind {
    /// Returns the other stream.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Main => Self::Aside,
            Self::Aside => Self::Main,
        }
    }
}

impl Demand {
    /// The view starts or stops wanting something. Returns what to tell which stream.
    pub fn handle_want(&mut self, want: &Want, cut: &Cut) -> Vec<(LegKind, Want)> {
        let split = match self.types.get_mut(&want.type_url) {
            Some(split) => split,
            None if want.wanted => self
                .types
                .entry(want.type_url.clone())
                .or_insert_with(|| Split::first(want)),
            None => return Vec::new(),
        };
        let mut told = Vec::new();
        match &want.target {
            Target::Wildcard if split.wildcard != want.wanted => {
                split.wildcard = want.wanted;
                told.push((split.wildcard_on, want.clone()));
            }
            Target::Wildcard => {}
            Target::Name(name) if want.wanted => {
                // A name that was requested already: tell the stream the new spelling. Any other name goes out with all its
                // spellings later.
                if split.write(name, want.written.as_ref()) && split.is_asked(name) {
                    told.push((split.wildcard_on.other(), want.clone()));
                }
            }
            Target::Name(name) => {
                split.written.remove(name);
                if split.names.remove(name.as_str()).is_some_and(|wanted| wanted.asked) {
                    told.push((split.wildcard_on.other(), want.clone()));
                }
            }
        }
        match (&want.target, split.wildcard) {
            // Names that were requested before the wildcard was wanted stay until the wildcard covers them.
            (Target::Wildcard, true) => split.looked_at = None,
            (Target::Wildcard, false) => {
                split.looked_at = None;
                split.ask_all(&want.type_url, None, &mut told);
            }
            (Target::Name(name), _) => {
                let state = split.wildcard.then(|| wildcard(cut, &want.type_url)).flatten();
                split.ask(&want.type_url, name, state.as_deref(), &mut told);
            }
        }
        split.look(&want.type_url, cut, &mut told);
        self.sweep();
        told
    }

    /// The server does not answer for this type, so its names stop waiting for the wildcard. Returns what to tell which stream.
    pub fn handle_unserved(&mut self, type_url: &TypeUrl, cut: &Cut) -> Vec<(LegKind, Want)> {
        let mut told = Vec::new();
        if let Some(split) = self.types.get_mut(type_url) {
            split.waits = false;
            let state = split.wildcard.then(|| wildcard(cut, type_url)).flatten();
            split.ask_all(type_url, state.as_deref(), &mut told);
        }
        told
    }

    /// The view changed, and perhaps what its wildcards cover. Returns what to tell which stream.
    pub fn handle_cut(&mut self, cut: &Cut) -> Vec<(LegKind, Want)> {
        let mut told = Vec::new();
        for (type_url, split) in &mut self.types {
            split.look(type_url, cut, &mut told);
        }
        told
    }

    fn sweep(&mut self) {
        if self.types.len() > self.sweep_at.max(TYPES_REMEMBERED) {
            // What was learned of types with a wildcard stays: clients invent none of these.
            let is_needed = |split: &Split| split.wildcard || !split.names.is_empty();
            self.types
                .retain(|type_url, split| type_url.traits().wildcard || is_needed(split));
            self.sweep_at = self.types.len() * 2;
        }
    }
}

impl Split {
    fn first(want: &Want) -> Self {
        Self {
            wildcard_on: match want.target {
                Target::Wildcard => LegKind::Main,
                Target::Name(_) => LegKind::Aside,
            },
            wildcard: false,
            waits: want.type_url.traits().wildcard,
            names: Sorted::new(),
            written: BTreeMap::new(),
            looked_at: None,
        }
    }

    /// Decides again about the names for which the wildcard changed since the last look.
    fn look(&mut self, type_url: &TypeUrl, cut: &Cut, told: &mut Vec<(LegKind, Want)>) {
        let mixed = self.wildcard && !self.names.is_empty();
        let Some(state) = mixed.then(|| wildcard(cut, type_url)).flatten() else {
            self.looked_at = self.looked_at.take().filter(|_| mixed);
            return;
        };
        match self.looked_at.replace(state.clone()) {
            Some(before) if before.id() == state.id() => {}
            Some(before) if before.complete() == state.complete() => {
                let changed = changed(&before, &state);
                // a resource without a name answers to all names.
                if changed.first().is_some_and(Name::is_empty) {
                    self.ask_all(type_url, Some(&state), told);
                }
                for name in &changed {
                    self.ask(type_url, name, Some(&state), told);
                }
                let slot = cut.slot(type_url);
                let found = slot
                    .iter()
                    .flat_map(|slot| changed.iter().filter_map(|name| slot.named.resource(name)));
                self.ask_outdated(type_url, cut, found.flat_map(|found| found.aliases()), told);
            }
            Some(_) | None => {
                self.ask_all(type_url, Some(&state), told);
                self.ask_outdated(type_url, cut, self.names.iter().map(Named::name), told);
            }
        }
    }

    fn ask_all(&mut self, type_url: &TypeUrl, state: Option<&State>, told: &mut Vec<(LegKind, Want)>) {
        let names: Vec<Name> = self.names.iter().map(|wanted| wanted.name.clone()).collect();
        for name in names {
            self.ask(type_url, &name, state, told);
        }
    }

    fn is_asked(&self, name: &Name) -> bool {
        self.names.get(name.as_str()).is_some_and(|wanted| wanted.asked)
    }

    /// C-20: requests once more those of the aliases of which nothing is known any more, because the wildcard has other content of the
    /// resource that was found by them. In SotW the server does not say that such an alias stands for nothing.
    fn ask_outdated<'a>(
        &self,
        type_url: &TypeUrl,
        cut: &Cut,
        names: impl IntoIterator<Item = &'a Name>,
        told: &mut Vec<(LegKind, Want)>,
    ) {
        let Some(slot) = cut.slot(type_url) else { return };
        let names = names.into_iter().filter(|name| self.is_asked(name));
        let outdated = names.filter(|name| slot.named.resource(name).is_some() && slot.known(name).is_none());
        let outdated: BTreeSet<&Name> = outdated.collect();
        for wanted in [false, true] {
            let wants = outdated.iter().map(|name| want(type_url, name, wanted, None));
            told.extend(wants.map(|want| (self.wildcard_on.other(), want)));
        }
    }

    /// Requests the name or stops requesting it, depending on whether the wildcard covers it.
    fn ask(&mut self, type_url: &TypeUrl, name: &Name, state: Option<&State>, told: &mut Vec<(LegKind, Want)>) {
        let Some(one) = self.names.get_mut(name.as_str()) else {
            return;
        };
        let covered = state.is_some_and(|state| state.resource(name).is_some());
        let open = self.wildcard && self.waits && !state.is_some_and(State::complete);
        // An incomplete wildcard may still bring the name. Until it is complete, no new name is requested and no requested name
        // is given up.
        let wanted = !covered && (one.asked || !open);
        if wanted == std::mem::replace(&mut one.asked, wanted) {
            return;
        }
        let ways = self.written.get(name).filter(|_| wanted);
        let one = ways.is_none().then_some(&None);
        let ways = one.into_iter().chain(ways.into_iter().flatten());
        told.extend(ways.map(|written| (self.wildcard_on.other(), want(type_url, name, wanted, written.clone()))));
    }

    /// Adds a wanted name and one of its spellings. Returns whether the spelling is new.
    fn write(&mut self, name: &Name, written: Option<&Name>) -> bool {
        let known = self.names.contains(name.as_str());
        if !known {
            let name = name.clone();
            self.names.insert(WantedName { name, asked: false });
        }
        if let Some(ways) = self.written.get_mut(name) {
            return ways.insert(written.cloned());
        }
        if written.is_none() {
            return false;
        }
        let own = known.then_some(None);
        let ways = own.into_iter().chain([written.cloned()]).collect();
        self.written.insert(name.clone(), ways);
        true
    }
}

fn want(type_url: &TypeUrl, name: &Name, wanted: bool, written: Option<Name>) -> Want {
    Want {
        type_url: type_url.clone(),
        target: Target::Name(name.clone()),
        wanted,
        written,
    }
}

fn wildcard(cut: &Cut, type_url: &TypeUrl) -> Option<Arc<State>> {
    cut.slot(type_url).and_then(|slot| slot.wildcard.clone())
}

/// Returns the names and aliases for which the two states may differ.
fn changed(before: &State, after: &State) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    let mut note = |name: &Name, known: &Known| {
        names.insert(name.clone());
        if let Known::Present(resource) = known {
            names.extend(Resource::aliases(resource).iter().cloned());
        }
    };
    for item in before.entries().diff(after.entries()) {
        match item {
            DiffItem::Add(name, known) | DiffItem::Remove(name, known) => note(name, known),
            DiffItem::Update { old, new } => {
                note(old.0, old.1);
                note(new.0, new.1);
            }
        }
    }
    names
}
