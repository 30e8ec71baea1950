// SPDX-License-Identifier: Apache-2.0
//! What the clients of one view read of other servers.
//!
//! Owns the way from a type and a name to the cuts of other views. Does not know which views these are, nor who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cut, Name, Owners, ServerState, TypeUrl};

/// Some clients read from the view itself what the first owner has. Finds the views from which they read what the second one has.
type Find = dyn Fn(Option<&str>, Option<&str>) -> Vec<Neighbour> + Send + Sync;
/// Finds the views in which a client wants this very name now.
type Wants = dyn Fn(&TypeUrl, &Name) -> Vec<Option<usize>> + Send + Sync;

/// What the clients of a view read of other servers (D-11, D-12). What one owner has, a client reads from one view.
pub struct OtherViews {
    owners: Owners,
    /// Those whose names clients may read from the view itself.
    here: Vec<Option<Arc<str>>>,
    find: Box<Find>,
    wants: Box<Wants>,
}

/// A view from which clients read.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// A number that no other view has at the same time; `None`: the view itself.
    pub view: Option<usize>,
    /// What it has now.
    pub cut: Arc<Cut>,
}

/// What clients read at another view of one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewPlace {
    owner: Option<Arc<str>>,
    view: usize,
}

impl OtherViews {
    /// Looks things up in this way, among what these owners have. Clients may read what those in `here` have from the view itself.
    #[must_use]
    pub fn new(
        owners: Owners,
        here: Vec<Option<Arc<str>>>,
        find: impl Fn(Option<&str>, Option<&str>) -> Vec<Neighbour> + Send + Sync + 'static,
        wants: impl Fn(&TypeUrl, &Name) -> Vec<Option<usize>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            owners,
            here,
            find: Box::new(find),
            wants: Box::new(wants),
        }
    }

    /// Some clients read from the view itself what `from` has. Returns the views from which they read this, one at least. There are several
    /// if some of them belong to a canary, or have fallen back to another server.
    pub fn views(&self, from: Option<&str>, type_url: &TypeUrl, name: &Name) -> Vec<Neighbour> {
        let mut found = (self.find)(from, self.owners.of(type_url, Some(name)));
        if found.is_empty() {
            // Nobody has asked there, so nothing says that the server is away.
            found.push(Neighbour {
                view: Some(0),
                cut: Arc::new(Cut::default().with_server_state(ServerState::Open)),
            });
        }
        found
    }

    /// Whether a client wants this very name now.
    pub fn wants(&self, type_url: &TypeUrl, name: &Name) -> bool {
        !self.wanting(type_url, name).is_empty()
    }

    /// Returns the views in which a client wants this very name now, by their numbers.
    pub fn wanting(&self, type_url: &TypeUrl, name: &Name) -> Vec<Option<usize>> {
        (self.wants)(type_url, name)
    }

    /// Who is asked for what.
    pub const fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns what other views have for clients that read something of another owner from the view itself.
    pub fn all(&self) -> BTreeMap<ViewPlace, Arc<Cut>> {
        let mut all = BTreeMap::new();
        for owner in self.owners.all() {
            let others = self.here.iter().map(Option::as_deref);
            let others = others.filter(|other| *other != owner.map(|owner| &**owner));
            for Neighbour { view, cut } in others.flat_map(|other| (self.find)(other, owner.map(|owner| &**owner))) {
                if let Some(view) = view {
                    let owner = owner.cloned();
                    all.insert(ViewPlace { owner, view }, cut);
                }
            }
        }
        all
    }
}

impl ViewPlace {
    /// Whether anything of a type is read there.
    pub fn may_have(&self, owners: &Owners, type_url: &TypeUrl) -> bool {
        owners.have(self.owner.as_deref(), type_url)
    }

    /// Whether this very name is read there. The view may have it for clients that are about to leave.
    pub fn has(&self, owners: &Owners, type_url: &TypeUrl, name: &Name) -> bool {
        owners.of(type_url, Some(name)) == self.owner.as_deref()
    }
}
