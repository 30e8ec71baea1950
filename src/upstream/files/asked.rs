// SPDX-License-Identifier: Apache-2.0
//! What one view wants from files, and the changes that follow from their content.
//!
//! Owns the rule that a name without a resource does not exist, once the content is complete. Knows nothing of files and when
//! they change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::{FileContents, names_of};
use crate::xds::{Changes, Cut, Name, Reason, Resource, Slot, State, Target, TypeUrl, Update, Want};

/// The wants of a view.
#[derive(Debug, Default)]
pub struct FileWants {
    types: BTreeMap<TypeUrl, WantedOfType>,
    /// The content from which they were answered last.
    content: Arc<FileContents>,
}

#[derive(Debug, Default)]
struct WantedOfType {
    wildcard: bool,
    names: BTreeSet<Name>,
}

impl FileWants {
    /// Whether this is the last content that was handled.
    #[must_use]
    pub fn is_at(&self, content: &Arc<FileContents>) -> bool {
        Arc::ptr_eq(&self.content, content)
    }

    /// Wants begin or end. Returns the changes for a view whose current state is `cut`.
    pub fn handle_wants(&mut self, wants: &[Want], content: &FileContents, cut: &Cut) -> Vec<Changes> {
        let mut changes = Vec::new();
        for wants in wants.chunk_by(|a, b| a.type_url == b.type_url) {
            let Some(type_url) = wants.first().map(|want| &want.type_url) else {
                continue;
            };
            let wanted = self.types.entry(type_url.clone()).or_default();
            let slot = cut.slot(type_url);
            let (mut began, mut ended) = (BTreeSet::new(), false);
            for want in wants {
                match (&want.target, want.wanted) {
                    (Target::Wildcard, begins) => wanted.wildcard = begins,
                    (Target::Name(name), true) => {
                        wanted.names.insert(name.clone());
                        began.insert(name);
                    }
                    (Target::Name(name), false) => {
                        wanted.names.remove(name);
                        began.remove(name);
                        ended |= name.is_collection();
                    }
                }
            }
            if wants.iter().any(|want| want.wanted && want.target == Target::Wildcard) {
                changes.extend(wanted.all(type_url, content, slot));
            }
            let mut updates = Vec::new();
            let mut there = BTreeSet::new();
            for name in began {
                one(type_url, name, content, &mut updates, &mut there);
            }
            if ended {
                updates.extend(wanted.leftovers(type_url, content, slot));
            }
            changes.extend(named(type_url, content, updates));
        }
        self.types
            .retain(|_, wanted| wanted.wildcard || !wanted.names.is_empty());
        changes
    }

    /// The content replaces another one. Returns the changes for a view whose current state is `cut`. I-06: equal content is no
    /// change.
    pub fn handle_content(&mut self, content: &Arc<FileContents>, cut: &Cut) -> Vec<Changes> {
        let before = std::mem::replace(&mut self.content, content.clone());
        let mut changes = Vec::new();
        for (type_url, wanted) in &self.types {
            let slot = cut.slot(type_url);
            changes.extend(wanted.all(type_url, content, slot));
            if wanted.names.is_empty() {
                continue;
            }
            let mut updates = Vec::new();
            let mut there = BTreeSet::new();
            let contents: [&FileContents; 2] = [&before, content];
            for name in wanted.concerned(type_url, &contents, before.whole() != content.whole(), slot) {
                one(type_url, name, content, &mut updates, &mut there);
            }
            updates.extend(wanted.leftovers(type_url, content, slot));
            changes.extend(named(type_url, content, updates));
        }
        changes
    }
}

