// SPDX-License-Identifier: Apache-2.0
//! Which servers are asked for the names of each owner: an authority, a source, or none.
//!
//! Owns the order of servers, by number. Does not know what a server is.

use std::collections::BTreeMap;
use std::sync::Arc;

use classes::{Class, Node, Rule};
use xds::{Owners, bucket};

/// The lists of servers for names without an owner, and one for each authority (F-11) and source (F-18).
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// For classes without lists of their own.
    top: Lists,
    /// By the rule of the class: its own lists, if it has any (G-22).
    classes: BTreeMap<Arc<Rule>, Option<Lists>>,
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

/// The servers of the clients of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Of most of them, or all.
    pub usual: Route,
    /// Of some.
    pub canary: Option<Canary>,
}

/// G-23: the servers of a share of the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// How many of the [`xds::BUCKETS`] it has.
    pub share: u16,
    /// Its servers; those of all others are the last of them.
    pub route: Route,
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

impl Lists {
    /// Returns the servers of the client with this id.
    fn of(&self, id: &str) -> &Route {
        let mine = |canary: &&Canary| bucket(id).is_some_and(|bucket| bucket < canary.share);
        self.canary
            .as_ref()
            .filter(mine)
            .map_or(&self.usual, |canary| &canary.route)
    }

    fn routes(&self) -> impl Iterator<Item = &Route> {
        std::iter::once(&self.usual).chain(self.canary.as_ref().map(|canary| &canary.route))
    }
}

impl Routes {
    /// Creates routes from these lists: of the top, and of authorities.
    #[must_use]
    pub fn new(top: Route, authorities: BTreeMap<Arc<str>, Route>) -> Self {
        let owners = authorities.keys().cloned().collect();
        let top = Lists {
            usual: top,
            canary: None,
        };
        Self::of(top, BTreeMap::new(), authorities, owners)
    }

    /// Does the same for these owners, which have these lists, and for classes. Each rule that is in effect is in `classes`.
    #[must_use]
    pub const fn of(
        top: Lists,
        classes: BTreeMap<Arc<Rule>, Option<Lists>>,
        owned: BTreeMap<Arc<str>, Route>,
        owners: Owners,
    ) -> Self {
        Self {
            top,
            classes,
            owned,
            owners,
            generation: 0,
        }
    }

    /// Returns these routes as those that follow `before`. G-22: a rule that is not in effect any more keeps the lists that it had as long
    /// as it is in use, or its clients would be shown what is meant for others.
    pub(super) fn after(mut self, before: &Self, in_use: impl Fn(&Rule) -> bool) -> Self {
        for (rule, lists) in before.classes.iter().filter(|(_, lists)| lists.is_some()) {
            if !self.classes.contains_key(rule) && in_use(rule) {
                self.classes.insert(rule.clone(), lists.clone());
            }
        }
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
        let route = owner.and_then(|owner| self.owned.get(owner));
        route.is_some_and(|route| route.shared)
    }

    /// Returns the servers of an owner, or those of names without one, for this client.
    #[must_use]
    pub fn route(&self, owner: Option<&str>, node: &Node) -> Option<&Route> {
        match owner {
            None => Some(self.lists(node.class.rule.as_deref()).of(&node.id)),
            Some(owner) => self.owned.get(owner),
        }
    }

    /// Whether there is such an owner.
    #[must_use]
    pub fn has(&self, owner: Option<&str>) -> bool {
        owner.is_none_or(|owner| self.owned.contains_key(owner))
    }

    /// Returns the lists of a class.
    fn lists(&self, rule: Option<&Rule>) -> &Lists {
        let own = rule.and_then(|rule| self.classes.get(rule)?.as_ref());
        own.unwrap_or(&self.top)
    }

    /// Whether all names have the same owner.
    pub(super) fn is_plain(&self) -> bool {
        self.owned.is_empty()
    }

    /// Returns all owners.
    pub(super) fn all_owners(&self) -> impl Iterator<Item = Option<&str>> {
        std::iter::once(None).chain(self.owned.keys().map(|owner| Some(&**owner)))
    }

    /// Returns the servers of an owner for clients of this class, by priority: for most of them, and then for those of a canary.
    pub(super) fn all_servers(&self, owner: Option<&str>, class: &Class) -> impl Iterator<Item = usize> {
        let top = owner.is_none().then(|| self.lists(class.rule.as_deref()));
        let owned = owner.and_then(|owner| self.owned.get(owner));
        let usual = owned.or_else(|| top.map(|top| &top.usual));
        let canary = top.and_then(|top| top.canary.as_ref());
        let usual: &[usize] = usual.map_or(&[], |route| &route.servers);
        let canary: &[usize] = canary.map_or(&[], |canary| &canary.route.servers);
        let more = canary.iter().filter(|server| !usual.contains(server));
        usual.iter().chain(more).copied()
    }

    /// Whether any clients of this class have this server for an owner.
    pub(super) fn reads(&self, owner: Option<&str>, class: &Class, server: usize) -> bool {
        self.all_servers(owner, class).any(|at| at == server)
    }

    /// Who is asked for what.
    #[must_use]
    pub const fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns which sessions at the views of a server must be woken when that server fails.
    pub(super) fn wake_on_failure(&self, server: usize) -> WakeOnFailure {
        let lists = std::iter::once(&self.top).chain(self.classes.values().flatten());
        let routes = lists.flat_map(Lists::routes).chain(self.owned.values());
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
