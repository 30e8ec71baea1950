// SPDX-License-Identifier: Apache-2.0
//! What goes is told: each way in which removals of a judgement end is a line and a count.

use super::{LDS, Server, Watcher, held, holding, metric, order, put_listeners, relay};

/// Two listeners are forgotten, a person extends one of them: the other is lost by the clock, and that is seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_extended_and_one_is_lost() {
    let server = Server::start().await;
    put_listeners(&server, 1..=5);
    let relay = relay("counted", &server, "2s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3 l4 l5").await;
    server.forget(LDS, &["l1", "l2"]);
    holding(&relay, "lds", "mass", "l1 l2").await;
    let (code, out) = order(&relay, &["holds", "extend", "lds/l1", "--for", "1h"]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(LDS, "l1 l3 l4 l5").await;
    assert_eq!(held(&relay, "lds", "mass"), "l1");
    let by_clock = "distributary_held_removals_ended_total{reason=\"mass\",by=\"clock\"}";
    crate::stage::eventually("a count", || (metric(&relay, by_clock) == 1).then_some(())).await;
    let line = relay.line("by=clock");
    assert!(line.contains("level=warn") && line.contains("one=l2"), "{line}");
}
