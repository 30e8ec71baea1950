//! Removals wait for the routes that the client's listeners name, and for the clusters and endpoints that it asks for then (D-03).
//!
//! A client that is sent a listener with another route asks for that route afterwards, and until it has it, it sends traffic by the
//! old one. Owns what a removal waits for, and since when. Does not know what is removed.

use std::time::Instant;

use super::Server;
use crate::server::session::Subscription;
use xds::{Answers, Kind, Name, Sight};

/// A route that a listener names, and that the client does not have yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Missing {
    /// The client has not asked for it yet. Some take routes from elsewhere, and never do.
    Named,
    /// It last asked for routes then.
    Asked(Instant),
}

impl Server {
    /// Returns a route that the client is about to take: one of its listeners names it, and it was sent listeners, or has asked for
    /// routes, not too long ago.
    pub(super) fn missing_route(&self, sight: &Sight, now: Instant) -> Option<Missing> {
        let counts = |since: &Instant| now < *since + self.bound();
        let sent = self.types.iter().filter_map(Subscription::named_at).max()?;
        let routes = || self.types.iter().filter(|one| one.type_url().kind() == Kind::Rds);
        let asked = routes().map(Subscription::asked_at);
        // Nearly always nothing was sent for a long time, and no listener is looked at.
        asked.chain([sent]).find(counts)?;
        let missing = |name: &Name| {
            let asked = routes().filter(|one| one.asks_for(name)).map(Subscription::asked_at);
            let missing = match asked.max() {
                Some(asked) => counts(&asked).then_some(Missing::Asked(asked)),
                None => counts(&sent).then_some(Missing::Named),
            };
            missing.filter(|_| !routes().any(|one| one.has_route(name, sight)))
        };
        let mut naming = self.types.iter().filter(|one| one.named_at().is_some());
        naming.find_map(|one| one.find_route(sight, &missing))
    }

    /// Returns when the client last asked for clusters or endpoints, if that is not too long ago and some are unknown: until
    /// they come a gRPC client, which asks for a cluster when it has the route, sends traffic by the clusters that it has.
    pub(super) fn missing_target(&self, sight: &Sight, now: Instant) -> Option<Instant> {
        let targets = self.types.iter().filter(|one| one.type_url().kind().gates());
        let asking = targets.filter(|one| now < one.asked_at() + self.bound());
        let missing = asking.filter(|one| one.missing_of(sight, |_, name| name.is_some()).is_some());
        missing.map(Subscription::asked_at).max()
    }

    /// Whether the client asks for each cluster by its name: it takes one step after another, from listeners to endpoints.
    pub(super) fn by_steps(&self) -> bool {
        let kind = |one: &Subscription| one.type_url().kind();
        let by_name = |one: &Subscription| kind(one) == Kind::Cds && one.asks_by_name();
        self.types.iter().any(by_name) && self.types.iter().any(|one| kind(one).gated())
    }

    /// Returns until when such a client may be about to ask for what its last answer leads to, or to use what it now has. Envoy
    /// answers requests by a listener that it has replaced until all of its threads have the new one.
    pub(super) fn pause(&self, now: Instant) -> Option<Instant> {
        if !self.by_steps() {
            // Nearly always no removal waits.
            let until = self.removals.paused(self.settings.timers.removal_quiet, now)?;
            let sent = self.types.iter().filter_map(Subscription::named_at).max()?;
            return (now < until && now < sent + self.bound()).then_some(until);
        }
        let kind = |one: &Subscription| one.type_url().kind();
        let orders = self.types.iter().filter(|one| kind(one).gated() || kind(one).gates());
        let steps = orders.map(|one| one.directed_at().max(Some(one.asked_at())));
        let quiet = self.settings.timers.removal_quiet;
        let last = steps.max().flatten()?;
        let until = self.removals.paused(quiet, now).max(Some(last + quiet))?;
        (now < until).then_some(until)
    }

    /// Whether a type may remove something together with its additions, and at once: the client has all that is known of other types.
    pub(super) fn frees(&mut self, at: usize, sight: &Sight, answers: &impl Answers, now: Instant) -> bool {
        let mut others = self.types.iter_mut().enumerate().filter(|(other, _)| *other != at);
        if !others.all(|(_, other)| other.survey(sight, answers).has_all()) {
            return false;
        }
        // Nearly always nothing keeps a removal back, and whether there is one is not looked for.
        let Some(one) = self.types.get(at) else {
            return false;
        };
        let ripe = self.removals.is_ripe(self.bound(), now);
        let steps = one.type_url().kind().gates() && self.pause(now).is_some();
        let open = !ripe && !steps && self.missing_route(sight, now).is_none();
        open || !one.loses(sight, answers)
    }
}
