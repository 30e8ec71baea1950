// SPDX-License-Identifier: Apache-2.0
//! Many clients on several threads, slow and fast, while everything changes: each one that stays ends with the latest content.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use distributary::xds::Dialect;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::time::{sleep, timeout};

use crate::support::client::Client;
use crate::support::{EDS, PATIENCE, Relay, spawn};

const NAMES: usize = 40;
const CONNECTIONS: u64 = 24;
const STREAMS: u64 = 3;
const ROUNDS: u32 = 300;
const FINAL: u32 = u32::MAX;

fn name(n: usize) -> String {
    format!("n{n}")
}

/// A body of some size that contains its name and version.
fn put(relay: &Relay, n: usize, version: u32, random: &mut StdRng) {
    let padding = "x".repeat(random.random_range(0..60_000));
    relay.put(EDS, &[&name(n)], &format!("{}|{version}|{padding}", name(n)));
}

/// What a client holds: the version of each name.
#[derive(Default)]
struct Held(BTreeMap<String, u32>);

impl Held {
    fn take(&mut self, body: &str, wanted: &[String]) {
        let parts: Vec<&str> = body.splitn(3, '|').collect();
        let (name, version) = (parts[0].to_owned(), parts[1].parse().unwrap());
        assert!(wanted.contains(&name), "{name} was not asked for");
        let before = self.0.insert(name, version);
        assert!(
            before.is_none_or(|before| before <= version),
            "{before:?} was newer than {version}"
        );
    }

    fn is_final(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|name| self.0.get(name) == Some(&FINAL))
    }
}

/// Runs one stream until it holds the final version of all that it wants, or until it leaves early.
async fn follow(client: Client, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let dialect = [Dialect::Sotw, Dialect::Delta][(seed % 2) as usize];
    let mut subscriber = client.subscriber(dialect, EDS).await;
    let all: Vec<String> = (0..NAMES).map(name).collect();
    let wanted: Vec<String> = all.sample(&mut random, 6).cloned().collect();
    let mut held = Held::default();
    for name in &wanted {
        subscriber.subscribe(&[name]);
    }
    let patience = if seed.is_multiple_of(5) {
        random.random_range(1..20)
    } else {
        usize::MAX
    };
    for _ in 0..patience {
        if held.is_final(&wanted) {
            return;
        }
        let got = subscriber
            .next()
            .await
            .unwrap_or_else(|ended| panic!("seed {seed}: {ended:?}"));
        for body in &got.bodies {
            held.take(body, &wanted);
        }
        if random.random_bool(0.2) {
            sleep(Duration::from_millis(random.random_range(0..30))).await;
        }
        subscriber.ack();
        if random.random_bool(0.1) {
            let again = wanted.choose(&mut random).unwrap().as_str();
            subscriber.unsubscribe(&[again]);
            held.0.remove(again);
            subscriber.subscribe(&[again]);
        }
    }
}

/// B-14, B-24, K-21; and no ring of the bell and no byte is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_stays_ends_with_the_latest() {
    let relay = Arc::new(Relay::start());
    let mut random = StdRng::seed_from_u64(1);
    for n in 0..NAMES {
        put(&relay, n, 0, &mut random);
    }
    let mut followers = Vec::new();
    for connection in 0..CONNECTIONS {
        let window = [64 << 10, 256 << 10, 4 << 20][random.random_range(0..3)];
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(2 * window);
        let (client, _) = Client::with(&relay.address, &builder).await;
        for stream in 0..STREAMS {
            followers.push(spawn(follow(client.clone(), connection * STREAMS + stream)));
        }
    }
    for version in 1..=ROUNDS {
        for _ in 0..random.random_range(1..4) {
            put(&relay, random.random_range(0..NAMES), version, &mut random);
        }
        sleep(Duration::from_micros(random.random_range(0..3000))).await;
    }
    for n in 0..NAMES {
        put(&relay, n, FINAL, &mut random);
    }
    for follower in followers {
        timeout(PATIENCE * 2, follower)
            .await
            .expect("a client lacks the final state")
            .unwrap();
    }
    relay.settles_at(0).await;
}
