// SPDX-License-Identifier: Apache-2.0
//! What is lost in several messages is lost as one.

use super::{EDS, Server, Watcher, endpoints, held, holding, nothing_held, put_assignments, relay};
use crate::stage::Relay;

const NAMES: usize = 12;

/// A server that says so many assignments in one message, and a relay and a client that have all twelve.
async fn split(story: &str, split: usize) -> (Server, Relay, Watcher, Vec<String>) {
    let server = Server::start().await;
    let names = put_assignments(&server, 10..10 + NAMES);
    server.split(split);
    let relay = relay(&format!("{story}-{split}"), &server, "60s", "");
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let watcher = Watcher::start(relay.address, &[(EDS, &wanted)]).await;
    watcher.has(EDS, &names.join(" ")).await;
    (server, relay, watcher, names)
}

/// A server returns without any endpoint assignment, and says so in one message, in two, and name by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_a_loss_is_split() {
    for most in [NAMES, NAMES / 2, 1] {
        let (server, relay, watcher, names) = split("split", most).await;
        let whole = server.content();
        server.forget(EDS, &names.iter().map(String::as_str).collect::<Vec<_>>());
        holding(&relay, "eds", "mass", &names.join(" ")).await;
        watcher.loses_only("").await;
        server.restart(|content| *content = whole);
        nothing_held(&relay).await;
        watcher.loses_only("").await;
    }
}

/// The same where the assignments become empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_emptiness_is_split() {
    for most in [NAMES, NAMES / 2, 1] {
        let (server, relay, watcher, names) = split("empty", most).await;
        server.restart(|content| {
            let of_kind = content.get_mut(EDS).unwrap();
            of_kind.iter_mut().for_each(|(name, body)| *body = endpoints(name, 0));
        });
        holding(&relay, "eds", "mass", &names.join(" ")).await;
        watcher.loses_only("").await;
        names
            .iter()
            .for_each(|name| assert_eq!(watcher.sent(name), 1, "{name}"));
    }
}

/// Fewer than the threshold, one by one: they go, and do not wait for a judgement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_go() {
    let server = Server::start().await;
    let names = put_assignments(&server, 10..30);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    server.split(1);
    let relay = relay("few", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(EDS, &names)]).await;
    watcher.has(EDS, &names.join(" ")).await;
    server.forget(EDS, &names[..2]);
    watcher.has(EDS, &names[2..].join(" ")).await;
    assert_eq!(held(&relay, "eds", "mass"), "");
}
