//! A state as one client sees it: under each name the variant that matches its parameters (TP2), in place of the unconstrained
//! resource, and without the names that it may not have.
//!
//! Owns its computation: the result is a state like any other, and the next costs only what changed. Does not know the client.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::State;
use super::variants::Variants;
use crate::held::next_id;
use crate::{Choice, Lens, Name, Rights, Update};

/// What a client sees of a state.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The whole state.
    pub of: Arc<State>,
    /// Which variants the client gets.
    pub choice: Option<Choice>,
    /// What the client may have; `None`: everything.
    pub rights: Option<Arc<Rights>>,
    /// What the client sees: the very same state, if no variant matches and nothing is left out.
    pub seen: Arc<State>,
}

impl Chosen {
    /// Whether it is what a client with this lens sees.
    #[must_use]
    pub fn is_for(&self, lens: Lens<'_>) -> bool {
        let rights = match (&self.rights, lens.rights) {
            (Some(own), Some(rights)) => Arc::ptr_eq(own, rights) || own == rights,
            (own, rights) => own.is_none() && rights.is_none(),
        };
        rights && self.choice.as_ref() == lens.choice
    }
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

    /// Returns what a client with this lens sees of the state. `before` is what such a client saw of an earlier one.
    #[must_use]
    pub fn seen_by(self: &Arc<Self>, lens: Lens<'_>, before: Option<&Chosen>) -> Chosen {
        let mut names = BTreeSet::new();
        let mut next = match before {
            Some(Chosen { of, seen, .. }) => {
                differing(&of.entries, &self.entries, &mut names);
                differing(of.variants.by_name(), self.variants.by_name(), &mut names);
                differing(&of.expiries, &self.expiries, &mut names);
                // An earlier result that was the whole state shares nothing that this state does not have.
                let base = if Arc::ptr_eq(of, seen) { self } else { seen };
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
                if lens.rights.is_some() {
                    names.extend(self.entries.keys().cloned());
                }
                Self {
                    id: next_id(),
                    ..(**self).clone()
                }
            }
        };
        for name in &names {
            let hidden = lens
                .rights
                .is_some_and(|rights| !rights.allow(&self.type_url, name.as_str()));
            let (known, expiry) = match lens.choice.and_then(|own| self.choose(name, own)) {
                _ if hidden => (None, None),
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
        // Without chosen variants it has no other entries than the whole state.
        let whole = !next.is_chosen() && next.entries.len() == self.entries.len();
        let seen = if whole { self.clone() } else { Arc::new(next) };
        Chosen {
            of: self.clone(),
            choice: lens.choice.cloned(),
            rights: lens.rights.cloned(),
            seen,
        }
    }

    /// Returns the same state with what a client was sent for single names. Nothing of that counts as a variant: it is for this
    /// client.
    #[must_use]
    pub(crate) fn told(&self, updates: &[Update]) -> Self {
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
