//! A state as a client with parameters sees it (TP2): under each name the variant that matches, in place of the unconstrained
//! resource.
//!
//! Owns its computation: the result is a state like any other, and the next costs only what changed. Does not know the client.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::State;
use super::variants::Variants;
use crate::xds::held::next_id;
use crate::xds::{Choice, Name, Update};

/// What a client sees of a state.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The whole state.
    pub of: Arc<State>,
    /// Which variants the client gets.
    pub own: Choice,
    /// What the client sees: the very same state, if no variant matches.
    pub seen: Arc<State>,
}

impl State {
    /// Whether it has constrained variants.
    #[must_use]
    pub fn varies(&self) -> bool {
        !self.variants.is_empty()
    }

    /// Whether it contains variants chosen for one client.
    #[must_use]
    pub const fn is_chosen(&self) -> bool {
        self.chosen > 0
    }

    /// Returns what a client with these parameters sees of the state. `before` is what such a client saw of an earlier one.
    #[must_use]
    pub fn seen_by(self: &Arc<Self>, own: &Choice, before: Option<&Chosen>) -> Chosen {
        let mut names = BTreeSet::new();
        let mut next = match before {
            Some(Chosen { of, seen, .. }) => {
                differing(&of.entries, &self.entries, &mut names);
                differing(of.variants.by_name(), self.variants.by_name(), &mut names);
                differing(&of.expiries, &self.expiries, &mut names);
                // Without chosen variants, the earlier result shares nothing that this state does not have.
                let base = if seen.is_chosen() { seen } else { self };
                Self {
                    id: next_id(),
                    whole: self.whole.clone(),
                    errors: self.errors.clone(),
                    variants: self.variants.clone(),
                    complete: self.complete,
                    stale: self.stale,
                    ..(**base).clone()
                }
            }
            None => {
                names.extend(self.variants.by_name().keys().cloned());
                Self {
                    id: next_id(),
                    ..(**self).clone()
                }
            }
        };
        for name in &names {
            let (known, expiry) = match self.choose(name, own) {
                Some(variant) => (Some(&variant.known), variant.expiry),
                None => (self.entries.get(name), self.expiry(name)),
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
        let seen = if next.is_chosen() { Arc::new(next) } else { self.clone() };
        Chosen {
            of: self.clone(),
            own: own.clone(),
            seen,
        }
    }

    /// Returns the same state with what a client was sent for single names. Nothing of that counts as a variant: it is for this
    /// client.
    #[must_use]
    pub(in crate::xds) fn told(&self, updates: &[Update]) -> Self {
        let mut next = Self {
            id: next_id(),
            variants: Variants::default(),
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
