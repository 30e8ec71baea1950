// SPDX-License-Identifier: Apache-2.0
//! Clients that come back without a type that they had.
//!
//! Owns what is remembered of clients, by the ids of their nodes, and how long. Knows nothing of their streams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::xds::TypeUrl;

/// The clients with aggregated streams, and those that had one a moment ago.
#[derive(Debug, Default)]
pub struct Returns(Mutex<KnownClients>);

#[derive(Debug, Default)]
struct KnownClients {
    /// By a hash of the id.
    clients: BTreeMap<u64, KnownClient>,
    /// The clients that had something, in the order in which they are forgotten or judged.
    due: BTreeSet<(Instant, u64)>,
}

#[derive(Debug, Default)]
struct KnownClient {
    /// Its open streams.
    streams: u32,
    /// Whether it had two streams at the same time. They may belong to two clients, so nothing is remembered of them.
    twins: bool,
    had: Option<Box<Had>>,
}

#[derive(Debug)]
struct Had {
    /// While the client is away: what it was subscribed to. After its return: what it has not asked for yet.
    types: Vec<TypeUrl>,
    due: Instant,
}

/// A stream of a client.
#[derive(Debug)]
pub(super) struct ClientVisit {
    returns: Arc<Returns>,
    client: u64,
}

/// How long a client that is away is remembered, and how long a client that has returned may take to ask for everything.
const MINUTE: Duration = Duration::from_secs(60);
/// How many clients are remembered for what they had.
const REMEMBERED_MAX: usize = 16_384;

impl Returns {
    /// A client begins an aggregated stream. Types of the two generations differ, so a client is another one in each.
    pub(super) fn enter(self: &Arc<Self>, id: &str, v2: bool, now: Instant) -> ClientVisit {
        let key = xxh3_64_with_seed(id.as_bytes(), u64::from(v2));
        let KnownClients { clients, due } = &mut *self.0.lock();
        let client = clients.entry(key).or_default();
        client.streams += 1;
        client.twins |= client.streams > 1;
        if let Some(mut had) = client.had.take() {
            due.remove(&(had.due, key));
            if !client.twins {
                had.due = now + MINUTE;
                due.insert((had.due, key));
                client.had = Some(had);
            }
        }
        ClientVisit {
            returns: self.clone(),
            client: key,
        }
    }

    /// Returns the types for which clients had not asked a minute after their return, once for each client. Forgets clients that
    /// have been away for a minute. To be called about once a second.
    pub fn sweep(&self, now: Instant) -> Vec<TypeUrl> {
        let KnownClients { clients, due } = &mut *self.0.lock();
        let mut missing = Vec::new();
        while let Some((at, key)) = due.first().copied().filter(|(at, _)| *at <= now) {
            due.remove(&(at, key));
            let Some(client) = clients.get_mut(&key) else { continue };
            let had = client.had.take();
            if client.streams == 0 {
                clients.remove(&key);
            } else {
                missing.extend(had.into_iter().flat_map(|had| had.types));
            }
        }
        missing
    }
}

impl ClientVisit {
    /// The client asks for a type for the first time on this stream.
    pub(super) fn ask(&self, type_url: &TypeUrl) {
        let KnownClients { clients, due } = &mut *self.returns.0.lock();
        let Some(client) = clients.get_mut(&self.client) else {
            return;
        };
        let Some(had) = &mut client.had else { return };
        had.types.retain(|had| had != type_url);
        if had.types.is_empty() {
            due.remove(&(had.due, self.client));
            client.had = None;
        }
    }

