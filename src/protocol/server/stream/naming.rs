// SPDX-License-Identifier: Apache-2.0
//! What holds a client's removals back, beside the bound: the routes that its listeners name, and the clusters and endpoints that it asks for
//! then (D-03).
//!
//! A client that is sent a listener with another route asks for that route afterwards, and until it has it, it sends traffic by the
//! old one. Owns what a removal waits for, and since when. Does not know what is removed.

use std::time::Instant;

use super::Server;
use crate::server::session::Subscription;
use crate::server::turn::StreamTurn;
use xds::{Answers, Kind, Name};

/// What a removal waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum RemovalWait {
    /// The client last asked for something then that it does not have yet.
    Asked(Instant),
    /// What could still need it is not sent or not settled; or a listener names a route that the client has not asked for yet. Some take
    /// routes from elsewhere, and never do.
    Unsettled,
    /// The next step of a client that takes one after another, until then.
    Pause(Instant),
}

impl Server {
    /// D-03: removals are sent only after the bound, or when everything that could still need the removed resources is sent and settled
    /// (accepted or rejected), and the client has the routes that its listeners name now, and what these lead to.
    pub(super) fn hold(&mut self, turn: &StreamTurn<'_, impl Answers>) -> Option<RemovalWait> {
        let calm = self.calm(turn);
        let route = self.missing_route(turn);
        if matches!(route, Some(RemovalWait::Asked(_))) {
            return route;
        }
        let target = self.missing_target(turn).map(RemovalWait::Asked);
        let unsettled = || route.or((!calm).then_some(RemovalWait::Unsettled));
        target
            .or_else(unsettled)
            .or_else(|| self.pause(turn.now).map(RemovalWait::Pause))
    }

    /// Whether everything that sends traffic to clusters is sent and settled, and what a client asks for step by step.
    fn calm(&mut self, turn: &StreamTurn<'_, impl Answers>) -> bool {
        let by_steps = self.by_steps();
        self.types.iter_mut().all(|one| match one.kind() {
            kind if kind.gated() => one.is_calm(turn),
            kind if kind.gates() => !by_steps || one.flights().is_empty(),
            _ => true,
        })
    }

    /// Returns when the client was last sent anything that names routes.
    fn named_at(&self) -> Option<Instant> {
        self.naming().filter_map(|one| one.flights().sent()).max()
    }

    fn naming(&self) -> impl Iterator<Item = &Subscription> {
        self.of_kind(Kind::names_routes)
            .filter(|one| one.flights().sent().is_some())
    }

    /// Looks for a route that the client is about to take: one of its listeners names it, and it was sent listeners, or has asked for
    /// routes, not too long ago.
    fn missing_route<A>(&self, turn: &StreamTurn<'_, A>) -> Option<RemovalWait> {
        let counts = |since: &Instant| turn.now < *since + self.bound();
        let sent = self.named_at()?;
        let routes = || self.types.iter().filter(|one| one.kind() == Kind::Rds);
        let asked = routes().map(|one| one.asked().last());
        // Nearly always nothing was sent for a long time, and no listener is looked at.
        asked.chain([sent]).find(counts)?;
        let missing = |name: &Name| {
            let asked = routes().filter(|one| one.asks_for(name)).map(|one| one.asked().last());
            let missing = match asked.max() {
                Some(asked) => counts(&asked).then_some(RemovalWait::Asked(asked)),
                None => counts(&sent).then_some(RemovalWait::Unsettled),
            };
            missing.filter(|_| !routes().any(|one| one.is_over(name, turn.sight)))
        };
        self.naming().find_map(|one| one.sees(turn.sight).find_route(missing))
    }

    /// Returns when the client last asked for clusters or endpoints, if that is not too long ago and some are unknown: until
    /// they come a gRPC client, which asks for a cluster when it has the route, sends traffic by the clusters that it has.
    fn missing_target<A>(&self, turn: &StreamTurn<'_, A>) -> Option<Instant> {
        let targets = self.of_kind(Kind::gates);
        let asking = targets.filter(|one| turn.now < one.asked().last() + self.bound());
        let missing = asking.filter(|one| one.missing_of(turn.sight, |_, name| name.is_some()).is_some());
        missing.map(|one| one.asked().last()).max()
    }

    /// Whether the client asks for each cluster by its name: it takes one step after another, from listeners to endpoints.
    fn by_steps(&self) -> bool {
        let by_name = |one: &Subscription| one.kind().names_endpoints() && one.asks_by_name();
        self.types.iter().any(by_name) && self.types.iter().any(|one| one.kind().gated())
    }

    /// Returns until when such a client may be about to ask for what its last answer leads to, or to use what it now has. Envoy
    /// answers requests by a listener that it has replaced until all of its threads have the new one.
    fn pause(&self, now: Instant) -> Option<Instant> {
        let quiet = self.settings.timers.removal_quiet;
        let paused = self.removals.paused(quiet, now);
        let until = if self.by_steps() {
            let sent = |one: &Subscription| one.flights().sent().filter(|_| one.kind().gated());
            let orders = self.of_kind(|kind| kind.gated() || kind.gates());
            let last = orders
                .map(|one| sent(one).max(Some(one.asked().last())))
                .max()
                .flatten()?;
            paused.max(Some(last + quiet))?
        } else {
            // Nearly always no removal waits.
            paused.filter(|_| self.named_at().is_some_and(|sent| now < sent + self.bound()))?
        };
        (now < until).then_some(until)
    }

    /// Whether a type may remove something together with its additions, and at once: the client has all that is known of other types.
    pub(super) fn frees(&mut self, at: usize, turn: &StreamTurn<'_, impl Answers>) -> bool {
        let mut others = self.types.iter_mut().enumerate().filter(|(other, _)| *other != at);
        if !others.all(|(_, other)| other.has_all(turn)) {
            return false;
        }
        let gates = self.types.get(at).is_some_and(|one| one.kind().gates());
        let steps = gates && self.pause(turn.now).is_some();
        !steps && !self.removals.is_ripe(self.bound(), turn.now) && self.missing_route(turn).is_none()
    }
}
