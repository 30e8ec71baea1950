//! Which servers are asked for the names of each authority.
//!
//! Owns the order of servers, by number. Does not know what a server is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds::Authorities;

/// The list of servers for old-style names, and one for each authority (F-11).
#[derive(Clone, Debug, Default)]
pub struct Routes {
    top: Route,
    authorities: BTreeMap<Arc<str>, Route>,
    served: Authorities,
    /// Authorities that had servers of their own before a change of the configuration, and have the route of old-style names now.
    retired: BTreeSet<Arc<str>>,
    /// The number of changes of the configuration before these.
    generation: u64,
}

/// The servers of one authority, by priority (G-01).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Their numbers; equal servers of several lists have one number (F-12).
    pub servers: Arc<[usize]>,
    /// Whether a failure is enough to leave a server (G-04).
    pub reachability_only: bool,
}

/// Which sessions must look again when the server begins to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeOnFailure {
    /// None: no authority has the server.
    Nobody,
    /// Sessions that want anything of which nothing is known: there is another server (G-03), or none is left (G-18).
    Lacking,
    /// All sessions (G-04).
    Everybody,
}

impl Default for Route {
    /// One server.
    fn default() -> Self {
        Self {
            servers: Arc::new([0]),
            reachability_only: false,
        }
    }
}

impl Routes {
    /// Creates routes from these lists.
    #[must_use]
    pub fn new(top: Route, authorities: BTreeMap<Arc<str>, Route>) -> Self {
        let served = authorities.keys().cloned().collect();
        Self {
            top,
            authorities,
            served,
            retired: BTreeSet::new(),
            generation: 0,
        }
    }

    /// Returns these routes as those that follow `before`. An authority that has lost its servers stays apart, because sessions read
    /// it apart. Its names are read as a session without it reads them: from the servers of old-style names, in the client's class.
    pub(super) fn after(mut self, before: &Self) -> Self {
        for authority in before.authorities.keys() {
            if !self.authorities.contains_key(authority) {
                self.retired.insert(authority.clone());
                self.authorities.insert(authority.clone(), self.top.clone());
            }
        }
        self.served = self.authorities.keys().cloned().collect();
        self.generation = before.generation + 1;
        self
    }

    /// The number of changes of the configuration before these routes.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether all classes of clients share the names of an authority (F-13).
    #[must_use]
    pub fn is_shared(&self, authority: Option<&str>) -> bool {
        authority.is_some_and(|authority| !self.retired.contains(authority))
    }

    /// Returns the authorities that have servers of their own here, and had none before.
    pub fn added<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (&'a Arc<str>, &'a Route)> {
        let all = self.authorities.iter();
        all.filter(|(authority, _)| !before.authorities.contains_key(*authority))
    }

    /// Returns the servers of an authority, or those of old-style names.
    #[must_use]
    pub fn route(&self, authority: Option<&str>) -> Option<&Route> {
        match authority {
            None => Some(&self.top),
            Some(authority) => self.authorities.get(authority),
        }
    }

    /// The authorities that have servers of their own.
    #[must_use]
    pub const fn served(&self) -> &Authorities {
        &self.served
    }

    /// Returns which sessions at the views of a server must be woken when that server fails.
    pub(super) fn wake_on_failure(&self, server: usize) -> WakeOnFailure {
        let routes = std::iter::once(&self.top).chain(self.authorities.values());
        let mut wake_on_failure = WakeOnFailure::Nobody;
        for route in routes {
            let Some(at) = route.servers.iter().position(|at| *at == server) else {
                continue;
            };
            let last = at + 1 == route.servers.len();
            wake_on_failure = wake_on_failure.max(match (last, route.reachability_only) {
                (false, true) => WakeOnFailure::Everybody,
                (true, _) | (false, false) => WakeOnFailure::Lacking,
            });
        }
        wake_on_failure
    }
}
