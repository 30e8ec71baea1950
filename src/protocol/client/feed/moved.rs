// SPDX-License-Identifier: Apache-2.0
//! Names that leave the list of their type, or move to another stream of the same server (K-01, E-27).
//!
//! Owns that what is held of them stays. Does not decide which names these are.

use std::sync::Arc;

use super::Feed;
use crate::client::kept::One;
use xds::{Kind, Name, Resource, ResourceError};

/// All that is known of a name, on its way to another stream.
#[derive(Debug)]
pub(crate) struct MovedName {
    name: Name,
    held: Option<One>,
    error: Option<Arc<ResourceError>>,
}

impl Feed {
    /// A wanted name is asked for in the list of its type, or is not.
    pub(in crate::client) fn list(&mut self, name: &Name, listed: bool) {
        if !self.wants_name(name) || !self.is_movable(name) || !self.names.list(name, listed) {
            return;
        }
        match listed {
            true => _ = self.outbound.come_back(name),
            false => self.outbound.leave_for_another(name),
        }
    }

    /// Takes a name away, if it is here and can be asked for elsewhere.
    pub(in crate::client) fn part(&mut self, name: &Name) -> Option<MovedName> {
        if !self.is_movable(name) || !self.names.remove(name) {
            return None;
        }
        self.outbound.leave_for_another(name);
        Some(MovedName {
            name: name.clone(),
            held: self.kept.take(name),
            error: self.errors.forget(name),
        })
    }

    /// Takes a name from another stream. It is not waited for if it is held (K-16).
    pub(in crate::client) fn join(&mut self, moved: MovedName) {
        let MovedName { name, held, error } = moved;
        self.names.insert(&name);
        let asked = !self.outbound.come_back(&name);
        self.errors.put(&name, error);
        if asked || held.is_some() {
            self.names.rest(name.as_str());
        }
        held.into_iter().for_each(|one| self.kept.put(one));
    }

    /// Whether a name is one of a list that the server reads as names of single resources, in one spelling.
    pub(super) fn is_movable(&self, name: &Name) -> bool {
        let held = self.kept.canonical(name.as_str());
        let own = held.is_none_or(|held| held == name);
        own && !self.asks_wildcard() && !name.is_collection() && !self.outbound.ways().contains(name.as_str())
    }
}

/// Returns the names that a resource of this kind names: the endpoints of a cluster, the routes of a listener or scope.
pub(in crate::client) fn named(kind: Kind, resource: &Resource) -> impl Iterator<Item = &Name> {
    let directs = kind.gated() && kind.names().is_some();
    let routes = directs.then(|| resource.references(kind)).flatten();
    let routes = routes.into_iter().flat_map(|found| &*found.routes);
    resource.endpoints().into_iter().chain(routes)
}
