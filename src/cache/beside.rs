//! What the clients of one view read of other servers.
//!
//! Owns which views these are: of the same class, at the servers of other owners of names. Does not know what is done with them.

use std::sync::Arc;

use super::routes::Routes;
use super::scopes::Scopes;
use super::view::View;
use xds::{Beside, Cut, Name, ServerState, TypeUrl};

/// Returns what the clients of a view read of other servers; `None`: nothing. If the view is `watching`, its writer is woken when
/// that changes.
#[must_use]
pub fn beside(scopes: &Arc<Scopes>, view: &Arc<View>, watching: bool) -> Option<Beside> {
    let routes = scopes.routes();
    if routes.is_plain() {
        return None;
    }
    if watching {
        for other in others(scopes, view, &routes) {
            other.note_onlooker(view);
        }
    }
    let (all, found, own) = (scopes.clone(), routes.clone(), view.clone());
    let find = move |type_url: &TypeUrl, name: &Name| {
        let other = other(&all, &own, &found, found.owners().of(type_url, Some(name)))?;
        // Nobody has asked there, so nothing says that the server is away.
        let unknown = || Arc::new(Cut::default().with_server_state(ServerState::Open));
        Some(other.map_or_else(unknown, |view| view.cut()))
    };
    let (scopes, own) = (scopes.clone(), view.clone());
    let wants = move |type_url: &TypeUrl, name: &Name| {
        let owner = routes.owners().of(type_url, Some(name));
        match other(&scopes, &own, &routes, owner) {
            None => own.wants(type_url, name),
            Some(other) => other.is_some_and(|view| view.wants(type_url, name)),
        }
    };
    Some(Beside::new(find, wants))
}

/// Returns the view from which the clients of a view read what this owner has, if there is one yet. `None`: that view itself.
fn other(scopes: &Scopes, view: &View, routes: &Routes, owner: Option<&str>) -> Option<Option<Arc<View>>> {
    let servers = routes.servers(owner, view.class());
    let shared = routes.is_shared(owner);
    if routes.reads(owner, view.class(), view.server()) {
        return None;
    }
    let class = if shared {
        view.class().shared()
    } else {
        view.class().clone()
    };
    let open: Vec<Arc<View>> = servers
        .iter()
        .filter_map(|server| scopes.find(&class, *server))
        .collect();
    let read = open.iter().find(|view| view.readers().0 > 0);
    Some(read.or(open.first()).cloned())
}

/// Returns the views from which the clients of a view read what other owners have.
fn others(scopes: &Scopes, view: &View, routes: &Routes) -> Vec<Arc<View>> {
    let owners = routes.all_owners();
    owners.filter_map(|owner| other(scopes, view, routes, owner)?).collect()
}
