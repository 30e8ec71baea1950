// SPDX-License-Identifier: Apache-2.0
//! What a later run may begin with.
//!
//! Owns how what the server has said is put over what an earlier run knew. Knows nothing of files.

use std::sync::Arc;

use xds::{Changes, Cut, Known, Older, State, Update};

/// What is known of a view at one instant, and what an earlier run knew that nobody has wanted yet.
#[derive(Clone, Debug)]
pub struct Knowledge {
    cut: Arc<Cut>,
    restored: Option<Arc<Cut>>,
    older: Vec<Older>,
}

impl Knowledge {
    pub(super) const fn new(cut: Arc<Cut>, restored: Option<Arc<Cut>>, older: Vec<Older>) -> Self {
        Self { cut, restored, older }
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cut.slots().next().is_none()
    }

    /// Returns all of it as one cut. The more is known from an earlier run, the longer it takes.
    #[must_use]
    pub fn whole(self) -> Arc<Cut> {
        let whole = match self.restored {
            None => self.cut,
            Some(restored) => Arc::new(over(&restored, &self.cut)),
        };
        if whole.older().is_empty() && self.older.is_empty() {
            return whole;
        }
        Arc::new(whole.with_older(self.older))
    }
}

/// Puts the newer cut over the older one.
fn over(older: &Cut, newer: &Cut) -> Cut {
    let mut both = older.clone();
    for (type_url, slot) in newer.slots() {
        if let Some(state) = &slot.wildcard {
            both = both.without_wildcard(type_url);
            both = both.with(&all_of(state, true)).0;
        }
        both = both.with(&all_of(&slot.named, false)).0;
    }
    both.with_holds(Vec::clone(newer.holds()))
}

/// Returns the changes that create this half of a type.
fn all_of(state: &State, wildcard: bool) -> Changes {
    let updates = state.entries().iter().filter_map(|(name, known)| match known {
        Known::Present(resource) => Some(Update::Put(resource.clone(), state.expiry(name))),
        Known::Absent(reason) => Some(Update::Absent(name.clone(), *reason)),
        Known::Held(_) => None,
    });
    Changes {
        complete: state.complete().then_some(true),
        ..Changes::of((state.type_url().clone(), wildcard), updates.collect())
    }
}
