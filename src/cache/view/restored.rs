//! What an earlier run of the relay knew of a view.
//!
//! Owns that it is available until the server has answered, and that it is marked as stale. Knows nothing of files.

use std::sync::Arc;

use super::View;
use crate::interest::Woken;
use classes::ClientKind;
use xds::{Changes, Condemned, Cut, Known, Phase, ServerState, State, TypeUrl, Update};

impl View {
    /// Stores what an earlier run knew. It is not served before somebody wants it, and what it has condemned stays so: nobody is served
    /// that before it is judged again.
    pub fn set_restored(self: &Arc<Self>, restored: Cut) {
        let class = Arc::new(self.class().clone());
        let of_view = |one: &Arc<Condemned>| {
            let kind = (one.kind.as_ref()).map(|kind| ClientKind::new(class.clone(), kind.user_agent().clone()));
            Arc::new(Condemned {
                kind,
                ..Condemned::clone(one)
            })
        };
        let condemned: Vec<_> = restored.condemned().iter().map(of_view).collect();
        let since = condemned.iter().map(|one| one.since).max();
        let restored = restored.with_condemned(condemned.clone());
        self.restored.store(Some(Arc::new(restored)));
        if let Some(since) = since {
            if self.docket.settings().after > 0 {
                drop(self.publish_condemned(condemned, Vec::new(), since));
            }
            self.docket.add(self);
        }
    }

    /// Returns what an earlier run knew, until the server can provide all of it.
    #[must_use]
    pub fn restored(&self) -> Option<Arc<Cut>> {
        self.restored.load_full()
    }

    /// Drops what an earlier run knew: the server can provide all of it. Returns whether there was anything.
    pub fn forget_restored(&self) -> bool {
        self.restored.load().is_some() && self.restored.swap(None).is_some()
    }

    /// Like [`View::publish`], for what an earlier run knew: it is served, and marked as stale.
    pub fn publish_restored(&self, changes: &[Changes]) -> Woken {
        self.publish_by(changes, Cut::restored)
    }

    /// Returns the types that are served without the server's word: those with content of an earlier run, for which the server has
    /// not answered since, and those with any content while the server is away.
    #[must_use]
    pub fn stale(&self) -> Vec<TypeUrl> {
        let cut = self.cut();
        let away = cut.server_state() == ServerState::Failing;
        let stale = cut
            .slots()
            .filter(|(_, slot)| slot.stale() || away && slot.present() > 0);
        stale.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// Returns all that a later run may begin with.
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

    /// Returns all of it as one cut. The more is known from an earlier run, the longer it takes.
    #[must_use]
    pub fn whole(self) -> Arc<Cut> {
        match self.restored {
            None => self.cut,
            Some(restored) => Arc::new(over(&restored, &self.cut)),
        }
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
    let condemned = if newer.condemned().is_empty() { older } else { newer }.condemned();
    let condemned = Vec::clone(condemned);
    both.with_holds(Vec::clone(newer.holds())).with_condemned(condemned)
}

/// Returns the changes that create this half of a type.
fn all_of(state: &State, wildcard: bool) -> Changes {
    let updates = state.entries().iter().filter_map(|(name, known)| match known {
        Known::Present(resource) => Some(Update::Put(resource.clone(), state.expiry(name))),
        Known::Absent(reason) => Some(Update::Absent(name.clone(), *reason)),
        Known::Held(_) => None,
    });
    Changes {
        type_url: state.type_url().clone(),
        wildcard,
        updates: updates.collect(),
        complete: state.complete().then_some(true),
        answered: None,
        phase: Phase::Steady,
    }
}
