//! Which servers are asked for the names of each owner: an authority, a source, or none.
//!
//! Owns the order of servers, by number. Does not know what a server is.

use std::collections::BTreeMap;
use std::sync::Arc;

use xds::Owners;

/// The list of servers for names without an owner, and one for each authority (F-11) and source (F-18).
#[derive(Clone, Debug, Default)]
pub struct Routes {
    top: Route,
    owned: BTreeMap<Arc<str>, Route>,
    owners: Owners,
    /// The number of changes of the configuration before these.
    generation: u64,
}

/// The servers of one owner, by priority (G-01).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Their numbers; equal servers of several lists have one number (F-12).
    pub servers: Arc<[usize]>,
    /// Whether a failure is enough to leave a server (G-04).
    pub reachability_only: bool,
    /// Whether all classes of clients share what is read there (F-13, F-20).
    pub shared: bool,
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
            shared: false,
        }
    }
}

impl Routes {
    /// Creates routes from these lists: of the top, and of authorities.
    #[must_use]
    pub fn new(top: Route, authorities: BTreeMap<Arc<str>, Route>) -> Self {
        let owners = authorities.keys().cloned().collect();
        Self::of(top, authorities, owners)
    }

    /// Does the same for these owners, which have these lists.
    #[must_use]
    pub const fn of(top: Route, owned: BTreeMap<Arc<str>, Route>, owners: Owners) -> Self {
        Self {
            top,
            owned,
            owners,
            generation: 0,
        }
    }

    /// Returns these routes as those that follow `before`.
    pub(super) const fn after(mut self, before: &Self) -> Self {
        self.generation = before.generation + 1;
        self
    }

    /// The number of changes of the configuration before these routes.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether all classes of clients share what an owner has.
    #[must_use]
    pub fn is_shared(&self, owner: Option<&str>) -> bool {
        self.route(owner).is_some_and(|route| route.shared)
    }

    /// Returns the servers of an owner, or those of names without one.
    #[must_use]
    pub fn route(&self, owner: Option<&str>) -> Option<&Route> {
        match owner {
            None => Some(&self.top),
            Some(owner) => self.owned.get(owner),
        }
    }

    /// Who is asked for what.
    #[must_use]
    pub const fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns which sessions at the views of a server must be woken when that server fails.
    pub(super) fn wake_on_failure(&self, server: usize) -> WakeOnFailure {
        let routes = std::iter::once(&self.top).chain(self.owned.values());
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
