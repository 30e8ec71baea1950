//! What the clients of one view read of other servers.
//!
//! Owns which views these are: those that the same clients read at the servers of other owners of names. Does not know what is done with
//! them.

use std::sync::Arc;

use super::routes::Routes;
use super::scopes::Scopes;
use super::view::View;
use xds::{Beside, Name, Neighbour, TypeUrl};

/// Returns what the clients of a view read of other servers; `None`: nothing. If the view is `watching`, its writer is woken when
/// that changes.
#[must_use]
pub fn beside(scopes: &Arc<Scopes>, view: &Arc<View>, watching: bool) -> Option<Beside> {
    let standpoint = Standpoint {
        scopes: scopes.clone(),
        routes: scopes.routes(),
        view: view.clone(),
    };
    if standpoint.routes.is_plain() {
        return None;
    }
    if watching {
        standpoint.watch();
    }
    let owners = standpoint.routes.owners().clone();
    let standpoint = Arc::new(standpoint);
    let reader = standpoint.clone();
    let find = move |owner: Option<&str>| {
        let read = reader.read(owner)?.into_iter();
        Some(read.map(|view| neighbour(&view)).collect())
    };
    let wants = move |type_url: &TypeUrl, name: &Name| {
        let owner = standpoint.routes.owners().of(type_url, Some(name));
        match standpoint.read(owner) {
            None => standpoint.view.demand().wants(type_url, name),
            Some(others) => others.iter().any(|view| view.demand().wants(type_url, name)),
        }
    };
    Some(Beside::new(owners, find, wants))
}

fn neighbour(view: &Arc<View>) -> Neighbour {
    Neighbour {
        view: Arc::as_ptr(view).addr(),
        cut: view.cut(),
    }
}

/// A view among all others.
struct Standpoint {
    scopes: Arc<Scopes>,
    routes: Arc<Routes>,
    view: Arc<View>,
}

impl Standpoint {
    /// The writer is woken when something changes in a view that its clients read or may come to read, and when there is another one.
    fn watch(&self) {
        self.scopes.note_onlooker(&self.view);
        let others = self.routes.all_owners().flat_map(|owner| self.open(owner));
        for other in others.filter(|other| !Arc::ptr_eq(other, &self.view)) {
            other.neighbours().note_onlooker(&self.view);
        }
    }

    /// Returns the views from which the clients of this one read what an owner has; if nobody reads any, the first that is there. `None`:
    /// they read this view, and others of the list only stand by.
    fn read(&self, owner: Option<&str>) -> Option<Vec<Arc<View>>> {
        let open = self.open(owner);
        let others = open.iter().filter(|other| !Arc::ptr_eq(other, &self.view));
        let read: Vec<_> = others
            .filter(|other| other.demand().is_read_for(owner))
            .cloned()
            .collect();
        let own = self.routes.reads(owner, self.view.class(), self.view.server());
        if own && (read.is_empty() || self.view.demand().is_read_for(owner)) {
            return None;
        }
        match read.is_empty() {
            true => Some(open.into_iter().take(1).collect()),
            false => Some(read),
        }
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
