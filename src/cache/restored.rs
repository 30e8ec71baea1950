//! What an earlier run of the relay knew of a view.
//!
//! Owns that it is at hand for as long as the server has not spoken, and that it is marked as old. Refuses to know files.

use std::sync::Arc;

use super::view::View;
use super::woken::Woken;
use crate::xds::{Changes, Cut, Known, State, TypeUrl, Update};

impl View {
    /// Lays in what an earlier run knew. It is not served before somebody wants it.
    pub fn set_restored(&self, restored: Cut) {
        self.restored.store(Some(Arc::new(restored)));
    }

    /// What an earlier run knew, until the server can say all of it itself.
    #[must_use]
    pub fn restored(&self) -> Option<Arc<Cut>> {
        self.restored.load_full()
    }

    /// The server can say all of it itself.
    pub fn forget_restored(&self) {
        if self.restored.load().is_some() {
            self.restored.store(None);
        }
    }

    /// Like [`View::publish`], of what an earlier run knew: it is served, and marked as old.
    pub fn publish_restored(&self, changes: &[Changes]) -> Woken {
        self.publish_by(changes, Cut::restored)
    }

    /// The types of which an earlier run's knowledge is served, on which the server has not spoken since.
    #[must_use]
    pub fn stale(&self) -> Vec<TypeUrl> {
        let cut = self.cut();
        let stale = cut.slots().filter(|(_, slot)| slot.stale());
        stale.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// All that a later run may begin with.
    #[must_use]
    pub fn knowledge(&self) -> Knowledge {
        Knowledge {
            cut: self.cut(),
            restored: self.restored(),
        }
    }
}

/// What is known of a view at one instant, and what an earlier run knew that nobody has wanted yet.
#[derive(Clone, Debug)]
pub struct Knowledge {
    cut: Arc<Cut>,
    restored: Option<Arc<Cut>>,
}

impl Knowledge {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cut.slots().next().is_none()
    }

    /// All of it. Takes as long as much is known from an earlier run.
    #[must_use]
    pub fn whole(self) -> Arc<Cut> {
        match self.restored {
            None => self.cut,
            Some(restored) => Arc::new(over(&restored, &self.cut)),
        }
    }
}

/// What is newer over what is older.
fn over(older: &Cut, newer: &Cut) -> Cut {
    let mut both = older.clone();
    for (type_url, slot) in newer.slots() {
        if let Some(state) = &slot.wildcard {
            both = both.without_wildcard(type_url);
            both = both.with(&all_of(state, true)).0;
        }
        both = both.with(&all_of(&slot.named, false)).0;
    }
    both
}

/// A half of a type, as changes that bring it about.
fn all_of(state: &State, wildcard: bool) -> Changes {
    let updates = state.entries().iter().map(|(name, known)| match known {
        Known::Present(resource) => Update::Put(resource.clone(), state.expiry(name)),
        Known::Absent(reason) => Update::Absent(name.clone(), *reason),
    });
    let variants = state.variants();
    let variants = variants.map(|(variant, expiry)| Update::Put(variant.clone(), expiry));
    Changes {
        type_url: state.type_url().clone(),
        wildcard,
        updates: updates.chain(variants).collect(),
        complete: state.complete().then_some(true),
        answered: None,
    }
}
