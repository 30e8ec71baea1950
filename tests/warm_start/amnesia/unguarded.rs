// SPDX-License-Identifier: Apache-2.0
//! The same losses with `guard: off`: what is forgotten goes at once, so that what the other stories keep is at stake.

use super::failover::gone_for_good;
use super::{LDS, Server, Watcher, guarded, holds, metric, one, put_assignments, put_listeners};
use crate::stage::{EDS, Relay};

fn unguarded(name: &str, servers: &str) -> Relay {
    Relay::telling(&format!("unguarded-{name}"), &guarded(servers, "off", ""))
}

/// However the loss is split, all of it goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_in_several_messages() {
    const NAMES: usize = 12;
    for split in [NAMES, NAMES / 2, 1] {
        let server = Server::start().await;
        let names = put_assignments(&server, 10..10 + NAMES);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        server.split(split);
        let relay = unguarded(&format!("split-{split}"), &one(&server));
        let watcher = Watcher::start(relay.address, &[(EDS, &names)]).await;
        watcher.has(EDS, &names.join(" ")).await;
        server.forget(EDS, &names);
        watcher.has(EDS, "").await;
    }
}

/// Two listeners are forgotten: they go without a hold, and nothing is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_that_are_forgotten() {
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let relay = unguarded("forgotten", &one(&server));
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1", "l2"]);
    watcher.has(LDS, "l3").await;
    assert!(holds(&relay).is_empty());
    for by in ["clock", "person"] {
        let ended = format!("distributary_held_removals_ended_total{{reason=\"mass\",by=\"{by}\"}}");
        assert_eq!(metric(&relay, &ended), 0, "{by}");
    }
}

/// What the second server removes does not come back with the first one either: this needs no guard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_does_not_come_back() {
    gone_for_good("sotw", |servers| unguarded("back", servers)).await;
}
