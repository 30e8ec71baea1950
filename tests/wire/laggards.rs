//! Clients that stop reading while far more changes than the relay may keep for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use distributary::downstream::Used;
use distributary::xds::{Dialect, Name, Resource, TypeUrl, Update};

use crate::support::client::Client;
use crate::support::messages::{Got, Subscriber};
use crate::support::{ADS, CDS, Relay, now, resource, until};

const NAMES: usize = 200;
const BODY: usize = 10_000;
const ROUNDS: usize = 60;
/// Half of what the relay keeps for one client that does not read.
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
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(64 << 10)
            .initial_connection_window_size(64 << 10);
        let (client, _) = Client::with(&relay.address, &builder).await;
        let method = match dialect {
            Dialect::Sotw => "StreamAggregatedResources",
            Dialect::Delta => "DeltaAggregatedResources",
        };
        let call = client.call(&format!("/{ADS}/{method}")).await;
        let mut subscriber = Subscriber::new(call, dialect, CDS);
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
            let (name, content) = body.trim_end_matches('x').split_once('|').expect("a body of ours");
            self.held.insert(name.to_owned(), content.to_owned());
        }
        for name in &got.removed {
            assert!(self.held.remove(name).is_some(), "{name} was not held");
        }
        got
    }
}

/// Publishes the content of `round`; names below `from` stay as they are.
fn publish(relay: &Relay, from: usize, round: usize) -> Vec<Weak<Resource>> {
    let type_url = TypeUrl::new(CDS);
    let content = |n: usize| format!("n{n}|{round}{}", "x".repeat(BODY));
    let all: Vec<Arc<Resource>> = (from..NAMES)
        .map(|n| resource(&type_url, &format!("n{n}"), content(n).as_bytes()))
        .collect();
    let weak = all.iter().map(Arc::downgrade).collect();
    relay.publish(
        &type_url,
        all.into_iter().map(|resource| Update::Put(resource, None)).collect(),
    );
    weak
}

/// G-19, K-09: over `pinned_bytes_per_view` a client that does not read keeps its stream, and the relay keeps only hashes of what
/// the client holds. When it reads again it gets what differs and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn laggards_cost_no_bodies_and_miss_nothing() {
    cost_no_bodies_and_miss_nothing(BUDGET, 97).await;
}

/// The same without that limit, while memory is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn laggards_cost_no_bodies_while_memory_is_short() {
    cost_no_bodies_and_miss_nothing(0, 98).await;
}

async fn cost_no_bodies_and_miss_nothing(pinned_bytes_per_view: usize, used: usize) {
    let relay = Relay::with(|plan| {
        plan.pinned_bytes_per_view = pinned_bytes_per_view;
        plan.library = 1 << 20;
    });
    let still = 50;
    publish(&relay, 0, 0);
    let mut laggards = Vec::new();
    for dialect in [Dialect::Delta, Dialect::Sotw, Dialect::Delta] {
        laggards.push(Reader::new(&relay, dialect).await);
    }
    // They also make sure that no session uses the answers of the first rounds again.
    let mut quick = [
        Reader::new(&relay, Dialect::Delta).await,
        Reader::new(&relay, Dialect::Sotw).await,
    ];
    let mut pinned = 0;
    let mut first = Vec::new();
    for round in 1..=ROUNDS {
        let published = publish(&relay, still, round);
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
        pinned = pinned.max(relay.view().pinned());
    }
    // The content at which the laggards stopped is freed, though they have not read a byte.
    let alive = || first.iter().filter(|resource| resource.strong_count() > 0).count();
    until(|| alive() == 0, || format!("{} of the first round are kept", alive())).await;
    let churned = ROUNDS * NAMES * BODY;
    assert!(pinned < churned / 8, "{pinned} of {churned} bytes were held back");
    let hashes = relay.view().baselines().bytes();
    assert!((1..BUDGET / 2).contains(&hashes), "{hashes} bytes of hashes");
    let gone = Update::Forget(Name::from("n100"));
    relay.publish(&TypeUrl::new(CDS), vec![gone]);
    let mut truth: Held = (0..still).map(|n| (format!("n{n}"), "0".to_owned())).collect();
    truth.extend((still..NAMES).map(|n| (format!("n{n}"), ROUNDS.to_string())));
    truth.remove("n100");
    for mut laggard in laggards.into_iter().chain(quick) {
        let mut again = Vec::new();
        while laggard.held != truth {
            again.extend(laggard.read().await.bodies);
        }
        if laggard.subscriber.dialect == Dialect::Delta {
            let unchanged = again
                .iter()
                .filter(|body| body.split_once('|').is_some_and(|body| body.1.starts_with("0x")));
            assert_eq!(unchanged.count(), 0, "it held these");
            // The response that was in flight when it stopped, and then the difference.
            assert!(again.len() <= 2 * (NAMES - still), "{} bodies", again.len());
        }
        assert!(laggard.subscriber.call.is_silent().await);
    }
    // Only the steps to the present state are left. The library keeps them for half a minute, also while nobody is in the middle of them:
    // clients come one after the other, and each would have to be brought there in steps of its own.
    let left = || relay.view().baselines().bytes();
    until(|| left() < 10_000, || format!("{} bytes of hashes are kept", left())).await;
    relay.settles_at(0).await;
}
