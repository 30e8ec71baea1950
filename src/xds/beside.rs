//! What the clients of one view read of other servers.
//!
//! Owns the way from a type and a name to the cuts of other views. Does not know which views these are, nor who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cut, Name, Owners, ServerState, TypeUrl};

/// Finds the views from which clients read what an owner has; `None`: they read the view itself.
type Find = dyn Fn(Option<&str>) -> Option<Vec<Neighbour>> + Send + Sync;
/// Whether a client wants this very name now.
type Wants = dyn Fn(&TypeUrl, &Name) -> bool + Send + Sync;

/// What the clients of a view read of other servers (D-11, D-12).
pub struct Beside {
    owners: Owners,
    find: Box<Find>,
    wants: Box<Wants>,
}

/// A view beside.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// A number that no other view has at the same time.
    pub view: usize,
    /// What it has now.
    pub cut: Arc<Cut>,
}

/// What clients read at another view of one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewPlace {
    owner: Option<Arc<str>>,
    view: usize,
}

impl Beside {
    /// Looks things up in this way, among what these owners have.
    #[must_use]
    pub fn new(
        owners: Owners,
        find: impl Fn(Option<&str>) -> Option<Vec<Neighbour>> + Send + Sync + 'static,
        wants: impl Fn(&TypeUrl, &Name) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            owners,
            find: Box::new(find),
            wants: Box::new(wants),
        }
    }

    /// Returns the cuts of other servers from which clients read this, one at least; `None`: they read it from their own view. Clients of
    /// one view can read several: those of a canary, and others.
    #[must_use]
    pub fn cuts(&self, type_url: &TypeUrl, name: &Name) -> Option<Vec<Arc<Cut>>> {
        let found = (self.find)(self.owners.of(type_url, Some(name)))?;
        if found.is_empty() {
            // Nobody has asked there, so nothing says that the server is away.
            return Some(vec![Arc::new(Cut::default().with_server_state(ServerState::Open))]);
        }
        Some(found.into_iter().map(|neighbour| neighbour.cut).collect())
    }

    /// Whether a client wants this very name now.
    #[must_use]
    pub fn wants(&self, type_url: &TypeUrl, name: &Name) -> bool {
        (self.wants)(type_url, name)
    }

    /// Who is asked for what.
    #[must_use]
    pub const fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns all that clients read elsewhere.
    #[must_use]
    pub fn all(&self) -> BTreeMap<ViewPlace, Arc<Cut>> {
        let mut all = BTreeMap::new();
        for owner in self.owners.all() {
            for Neighbour { view, cut } in (self.find)(owner.map(|owner| &**owner)).unwrap_or_default() {
                let owner = owner.cloned();
                all.insert(ViewPlace { owner, view }, cut);
            }
        }
        all
    }
}

impl ViewPlace {
    /// Whether anything of a type is read there.
    #[must_use]
    pub fn may_have(&self, owners: &Owners, type_url: &TypeUrl) -> bool {
        owners.have(self.owner.as_deref(), type_url)
    }

    /// Whether this very name is read there. The view may have it for clients that are about to leave.
    #[must_use]
    pub fn has(&self, owners: &Owners, type_url: &TypeUrl, name: &Name) -> bool {
        owners.of(type_url, Some(name)) == self.owner.as_deref()
    }
}
