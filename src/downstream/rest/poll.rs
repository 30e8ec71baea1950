//! One poll: what a client has, what it wants, and the wait for something else.
//!
//! Owns that nothing is said out of ignorance, and that a poll is answered before its client gives up. Interest, limits and
//! the choice of the server are those of a stream: a poll is a stream of one request.

use std::future::poll_fn;
use std::task;
use std::time::{Duration, Instant};

use super::refusal::Refusal;
use super::reply::Found;
use crate::downstream::{Place, Shared, clock};
use crate::proto::envoy::service::discovery::v3::DiscoveryRequest;
use crate::protocol::{Opening, Server};
use crate::shutdown::Drain;
use crate::wire::Rope;
use crate::xds::{Dialect, Name, Sight, TypeUrl};

/// One poll that waits.
pub(super) struct Poll<'a> {
    shared: &'a Shared,
    server: Server,
    place: Place,
    type_url: TypeUrl,
    /// What the client has.
    version: String,
    /// What it wants; none: all that there is.
    names: Vec<Name>,
}

/// What a poll comes to.
pub(super) enum Polled {
    News(Rope),
    /// The client has it already.
    Nothing,
}

impl<'a> Poll<'a> {
    /// Begins to want what was asked for.
    pub(super) fn new(
        shared: &'a Shared,
        type_url: TypeUrl,
        mut asked: DiscoveryRequest,
        now: Instant,
    ) -> Result<Self, Refusal> {
        let settings = &shared.settings.protocol;
        // H-05: nothing is known of the client but what stands here. H-01: the path says the type.
        let version = std::mem::take(&mut asked.version_info);
        asked.response_nonce = String::new();
        asked.error_detail = None;
        asked.type_url = type_url.url().to_owned();
        // H-06: no names are all names.
        if asked.resource_names.is_empty() {
            asked.resource_names.push(Name::WILDCARD.to_owned());
        }
        let all = asked.resource_names.iter().any(|name| name == Name::WILDCARD);
        let names = asked.resource_names.iter().filter(|name| *name != Name::WILDCARD);
        let names: Vec<Name> = names.map(|name| Name::read(name, &type_url)).collect();
        let opening = Opening {
            dialect: Dialect::Sotw,
            service: Some(type_url.clone()),
            nonce_prefix: 0,
        };
        let mut server = Server::new(settings.clone(), opening);
        let refused = |end: crate::protocol::End| {
            if let Some(limit) = end.limit {
                shared.metrics.refused(limit);
            }
            Refusal::of(end)
        };
        server.handle_sotw(&asked, &*shared.library, now).map_err(refused)?;
        let full = |full: crate::cache::Full| {
            shared.metrics.refused(full.limit);
            Refusal::unavailable(full.to_string())
        };
        let node = server.node().cloned().unwrap_or_default();
        let mut place = Place::enter(&shared.scopes, &node, settings.timers.unanswered).map_err(full)?;
        while let Some(want) = server.poll_want() {
            place.want(&shared.scopes, &want).map_err(full)?;
        }
        Ok(Self {
            shared,
            server,
            place,
            type_url,
            version,
            names: if all { Vec::new() } else { names },
        })
    }

    /// Waits for something that the client does not have.
    pub(super) async fn wait(mut self, hold: Duration, mut drain: Drain) -> Result<Polled, Refusal> {
        let over = tokio::time::sleep(hold);
        tokio::pin!(over);
        let draining = drain.draining();
        tokio::pin!(draining);
        loop {
            let sight = self.place.sight(&self.shared.scopes);
            if let Some(rope) = self.news(&sight, false)? {
                return Ok(Polled::News(rope));
            }
            self.place.looked(|_| true);
            drop(sight);
            tokio::select! {
                dismissed = self.changed() => if dismissed {
                    return Err(Refusal::unavailable("the relay holds back too much for clients that do not read"));
                },
                () = &mut over => return self.last(),
                _ = &mut draining => return self.last(),
            }
        }
    }

    /// The time is over.
    fn last(&self) -> Result<Polled, Refusal> {
        let sight = self.place.sight(&self.shared.scopes);
        if let Some(rope) = self.news(&sight, true)? {
            return Ok(Polled::News(rope));
        }
        if self.found(&sight).is_settled() {
            return Ok(Polled::Nothing);
        }
        self.shared.metrics.unanswered.inc();
        Err(Refusal::unavailable(format!(
            "no upstream has answered for {} yet; what this client has stays good",
            self.type_url
        )))
    }

    /// What is different from what the client has. What is not known yet is waited for, and at the end left out where a client
    /// does not take that for a removal (B-16).
    fn news(&self, sight: &Sight, last: bool) -> Result<Option<Rope>, Refusal> {
        let found = self.found(sight);
        let partial = last && !self.type_url.traits().full_state && !found.is_empty();
        if !(found.is_settled() || partial) || found.version().to_string() == self.version {
            return Ok(None);
        }
        found
            .reply(&self.type_url, self.shared)
            .map(Some)
            .map_err(Refusal::internal)
    }

    fn found<'b>(&'b self, sight: &'b Sight) -> Found<'b> {
        Found::of(sight.glimpse(&self.type_url), &self.names)
    }

    /// Waits until something else may be there. Whether the poll must end because of it.
    async fn changed(&mut self) -> bool {
        loop {
            let settles = self.place.poll_timeout();
            let timer = async {
                match settles {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let rung = poll_fn(|cx| {
                let rung = self.place.poll_bells(cx);
                let moved = self.place.settle(&self.shared.scopes, &self.server, clock::now());
                if rung.dirty.is_empty() && !rung.dismissed && !moved {
                    return task::Poll::Pending;
                }
                task::Poll::Ready(rung.dismissed)
            });
            tokio::select! {
                dismissed = rung => return dismissed,
                () = timer => {}
            }
        }
    }
}
