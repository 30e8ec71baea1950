// SPDX-License-Identifier: Apache-2.0
//! Two servers: what is served last counts, whoever said it.

use super::{LDS, Server, Watcher, configuration, held, listener, one, put_listeners};
use crate::stage::{EDS, Relay, eventually};

/// The first server fails, the clients are served by the second one, and its owner removes `l1` there. The first one returns without
/// `l1`: what is gone does not come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_does_not_come_back() {
    let relay = |name: &str, servers: &str| Relay::telling(name, &configuration(servers, "60s", ""));
    tokio::join!(
        gone_for_good("sotw", |servers| relay("amnesia-back-sotw", servers)),
        gone_for_good("delta", |servers| relay("amnesia-back-delta", servers)),
    );
}

/// In SotW, a full state says at once what it lacks. In delta, the first server lists what it has, and is done once it is quiet.
pub(super) async fn gone_for_good(transport: &str, relay: impl FnOnce(&str) -> Relay) {
    let mut first = Server::start().await;
    let second = Server::start().await;
    for server in [&first, &second] {
        put_listeners(server, 1..=4);
    }
    let first_entry = format!("{{server_uri: '{}', transport: {transport}}}", first.address);
    let relay = relay(&format!("{first_entry}, {}", one(&second)));
    first.mute(EDS);
    // Of `unknown` the first server says nothing, so the client has a reason to leave it.
    let moving = Watcher::start(relay.address, &[(EDS, &["unknown"]), (LDS, &["*"])]).await;
    moving.has(LDS, "l1 l2 l3 l4").await;
    first.stop().await;
    second.put(LDS, "second", listener("second", "r", 9999));
    moving.has(LDS, "l1 l2 l3 l4 second").await;
    second.remove(LDS, "l1");
    moving.has(LDS, "l2 l3 l4 second").await;
    first.edit(|content| {
        let of_kind = content.get_mut(LDS).unwrap();
        of_kind.remove("l1");
        of_kind.insert("first".to_owned(), listener("first", "r", 9998));
    });
    first.return_().await;
    eventually("the first server again", || (moving.sent("first") > 0).then_some(())).await;
    moving.has(LDS, "first l2 l3 l4").await;
    assert_eq!(
        moving.sent("l1"),
        1,
        "it came back over {transport}; lost: {}",
        moving.lost()
    );
    assert_eq!(held(&relay, "lds", "mass"), "");
}
