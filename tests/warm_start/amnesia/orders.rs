// SPDX-License-Identifier: Apache-2.0
//! Orders of people: they act on what they name, and what goes all the same is told.

use super::{LDS, RDS, Server, Watcher, held, holding, of, order, put_listeners, put_path, relay, route};
use crate::stage::{CDS, until};

/// A release of what is referenced, by the id of its hold, lets nothing go that a judgement names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_reaches_what_it_names() {
    let server = Server::start().await;
    let all: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    put_path(&server, &all);
    server.put(RDS, "r", route("r", &["c9", "c8"]));
    let relay = relay("reach", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"])]).await;
    watcher.has(CDS, &all.join(" ")).await;
    watcher.has(RDS, "r").await;
    server.remove(CDS, "c9");
    holding(&relay, "cds", "referenced", "c9").await;
    server.forget(CDS, &["c0", "c1", "c2", "c3"]);
    holding(&relay, "cds", "mass", "c0 c1 c2 c3").await;
    let id = of(&relay, "cds", "referenced")[0]["id"].as_str().unwrap().to_owned();
    let (code, out) = order(&relay, &["holds", "release", &id]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7 c8").await;
    watcher.loses_only("c9").await;
    assert_eq!(held(&relay, "cds", "mass"), "c0 c1 c2 c3");
}

/// Two listeners are forgotten, a person extends one of them: the other is lost by the clock, and that is a line and a count.
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
    let by_clock = "distributary_held_removals_ended_total{reason=\"mass\",by=\"clock\"} ";
    until("a count", || relay.number(by_clock) == 1.0).await;
    let line = relay.line("by=clock");
    assert!(line.contains("level=warn") && line.contains("one=l2"), "{line}");
}
