// SPDX-License-Identifier: Apache-2.0
//! What the clients of one view read of other servers.
//!
//! Owns which views these are: those that the same clients read at the servers of other owners of names. Does not know what is done with
//! them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::routes::Routes;
use super::scopes::Scopes;
use super::view::View;
use xds::{Name, Neighbour, OtherViews, TypeUrl};

/// Returns what the clients of a view read of other servers; `None`: nothing. If the view is `watching`, its writer is woken when
/// that changes.
#[must_use]
pub fn other_views(scopes: &Arc<Scopes>, view: &Arc<View>, watching: bool) -> Option<OtherViews> {
    let standpoint = Surroundings {
        scopes: scopes.clone(),
        routes: scopes.routes(),
        view: view.clone(),
        found: Mutex::default(),
    };
    if standpoint.routes.is_plain() {
        return None;
    }
    if watching {
        standpoint.watch();
    }
    let (owners, here) = (standpoint.routes.owners().clone(), standpoint.here());
    let standpoint = Arc::new(standpoint);
    let reader = standpoint.clone();
    let find = move |from: Option<&str>, of: Option<&str>| reader.find(from, of);
    let wants = move |type_url: &TypeUrl, name: &Name| {
        let read = standpoint.read(standpoint.routes.owners().of(type_url, Some(name)));
        let wanting = read.iter().filter(|view| view.demand().wants(type_url, name));
        wanting.map(|view| standpoint.number(view)).collect()
    };
    Some(OtherViews::new(owners, here, find, wants))
}

/// A view among all others, for one turn of its writer.
struct Surroundings {
    scopes: Arc<Scopes>,
    routes: Arc<Routes>,
    view: Arc<View>,
    /// What was found before, by both owners.
    found: Mutex<Vec<(Owner, Owner, Vec<Neighbour>)>>,
}

type Owner = Option<Arc<str>>;

impl Surroundings {
    /// The writer is woken when something changes in a view that its clients read or may come to read, and when there is another one.
    fn watch(&self) {
        self.scopes.note_onlooker(&self.view);
        self.view.neighbours().note_onlooker(&self.view);
        for other in self.routes.all_owners().flat_map(|owner| self.open(owner)) {
            other.neighbours().note_onlooker(&self.view);
        }
    }

    /// Returns the owners whose names clients may read from this view.
    fn here(&self) -> Vec<Owner> {
        let (class, server) = (self.view.class(), self.view.server());
        let is_shared = *class == class.shared();
        let all = self.routes.all_owners();
        let here = all.filter(|owner| self.routes.reads(*owner, class, server));
        let here = here.filter(|owner| is_shared || !self.routes.is_shared(*owner));
        here.map(|owner| owner.map(Arc::from)).collect()
    }

    /// Some clients read from this view what `from` has. Returns the views from which they read what `of` has.
    fn find(&self, from: Option<&str>, of: Option<&str>) -> Vec<Neighbour> {
        let mut known = self.found.lock();
        let mut same = known
            .iter()
            .filter(|(a, b, _)| a.as_deref() == from && b.as_deref() == of);
        if let Some((_, _, found)) = same.next() {
            return found.clone();
        }
        let neighbour = |view: &Arc<View>| Neighbour {
            view: self.number(view),
            cut: view.cut(),
        };
        let found: Vec<_> = self.read_by(from, of).iter().map(neighbour).collect();
        known.push((from.map(Arc::from), of.map(Arc::from), found.clone()));
        found
    }

    fn read_by(&self, from: Option<&str>, of: Option<&str>) -> Vec<Arc<View>> {
        if from == of {
            return vec![self.view.clone()];
        }
        let all = self.read(of);
        // If one of the two is read from a single view, nothing tells some of its clients from the others.
        if all.len() < 2 || self.read(from).len() < 2 {
            return all;
        }
        let connections = self.view.demand().connections_of(from);
        let joint = all.iter().filter(|view| view.demand().is_read_on(of, &connections));
        let joint: Vec<_> = joint.cloned().collect();
        // A client can read each on a connection of its own.
        if joint.is_empty() { all } else { joint }
    }

    /// Returns the views from which clients read what an owner has, by priority; if nobody reads any, this one, or else the first that is
    /// there.
    fn read(&self, owner: Option<&str>) -> Vec<Arc<View>> {
        let mut open = self.open(owner);
        let is_read: Vec<bool> = open.iter().map(|view| view.demand().is_read_for(owner)).collect();
        if is_read.contains(&true) {
            let mut is_read = is_read.into_iter();
            open.retain(|_| is_read.next() == Some(true));
            return open;
        }
        let own = open.iter().position(|view| Arc::ptr_eq(view, &self.view));
        open.into_iter().skip(own.unwrap_or(0)).take(1).collect()
    }

    fn number(&self, view: &Arc<View>) -> Option<usize> {
        (!Arc::ptr_eq(view, &self.view)).then(|| Arc::as_ptr(view).addr())
    }

    /// Returns the views at the servers of an owner, by priority. A view that all classes share has the clients of all of them.
    fn open(&self, owner: Option<&str>) -> Vec<Arc<View>> {
        let shared = self.view.class().shared();
        let of = |class| {
            let servers = self.routes.all_servers(owner, class);
            servers.filter_map(|server| self.scopes.find(class, server)).collect()
        };
        match (self.routes.is_shared(owner), self.is_shared(&shared)) {
            (true, _) => of(&shared),
            (false, false) => of(self.view.class()),
            (false, true) => {
                let mut all = self.scopes.all();
                all.retain(|view| self.routes.reads(owner, view.class(), view.server()));
                all
            }
        }
    }

    /// Whether this view has the clients of all classes.
    fn is_shared(&self, shared: &classes::Class) -> bool {
        let mut owners = self.routes.all_owners().filter(|owner| self.routes.is_shared(*owner));
        self.view.class() == shared && owners.any(|owner| self.routes.reads(owner, shared, self.view.server()))
    }
}
