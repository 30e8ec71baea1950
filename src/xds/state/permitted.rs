// SPDX-License-Identifier: Apache-2.0
//! A state as clients with the same rights see it: without the names that they may not have.
//!
//! Owns its computation: the result is a state like any other, and the next costs only what changed. Does not know the clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::State;
use crate::value_id::next_id;
use crate::{Name, Rights, Update};

/// What clients with these rights see of a state.
#[derive(Clone, Debug)]
pub struct Permitted {
    /// The whole state.
    pub of: Arc<State>,
    /// What the clients may have.
    pub rights: Arc<Rights>,
    /// What they see: the very same state, if nothing is left out.
    pub seen: Arc<State>,
}

impl Permitted {
    /// Whether it is what a client with these rights sees.
    pub fn is_for(&self, rights: &Arc<Rights>) -> bool {
        Arc::ptr_eq(&self.rights, rights) || self.rights == *rights
    }
}

impl State {
    /// Returns what a client with these rights sees of the state. `before` is what such a client saw of an earlier one.
    #[must_use]
    pub fn seen_by(self: &Arc<Self>, rights: &Arc<Rights>, before: Option<&Permitted>) -> Permitted {
        let mut names = BTreeSet::new();
        let mut next = match before {
            Some(Permitted { of, seen, .. }) => {
                differing(&of.entries, &self.entries, &mut names);
                differing(&of.expiries, &self.expiries, &mut names);
                // An earlier result that was the whole state shares nothing that this state does not have.
                let base = if Arc::ptr_eq(of, seen) { self } else { seen };
                Self {
                    id: next_id(),
                    whole: self.whole.clone(),
                    errors: self.errors.clone(),
                    complete: self.complete,
                    stale: self.stale,
                    ..(**base).clone()
                }
            }
            None => {
                names.extend(self.entries.keys().cloned());
                Self {
                    id: next_id(),
                    ..(**self).clone()
                }
            }
        };
        for name in &names {
            let (known, expiry) = if rights.allow(&self.type_url, name.as_str()) {
                (self.entries.get(name), self.expiry(name))
            } else {
                (None, None)
            };
            // An unchanged entry stays shared.
            if next.entries.get(name) != known {
                next.replace(name, known.cloned(), &mut Vec::new());
            }
            if next.expiry(name) != expiry {
                match expiry {
                    Some(expiry) => drop(next.expiries.insert(name.clone(), expiry)),
                    None => drop(next.expiries.remove(name)),
                }
            }
        }
        let whole = next.entries.len() == self.entries.len();
        let seen = if whole { self.clone() } else { Arc::new(next) };
        Permitted {
            of: self.clone(),
            rights: rights.clone(),
            seen,
        }
    }

    /// Returns the same state with what a client was sent for single names.
    pub(crate) fn told(&self, updates: &[Update]) -> Self {
        let mut next = Self {
            id: next_id(),
            ..self.clone()
        };
        let mut changed = Vec::new();
        for update in updates {
            if let Update::Put(resource, expiry) = update {
                next.put(resource, *expiry, &mut changed);
            } else {
                next.replace(update.name(), None, &mut changed);
            }
        }
        next
    }
}

/// Adds the names that differ between the two.
fn differing<V: PartialEq>(before: &OrdMap<Name, V>, after: &OrdMap<Name, V>, names: &mut BTreeSet<Name>) {
    let changed = before.diff(after).map(|item| match item {
        DiffItem::Add(name, _) | DiffItem::Remove(name, _) | DiffItem::Update { new: (name, _), .. } => name,
    });
    names.extend(changed.cloned());
}
