// SPDX-License-Identifier: Apache-2.0
//! Clients that stop reading while far more changes than the relay may keep for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use distributary::downstream::Used;
use distributary::xds::{Dialect, Name, Resource, TypeUrl, Update};
use tonic::Code;

use crate::support::client::Client;
use crate::support::messages::{Got, Subscriber};
use crate::support::{CDS, Relay, now, resource, says, until, windows};

const NAMES: usize = 200;
const BODY: usize = 10_000;
const ROUNDS: usize = 20;
/// What laggards may hold back.
const BUDGET: usize = 1 << 20;

/// What a client holds: name -> content, without the padding.
type Held = BTreeMap<String, String>;

struct Reader {
    subscriber: Subscriber,
    held: Held,
}

impl Reader {
    /// Subscribes to everything, with a flow-control window that a fraction of one answer fills.
    async fn new(relay: &Relay, dialect: Dialect) -> Self {
        let (client, _) = Client::with(&relay.address, &windows(64 << 10, 64 << 10)).await;
        let mut subscriber = client.subscriber(dialect, CDS).await;
        subscriber.subscribe(&["*"]);
        let mut laggard = Self {
            subscriber,
            held: Held::new(),
        };
        while laggard.held.len() < NAMES {
            laggard.read().await;
        }
        laggard
    }

    async fn read(&mut self) -> Got {
        let got = self.subscriber.take().await;
        if self.subscriber.dialect == Dialect::Sotw {
            self.held.clear();
        }
        for body in &got.bodies {
            let (name, content) = body.split_once('|').expect("a body of ours");
            let (content, _) = content.split_once('x').unwrap_or((content, ""));
            self.held.insert(name.to_owned(), content.to_owned());
        }
        for name in &got.removed {
            assert!(self.held.remove(name).is_some(), "{name} was not held");
        }
        got
    }
}

/// Publishes the content of `round`; names below `from` stay as they are.
fn publish(relay: &Relay, from: usize, round: usize, body: usize) -> Vec<Weak<Resource>> {
    let type_url = TypeUrl::new(CDS);
    let content = |n: usize| format!("n{n}|{round}{}", "x".repeat(body));
    let all: Vec<Arc<Resource>> = (from..NAMES)
        .map(|n| resource(&type_url, &format!("n{n}"), content(n).as_bytes()))
        .collect();
    let weak = all.iter().map(Arc::downgrade).collect();
    let updates = all.into_iter().map(|resource| Update::Put(resource, None));
    relay.publish(&type_url, updates.collect());
    weak
}

/// K-21: over `pinned_bytes_per_view` the stream of a client that does not read ends with the reason, and nothing is kept for it; without
/// that limit, the same while memory is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn laggards_are_ended() {
    laggards(BUDGET, 97, BODY).await;
    laggards(0, 98, 12 * BODY).await;
}

async fn laggards(pinned_bytes_per_view: usize, used: usize, held: usize) {
    let relay = Relay::with(|plan| {
        plan.pinned_bytes_per_view = pinned_bytes_per_view;
        plan.library = 1 << 20;
    });
    let still = 50;
    publish(&relay, 0, 0, BODY);
    let mut laggards = Vec::new();
    for dialect in [Dialect::Delta, Dialect::Sotw, Dialect::Delta] {
        laggards.push(Reader::new(&relay, dialect).await);
    }
    // They also make sure that no session uses the answers of the first rounds again.
    let mut quick = [
        Reader::new(&relay, Dialect::Delta).await,
        Reader::new(&relay, Dialect::Sotw).await,
    ];
    // The response with the first round is on its way to the laggards when they stop.
    let mut first = Vec::new();
    for round in 1..=ROUNDS {
        let published = publish(&relay, still, round, if round == 1 { held } else { BODY });
        if round == 1 {
            first = published;
        }
        for quick in &mut quick {
            while quick.held.get("n199") != Some(&round.to_string()) {
                quick.read().await;
            }
        }
        relay.shared.act(Used { used, max: 100 });
        relay.shared.scopes.sweep(now());
        relay.shared.library.purge();
    }
    // The content at which the laggards stopped is freed, though they have not read a byte.
    let alive = || first.iter().filter(|resource| resource.strong_count() > 0).count();
    let kept = || format!("{} of what was on its way to them are kept", alive());
    until(|| alive() == 0, kept).await;
    for mut laggard in laggards {
        let ended = loop {
            match laggard.subscriber.next().await {
                Ok(_) => {}
                Err(ended) => break ended,
            }
        };
        ended.assert(Code::Unavailable, false);
        says(&ended, Code::Unavailable, "the client is too slow");
    }
    let gone = Update::Forget(Name::from("n100"));
    relay.publish(&TypeUrl::new(CDS), vec![gone]);
    for mut quick in quick {
        while quick.held.contains_key("n100") {
            quick.read().await;
        }
        assert!(quick.held.len() == NAMES - 1 && quick.subscriber.call.is_silent().await);
    }
    relay.settles_at(0).await;
}