impl WantedOfType {
    /// Returns the changes of the wildcard, if it is wanted.
    fn all(&self, type_url: &TypeUrl, content: &FileContents, slot: Option<&Slot>) -> Option<Changes> {
        if !self.wildcard {
            return None;
        }
        let state = slot.and_then(|slot| slot.wildcard.as_deref());
        let held = |resource: &Arc<Resource>, expiry| {
            let state = state.filter(|state| state.expiry(resource.name()) == expiry);
            let known = state.and_then(|state| state.entries().get(resource.name())?.resource());
            known.is_some_and(|known| known.version() == resource.version())
        };
        let mut there = BTreeSet::new();
        let mut updates = Vec::new();
        for resource in content.covered(type_url) {
            let expiry = content.expiry(type_url, resource.name());
            there.insert(resource.name());
            if !held(resource, expiry) {
                updates.push(Update::Put(resource.clone(), expiry));
            }
        }
        let gone = state
            .into_iter()
            .flat_map(State::resources)
            .map(|resource| resource.name());
        updates.extend(gone.filter(|name| !there.contains(name)).cloned().map(Update::Forget));
        Some(Changes {
            complete: content.whole().then_some(true),
            answered: content.whole().then_some(true),
            ..Changes::of((type_url.clone(), true), updates)
        })
    }

    /// Returns the wanted names that lead to anything in these contents or in the view; with `all`, all of them. Clients may want
    /// very many names that lead nowhere.
    fn concerned<'a>(
        &'a self,
        type_url: &TypeUrl,
        contents: &[&FileContents],
        all: bool,
        slot: Option<&Slot>,
    ) -> Vec<&'a Name> {
        let stated: usize = contents.iter().map(|content| content.len()).sum();
        if all || self.names.len() <= stated {
            return self.names.iter().collect();
        }
        let held = held(slot).flat_map(|resource| names_of(resource));
        let stated = contents.iter().flat_map(|content| content.names_of(type_url));
        let names: BTreeSet<&Name> = held.chain(stated).filter_map(|name| self.names.get(&name)).collect();
        names.into_iter().collect()
    }

    /// Returns the removal of resources that the view holds by name although no wanted name leads to them any more.
    fn leftovers(&self, type_url: &TypeUrl, content: &FileContents, slot: Option<&Slot>) -> Vec<Update> {
        let mut there = BTreeSet::new();
        for name in self.concerned(type_url, &[content], false, None) {
            one(type_url, name, content, &mut Vec::new(), &mut there);
        }
        let held = held(slot);
        // A resource that is wanted by its name is handled in `one`: its name is declared absent.
        let over = held.map(|resource| resource.name());
        let over = over.filter(|name| !there.contains(*name) && !self.names.contains(*name));
        over.cloned().map(Update::Forget).collect()
    }
}

/// Returns the resources that the view holds by name. Nearly all of very many names may be such that do not exist: if all are, none is
/// looked at.
fn held(slot: Option<&Slot>) -> impl Iterator<Item = &Arc<Resource>> {
    let any = slot.filter(|slot| slot.named.present() > 0);
    any.into_iter().flat_map(|slot| slot.named.resources())
}

/// Adds the updates for one name, and the names of the resources that it leads to.
fn one(type_url: &TypeUrl, name: &Name, content: &FileContents, updates: &mut Vec<Update>, there: &mut BTreeSet<Name>) {
    let found = content.resource(type_url, name);
    match (content.whole(), found.is_none()) {
        // C-22: the collection is complete.
        (true, _) if name.is_collection() => updates.push(Update::Whole(name.clone())),
        (true, true) => {
            let reason = if content.is_over(type_url, name) {
                Reason::Expired
            } else {
                Reason::Said
            };
            updates.push(Update::Absent(name.clone(), reason));
        }
        // G-20: a resource that has gone from the good files may be in a bad one: it is removed, but not declared absent.
        (false, true) if !name.is_collection() => updates.push(Update::Forget(name.clone())),
        (_, _) => {}
    }
    let members = name.is_collection().then(|| content.members(type_url, name));
    for resource in found.into_iter().chain(members.into_iter().flatten()) {
        let name = resource.name();
        updates.push(Update::Put(resource.clone(), content.expiry(type_url, name)));
        there.insert(name.clone());
    }
}

fn named(type_url: &TypeUrl, content: &FileContents, updates: Vec<Update>) -> Option<Changes> {
    (!updates.is_empty()).then(|| Changes {
        answered: content.whole().then_some(true),
        ..Changes::of((type_url.clone(), false), updates)
    })
}