    /// The stream ends, on which the client was subscribed to these types. If it ends before its client was judged, the client is
    /// still expected to ask for what it had before.
    pub(super) fn leave<'a>(self, types: impl Iterator<Item = &'a TypeUrl>, now: Instant) {
        let KnownClients { clients, due } = &mut *self.returns.0.lock();
        let Some(client) = clients.get_mut(&self.client) else {
            return;
        };
        client.streams -= 1;
        if client.streams > 0 {
            return;
        }
        // Clients may invent types.
        let mut types: Vec<TypeUrl> = types.filter(|one| one.is_of_table()).cloned().collect();
        if let Some(had) = client.had.take() {
            due.remove(&(had.due, self.client));
            types.extend(had.types);
        }
        if client.twins || types.is_empty() || due.len() >= REMEMBERED_MAX {
            clients.remove(&self.client);
            return;
        }
        let had = Had {
            types,
            due: now + MINUTE,
        };
        due.insert((had.due, self.client));
        client.had = Some(Box::new(had));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        returns: Arc<Returns>,
        start: Instant,
    }

    impl World {
        fn new() -> Self {
            #[expect(clippy::disallowed_methods, reason = "any instant will do")]
            let start = Instant::now();
            Self {
                returns: Arc::default(),
                start,
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn enter(&self, id: &str, seconds: u64) -> ClientVisit {
            self.returns.enter(id, false, self.at(seconds))
        }

        fn leave(&self, visit: ClientVisit, types: &[&str], seconds: u64) {
            visit.leave(called(types).iter(), self.at(seconds));
        }

        fn sweep(&self, seconds: u64) -> Vec<TypeUrl> {
            self.returns.sweep(self.at(seconds))
        }

        /// How many clients it knows, and how many of them had something.
        fn sizes(&self) -> (usize, usize) {
            let known = self.returns.0.lock();
            (known.clients.len(), known.due.len())
        }
    }

    fn called(types: &[&str]) -> Vec<TypeUrl> {
        types.iter().map(|short| TypeUrl::called(short).unwrap()).collect()
    }

    #[test]
    fn what_is_missing_a_minute_after_the_return() {
        let world = World::new();
        world.leave(world.enter("a", 0), &["cds", "eds", "lds"], 10);
        world.leave(world.enter("b", 0), &["cds"], 10);
        let (a, b) = (world.enter("a", 69), world.enter("b", 69));
        called(&["cds", "lds"]).iter().for_each(|one| a.ask(one));
        called(&["cds", "eds"]).iter().for_each(|one| b.ask(one));
        assert_eq!(world.sweep(128), []);
        assert_eq!(world.sweep(129), called(&["eds"]));
        assert_eq!(world.sweep(1000), [], "counted once");
        world.leave(a, &["cds"], 1000);
        world.leave(b, &[], 1000);
        assert_eq!(world.sizes(), (1, 1));
        assert_eq!((world.sweep(1060), world.sizes()), (vec![], (0, 0)), "too long away");
    }

    /// A stream that ends early decides nothing.
    #[test]
    fn a_client_that_comes_and_goes() {
        let world = World::new();
        world.leave(world.enter("a", 0), &["cds", "eds"], 0);
        let early = world.enter("a", 30);
        called(&["lds"]).iter().for_each(|one| early.ask(one));
        world.leave(early, &["lds"], 31);
        let last = world.enter("a", 60);
        called(&["cds", "eds"]).iter().for_each(|one| last.ask(one));
        assert_eq!(world.sweep(120), called(&["lds"]));
    }

    /// Two streams with one id may be two clients: what one of them had says nothing of the other.
    #[test]
    fn clients_with_one_id() {
        let world = World::new();
        let (one, other) = (world.enter("a", 0), world.enter("a", 0));
        world.leave(one, &["cds"], 1);
        world.leave(other, &["lds"], 2);
        assert_eq!(world.sizes(), (0, 0));
        world.leave(world.enter("b", 0), &["cds"], 1);
        let (_one, _other) = (world.enter("b", 2), world.enter("b", 3));
        assert_eq!((world.sweep(1000), world.sizes()), (vec![], (1, 0)));
        // The two generations of types have nothing in common.
        world.leave(world.enter("c", 1000), &["cds"], 1001);
        let _v2 = world.returns.enter("c", true, world.at(1002));
        assert_eq!(world.sweep(2000), []);
    }

    #[test]
    fn few_are_remembered() {
        let world = World::new();
        for client in 0..REMEMBERED_MAX + 10 {
            world.leave(world.enter(&client.to_string(), 0), &["cds"], 1);
        }
        assert_eq!(world.sizes(), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert_eq!((world.sweep(61), world.sizes()), (vec![], (0, 0)));
    }
}
