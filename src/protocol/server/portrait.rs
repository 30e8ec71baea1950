//! What a stream looks like to an operator who asks.
//!
//! Owns where each resource stands at the client. Changes nothing, and keeps nothing while nobody asks.

use std::sync::Arc;
use std::time::Instant;

use super::stream::Server;
use super::subscription::Subscription;
use xds::{Held, Known, Name, Objection, Reason, Resource, Sight, Standing, Status, TypeSight, TypeUrl};

/// One type of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Portrait<'a> {
    subscription: &'a Subscription,
    slot: TypeSight<'a>,
}

/// One resource of a type, at the client.
#[derive(Clone, Debug)]
pub struct Stand<'a> {
    /// The name by which the client asked for it, or its own if the wildcard covers it.
    pub name: &'a Name,
    /// What the server says now, if it has content.
    pub resource: Option<&'a Arc<Resource>>,
    /// Where it stands.
    pub standing: Standing,
    /// Why the client has rejected it.
    pub objection: Option<&'a Objection>,
}

impl Server {
    /// Returns each type as an operator sees it.
    pub fn portraits<'a>(&'a self, sight: &'a Sight) -> impl Iterator<Item = Portrait<'a>> {
        self.types.iter().map(|subscription| Portrait {
            subscription,
            slot: subscription.type_sight(sight),
        })
    }
}

impl<'a> Portrait<'a> {
    /// The type.
    #[must_use]
    pub const fn type_url(self) -> &'a TypeUrl {
        &self.subscription.type_url
    }

    /// The status of the type as a whole.
    #[must_use]
    pub fn status(self) -> Status {
        self.subscription.status()
    }

    /// Whether the client asks for everything.
    #[must_use]
    pub const fn wildcard(self) -> bool {
        self.subscription.wildcard
    }

    /// Returns how many names the client asks for.
    #[must_use]
    pub fn names(self) -> usize {
        self.subscription.asked_names().count()
    }

    /// Returns when the last response was sent.
    #[must_use]
    pub const fn sent(self) -> Option<Instant> {
        self.subscription.flights.sent()
    }

    /// Returns since when the client owes an answer to a response.
    #[must_use]
    pub fn unanswered_since(self) -> Option<Instant> {
        self.subscription.flights.iter().map(|flight| flight.sent).min()
    }

    /// Returns since when the client may wait for something that it has asked for and nobody has answered.
    #[must_use]
    pub fn waiting_since(self) -> Option<Instant> {
        let Self { subscription, slot } = self;
        let waits = !subscription.owed.is_empty() || subscription.wildcard && !slot.is_complete();
        waits.then(|| subscription.asked.since())
    }

    /// Returns why the client rejects what it has rejected and not accepted since.
    pub fn objections(self) -> impl Iterator<Item = &'a Arc<Objection>> {
        let cold = &self.subscription.cold;
        cold.objection().into_iter().chain(cold.refusals().objections())
    }

    /// Returns each resource that the client asks for, by name and by the wildcard.
    pub fn stands(self) -> impl Iterator<Item = Stand<'a>> {
        let Self { subscription, slot } = self;
        let named = subscription.names.iter().map(move |(name, entry)| {
            let known = slot.known(name);
            subscription.stand_at(name, &entry.held(), known)
        });
        let state = slot.wildcard().filter(|_| subscription.wildcard);
        let covered = state.into_iter().flat_map(|state| state.resources());
        let covered = covered.filter(|resource| !subscription.names.contains(resource.name()));
        let covered = covered.map(|resource| {
            let held = subscription.covered.held(resource.name());
            subscription.stand_of(resource.name(), resource, &held)
        });
        named.chain(covered)
    }

    /// Returns the resource of this name, if the client asks for it.
    #[must_use]
    pub fn stand(self, name: &'a Name) -> Option<Stand<'a>> {
        let Self { subscription, slot } = self;
        if let Some(entry) = subscription.names.get(name) {
            return Some(subscription.stand_at(name, &entry.held(), slot.known(name)));
        }
        let state = slot.wildcard().filter(|_| subscription.wildcard)?;
        let held = subscription.covered.held(name);
        let known = state.known(name);
        (known.is_some() || held.perhaps()).then(|| subscription.stand_at(name, &held, known))
    }

    /// Returns each resource whose current content the client has rejected.
    pub fn rejections(self) -> impl Iterator<Item = Stand<'a>> {
        let cold = &self.subscription.cold;
        let whole = cold.objection().map(|_| self.stands());
        let single = cold.refusals().names().filter_map(move |name| self.stand(name));
        let all = whole.into_iter().flatten().chain(single);
        all.filter(|stand| stand.standing == Standing::Rejected)
    }

    /// Whether everything is known that the client asks for by its wildcard, and every response is answered.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        (!self.subscription.wildcard || self.slot.is_complete()) && self.subscription.flights.is_empty()
    }
}

impl Subscription {
    fn stand_at<'a>(&'a self, name: &'a Name, held: &Held, known: Option<&'a Known>) -> Stand<'a> {
        let standing = match known {
            Some(Known::Present(resource)) => return self.stand_of(name, resource, held),
            None => Standing::Unknown,
            Some(Known::Absent(Reason::TimedOut)) => Standing::TimedOut,
            Some(Known::Absent(_)) if held.perhaps() => Standing::Leaving,
            Some(Known::Absent(_)) => Standing::Missing,
        };
        Stand {
            name,
            resource: None,
            standing,
            objection: None,
        }
    }

    fn stand_of<'a>(&'a self, name: &'a Name, resource: &'a Arc<Resource>, held: &Held) -> Stand<'a> {
        let version = resource.version();
        // A full state is accepted or rejected as a whole.
        let refused = self.cold.refusals().objection(resource.name(), Some(version));
        let objection = self.cold.objection().or(refused).map(|objection| &**objection);
        let standing = if objection.is_some() {
            Standing::Rejected
        } else if !held.is(version) && held.perhaps() {
            Standing::Outdated
        } else if !held.is(version) {
            Standing::NotSent
        } else if self.flights.brings_news(resource) {
            Standing::Sent
        } else {
            Standing::Accepted
        };
        Stand {
            name,
            resource: Some(resource),
            standing,
            objection,
        }
    }
}
