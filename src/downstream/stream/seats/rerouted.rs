// SPDX-License-Identifier: Apache-2.0
//! What a session does when the configuration has changed its servers.
//!
//! Owns which of its seats it keeps. A server that is gone, or is not the first any more, is left as one that has failed (G-21): the
//! session reads it until another one can serve it, and then its client is sent what differs.

use std::sync::Arc;

use super::bindings::Bindings;
use super::{Binding, Places, Seats};
use crate::cache::{NoPlace, Route, Scopes, Seat, View};
use crate::protocol::{Fallback, Server};
use crate::xds::{Cut, Owners, TypeUrl, Want};

impl Seats {
    /// Takes up the present routes. Returns whether anything is read for another owner than before.
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
        let mut parted = false;
        for binding in self.bindings.iter_mut() {
            parted |= binding.reroute(&places, server);
        }
        for want in server.wants_moved(before.owners(), routes.owners()) {
            parted |= part(&mut self.bindings, &places, before.owners(), &want);
        }
        let known = |binding: &Binding| routes.has(binding.owner.as_deref());
        self.bindings.retain(known);
        if parted {
            self.listen_again();
        }
        parted
    }
}

impl Binding {
    /// Takes up the present servers of the owner. Returns whether more is read than before at the server that is read.
    fn reroute(&mut self, places: &Places<'_>, server: &Server) -> bool {
        let owner = self.owner.as_deref();
        let Some(route) = places.routes.route(owner, places.node) else {
            return false;
        };
        let left = usize::from(self.fallback.is_leaving());
        let same = self.servers.get(left..) == Some(&route.servers)
            && self.fallback.reachability_only() == route.reachability_only
            && self.seats.iter().skip(left).all(|seat| places.fits(seat, owner));
        if same || self.seats.is_empty() {
            return false;
        }
        let seat = self.seats.swap_remove(self.fallback.bound());
        let unread = self.unread.take();
        *self = Self::reading(seat, places, self.owner.take(), route, self.fallback.patience());
        if self.fallback.is_leaving() {
            self.unread = unread;
            return false;
        }
        if unread.is_some() {
            // It is not left after all.
            let mut wants = server.wants(self.owner.as_deref(), places.routes.owners());
            complain(wants.try_for_each(|want| self.want(&want)));
        }
        unread.is_some()
    }

    /// Begins a subscription that was read from this view. A server that the session leaves is asked for nothing that it was not
    /// asked for.
    fn take_over(&mut self, want: &Want, view: &Arc<View>) -> Result<(), NoPlace> {
        let left = usize::from(self.fallback.is_leaving());
        let asked = self.seats.iter().enumerate();
        let mut asked = asked.filter(|(at, own)| *at >= left || Arc::ptr_eq(own.view(), view));
        asked.try_for_each(|(_, own)| own.want(want))?;
        let left = self.seats.iter().take(left);
        if left.map(Seat::view).any(|own| !Arc::ptr_eq(own, view)) {
            self.leave_unread(&want.type_url);
        }
        Ok(())
    }

    /// Returns what the session reads.
    pub(super) fn cut(&self) -> Arc<Cut> {
        let cut = self.seat().map(|seat| seat.view().cut());
        let unread = self.unread.iter().flat_map(|unread| &**unread);
        unread.fold(cut.unwrap_or_default(), |cut, type_url| Arc::new(cut.without(type_url)))
    }

    /// Whether nothing of the type is read at the server that the session leaves.
    pub(super) fn is_unread(&self, type_url: &TypeUrl) -> bool {
        self.unread.as_ref().is_some_and(|unread| unread.contains(type_url))
    }

    fn leave_unread(&mut self, type_url: &TypeUrl) {
        if !self.is_unread(type_url) {
            self.unread.get_or_insert_default().push(type_url.clone());
        }
    }

    /// Creates the binding of a session that reads the view of this seat, whether that is one of the route or not.
    fn reading(
        seat: Seat,
        places: &Places<'_>,
        owner: Option<Arc<str>>,
        route: &Route,
        patience: std::time::Duration,
    ) -> Self {
        let here = seat.view().server();
        seat.watch(false);
        let stays = route.servers.first() == Some(&here) && places.fits(&seat, owner.as_deref());
        let servers: Arc<[usize]> = match stays {
            true => route.servers.clone(),
            false => std::iter::once(here).chain(route.servers.iter().copied()).collect(),
        };
        let fallback = Fallback::new(servers.len(), route.reachability_only, patience);
        Self {
            owner,
            servers,
            fallback: if stays { fallback } else { fallback.leave_first() },
            seats: vec![seat],
            unread: None,
        }
    }

    /// Gives up the server that the session had to leave, once it reads another one.
    pub(super) fn drop_left(&mut self) {
        if !self.fallback.is_leaving() || self.fallback.bound() == 0 {
            return;
        }
        self.seats.remove(0);
        self.unread = None;
        self.servers = self.servers.iter().skip(1).copied().collect();
        self.fallback.drop_first();
    }
}

/// Moves a subscription to the owner that it has now. If the session has used nothing of that owner, its new binding reads the same
/// view as before at first. Otherwise the client keeps what it was sent until the owner's server has answered. Returns whether
/// there was anything to move.
fn part(bindings: &mut Bindings, places: &Places<'_>, before: &Owners, want: &Want) -> bool {
    let owner_of = |owners: &Owners| owners.of(&want.type_url, want.target.name()).map(Arc::<str>::from);
    let (old, new) = (owner_of(before), owner_of(places.routes.owners()));
    let seat = bindings.of(old.as_deref()).and_then(Binding::seat);
    let Some(view) = seat.map(|seat| seat.view().clone()) else {
        return false;
    };
    let begun = match bindings.of_mut(new.as_deref()) {
        Some(binding) => binding.take_over(want, &view),
        None => {
            let from = bindings.of(old.as_deref());
            let seat = from.and_then(|from| {
                Some((
                    from.seat()?.beside(new.clone(), places.node.marks.as_ref()),
                    from.fallback.patience(),
                ))
            });
            let route = places.routes.route(new.as_deref(), places.node);
            let (Some((seat, patience)), Some(route)) = (seat, route) else {
                return false;
            };
            // The view is asked for it already, so there is room.
            let begun = seat.want(want).map_err(NoPlace::from);
            bindings.add(Binding::reading(seat, places, new, route, patience));
            begun
        }
    };
    complain(begun);
    let over = Want {
        wanted: false,
        ..want.clone()
    };
    let ended = bindings.of(old.as_deref()).map(|from| from.want(&over));
    debug_assert!(ended.is_none_or(|ended| ended.is_ok()), "an end needs no room");
    true
}

fn complain(begun: Result<(), NoPlace>) {
    if let Err(error) = begun {
        tracing::warn!(%error, "a session cannot ask the server that the configuration names now");
    }
}

impl Places<'_> {
    /// Whether the seat is at a view of the class for which the names of an owner are read.
    fn fits(&self, seat: &Seat, owner: Option<&str>) -> bool {
        let shared = self.routes.is_shared(owner);
        *seat.view().class() == self.node.class_of(shared)
    }
}
