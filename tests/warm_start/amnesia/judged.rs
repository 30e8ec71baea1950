// SPDX-License-Identifier: Apache-2.0
//! What a judgement names stays until the server says it again, its clock ends, a person lets it go, or an addition takes its place.

use super::{
    LDS, RDS, Server, Watcher, held, holding, holds, listener, metric, nothing_held, put_clusters, put_listeners,
    put_path, relay,
};
use crate::stage::{CDS, eventually};

/// The server forgets `l1`, and after a second restart `l1` and `l2`: both stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_loss_adds_to_the_first() {
    let server = Server::start().await;
    put_listeners(&server, 1..=5);
    let relay = relay("second", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3 l4 l5").await;
    server.forget(LDS, &["l1"]);
    holding(&relay, "lds", "mass", "l1").await;
    server.forget(LDS, &["l2"]);
    holding(&relay, "lds", "mass", "l1 l2").await;
    watcher.loses_only("").await;
    put_listeners(&server, 1..=5);
    nothing_held(&relay).await;
    watcher.loses_only("").await;
}

/// The server forgets half of its clusters, and later one more: the small loss, which is none, does not end the large one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_loss_ends_no_large_one() {
    let server = Server::start().await;
    put_clusters(&server, 0..10);
    let relay = relay("small", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(CDS, &["*"])]).await;
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9").await;
    server.forget(CDS, &["c5", "c6", "c7", "c8", "c9"]);
    holding(&relay, "cds", "mass", "c5 c6 c7 c8 c9").await;
    server.forget(CDS, &["c0"]);
    // It goes, or is held with the others: both are right.
    let decided = || watcher.lost().contains("c0") || held(&relay, "cds", "mass").contains("c0");
    eventually("a word on c0", || decided().then_some(())).await;
    watcher
        .keeps(&["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"])
        .await;
    assert!(held(&relay, "cds", "mass").ends_with("c5 c6 c7 c8 c9"));
}

/// The server forgets one listener after the other, each time in a life of its own, and once has them all for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_flaps() {
    let server = Server::start().await;
    put_listeners(&server, 1..=4);
    let whole = server.content();
    let relay = relay("flaps", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3 l4").await;
    server.forget(LDS, &["l1", "l2"]);
    holding(&relay, "lds", "mass", "l1 l2").await;
    // The other half.
    server.restart(|content| {
        *content = whole.clone();
        content.get_mut(LDS).unwrap().retain(|name, _| name < &"l3".to_owned());
    });
    holding(&relay, "lds", "mass", "l3 l4").await;
    server.restart(|content| *content = whole.clone());
    nothing_held(&relay).await;
    watcher.loses_only("").await;
}

/// A listener that somebody deploys while another one is held has nothing to do with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unrelated_addition() {
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let relay = relay("addition", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1"]);
    holding(&relay, "lds", "mass", "l1").await;
    put_listeners(&server, 9..=9);
    watcher.has(LDS, "l1 l2 l3 l9").await;
    watcher.loses_only("").await;
    assert_eq!(held(&relay, "lds", "mass"), "l1");
    assert_eq!(
        metric(
            &relay,
            "distributary_held_removals_ended_total{reason=\"mass\",by=\"additions\"}"
        ),
        0
    );
}

/// A gRPC client that asks for a name of its own, while the name of another one is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_client_asks() {
    let server = Server::start().await;
    put_listeners(&server, 1..=2);
    let relay = relay("asks", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["l1"])]).await;
    watcher.has(LDS, "l1").await;
    server.forget(LDS, &["l1"]);
    holding(&relay, "lds", "mass", "l1").await;
    let other = Watcher::start(relay.address, &[(LDS, &["l2"])]).await;
    other.has(LDS, "l2").await;
    watcher.loses_only("").await;
    assert_eq!(held(&relay, "lds", "mass"), "l1");
}

/// An addition that takes the address of a held listener ends its hold, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_taken() {
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let relay = relay("taken", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1", "l2"]);
    holding(&relay, "lds", "mass", "l1 l2").await;
    server.put(LDS, "new", listener("new", "r", 10_001));
    watcher.has(LDS, "l2 l3 new").await;
    watcher.loses_only("l1").await;
    assert_eq!(held(&relay, "lds", "mass"), "l2");
    assert_eq!(
        metric(
            &relay,
            "distributary_held_removals_ended_total{reason=\"mass\",by=\"replaced\"}"
        ),
        1
    );
}

/// The server says the half of what it had and dies: the clock stands, and nothing goes while nobody is there to say it again. When
/// it is back, still with the half, the clock goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_stands_while_the_server_is_dead() {
    let mut server = Server::start().await;
    put_path(&server, &["c0", "c1"]);
    put_listeners(&server, 1..=3);
    let relay = relay("dead", &server, "2s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"])]).await;
    watcher.has(LDS, "l l1 l2 l3").await;
    server.forget(LDS, &["l1", "l2"]);
    holding(&relay, "lds", "mass", "l1 l2").await;
    server.stop().await;
    // As long as the hold lasts, and more.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    watcher.loses_only("").await;
    assert_eq!(held(&relay, "lds", "mass"), "l1 l2");
    server.return_().await;
    watcher.has(LDS, "l l3").await;
    assert_eq!(
        metric(
            &relay,
            "distributary_held_removals_ended_total{reason=\"mass\",by=\"clock\"}"
        ),
        2
    );
    eventually("no hold", || holds(&relay).is_empty().then_some(())).await;
}
