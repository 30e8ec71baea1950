//! What a session does when the configuration has changed its servers.
//!
//! Owns which of its seats it keeps. A server that is gone, or is not the first any more, is left as one that has failed (G-21): the
//! session reads it until another one can serve it, and then its client is sent what differs.

use std::sync::Arc;

use super::{Binding, Places, Seats};
use crate::cache::{Route, Scopes, Seat};
use crate::protocol::{Fallback, Server};
use crate::xds::Want;

impl Seats {
    /// Takes up the present routes. Returns whether names are read for another authority than before.
    pub(super) fn reroute(&mut self, scopes: &Scopes, server: &Server) -> bool {
        let routes = scopes.routes();
        let before = std::mem::replace(&mut self.routes, routes.clone());
        let claims = self.claims();
        let places = Places {
            scopes,
            routes: &routes,
            node: &self.node,
            claims: &claims,
        };
        self.bindings.iter_mut().for_each(|binding| binding.reroute(&places));
        let mut parted = false;
        for (authority, route) in routes.added(&before) {
            let binding = self.bindings.plain.part(&places, authority, route, server);
            if let Some(binding) = binding {
                parted = true;
                self.bindings.add(binding);
            }
        }
        if parted {
            self.listen_again();
        }
        parted
    }
}

impl Binding {
    /// Takes up the present servers of the authority.
    fn reroute(&mut self, places: &Places<'_>) {
        let authority = self.authority.as_deref();
        let Some(route) = places.routes.route(authority) else {
            return;
        };
        let left = usize::from(self.fallback.is_leaving());
        let same = self.servers.get(left..) == Some(&route.servers)
            && self.fallback.reachability_only() == route.reachability_only
            && self.seats.iter().skip(left).all(|seat| places.fits(seat, authority));
        if same || self.seats.is_empty() {
            return;
        }
        let seat = self.seats.swap_remove(self.fallback.bound());
        *self = Self::reading(seat, places, self.authority.take(), route, self.fallback.patience());
    }

    /// Creates the binding of a session that reads the view of this seat, whether that is one of the route or not.
    fn reading(
        seat: Seat,
        places: &Places<'_>,
        authority: Option<Arc<str>>,
        route: &Route,
        patience: std::time::Duration,
    ) -> Self {
        let here = seat.view().server();
        seat.watch(false);
        let stays = route.servers.first() == Some(&here) && places.fits(&seat, authority.as_deref());
        let servers: Arc<[usize]> = match stays {
            true => route.servers.clone(),
            false => std::iter::once(here).chain(route.servers.iter().copied()).collect(),
        };
        let fallback = Fallback::new(servers.len(), route.reachability_only, patience);
        Self {
            authority,
            servers,
            fallback: if stays { fallback } else { fallback.leave_first() },
            seats: vec![seat],
        }
    }

    /// Takes the names of an authority that has servers of its own now out of this binding. Returns their binding, which reads
    /// the same view at first; none if the session wants none of them.
    fn part(&self, places: &Places<'_>, authority: &Arc<str>, route: &Route, server: &Server) -> Option<Self> {
        let wants: Vec<Want> = server.wants(Some(authority), places.routes.served()).collect();
        let seat = self.seat().filter(|_| !wants.is_empty())?.beside(authority.clone());
        for mut want in wants {
            // The view is asked for all of it already, so there is room.
            let begun = seat.want(&want);
            debug_assert!(begun.is_ok(), "the view has room for what it has");
            want.wanted = false;
            let ended = self.want(&want);
            debug_assert!(ended.is_ok(), "an end needs no room");
        }
        let patience = self.fallback.patience();
        Some(Self::reading(seat, places, Some(authority.clone()), route, patience))
    }

    /// Gives up the server that the session had to leave, once it reads another one.
    pub(super) fn drop_left(&mut self) {
        if !self.fallback.is_leaving() || self.fallback.bound() == 0 {
            return;
        }
        self.seats.remove(0);
        self.servers = self.servers.iter().skip(1).copied().collect();
        self.fallback.drop_first();
    }
}

impl Places<'_> {
    /// Whether the seat is at a view of the class for which an authority is read.
    fn fits(&self, seat: &Seat, authority: Option<&str>) -> bool {
        let shared = self.routes.is_shared(authority);
        *seat.view().class() == Scopes::class(self.node, shared)
    }
}
