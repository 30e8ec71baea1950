// SPDX-License-Identifier: Apache-2.0
//! Orders of people: they act on what they name, say what they did, and end with what they were given for.

use super::{
    LDS, RDS, Server, Watcher, held, holding, metric, nothing_held, of, order, put_listeners, put_path, relay, route,
};
use crate::stage::{CDS, EDS, Relay, eventually};

/// Ten clusters on the path of a route that leads to the last one only.
async fn path(name: &str, hold: &str) -> (Server, Relay, Watcher) {
    let server = Server::start().await;
    let all: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    put_path(&server, &all);
    server.put(RDS, "r", route("r", &["c9", "c8"]));
    let relay = relay(name, &server, hold, "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"])]).await;
    watcher.has(CDS, &all.join(" ")).await;
    watcher.has(RDS, "r").await;
    (server, relay, watcher)
}

/// The id of a hold.
fn id(relay: &Relay, word: &str, reason: &str) -> String {
    of(relay, word, reason)[0]["id"].as_str().unwrap().to_owned()
}

/// A release of what is referenced lets nothing go that a judgement names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_reaches_what_it_names() {
    let (server, relay, watcher) = path("reach", "60s").await;
    server.remove(CDS, "c9");
    holding(&relay, "cds", "referenced", "c9").await;
    server.forget(CDS, &["c0", "c1", "c2", "c3"]);
    holding(&relay, "cds", "mass", "c0 c1 c2 c3").await;
    let (code, out) = order(&relay, &["holds", "release", &id(&relay, "cds", "referenced")]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7 c8").await;
    watcher.loses_only("c9").await;
    assert_eq!(held(&relay, "cds", "mass"), "c0 c1 c2 c3");
}

/// A release is for what was lost then. It is counted as the person's, and the next restart that forgets all is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_ends_with_what_it_was_for() {
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let whole = server.content();
    let relay = relay("outlives", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1"]);
    holding(&relay, "lds", "mass", "l1").await;
    let (code, out) = order(&relay, &["holds", "release", &id(&relay, "lds", "mass")]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(LDS, "l2 l3").await;
    let by = |by: &str| {
        metric(
            &relay,
            &format!("distributary_held_removals_ended_total{{reason=\"mass\",by=\"{by}\"}}"),
        )
    };
    eventually("a count", || (by("person") == 1).then_some(())).await;
    assert_eq!(by("additions"), 0);
    // The server is whole again, and then forgets all.
    server.restart(|content| *content = whole.clone());
    watcher.has(LDS, "l1 l2 l3").await;
    server.restart(|content| content.clear());
    holding(&relay, "lds", "mass", "l1 l2 l3").await;
    watcher.loses_only("l1").await;
}

/// What a person extends is held at least until then, whatever the ground: nothing refers to it any more, and it stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_that_is_extended() {
    let (server, relay, watcher) = path("extended", "60s").await;
    server.remove(CDS, "c9");
    holding(&relay, "cds", "referenced", "c9").await;
    let (code, out) = order(&relay, &["holds", "extend", "cds/c9", "--for", "1h"]);
    assert!(
        code == Some(0) && out.starts_with("1 held removal is held at least until "),
        "{out}"
    );
    server.put(RDS, "r", route("r", &["c8"]));
    eventually("the route", || (watcher.sent("r") == 2).then_some(())).await;
    watcher.loses_only("").await;
    let (code, out) = order(&relay, &["holds", "release", "cds/c9"]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7 c8").await;
    nothing_held(&relay).await;
}

/// A second that a person adds to a minute that is left is no longer time, and is not called so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_is_none() {
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let relay = relay("none", &server, "60s", "");
    let watcher = Watcher::start(relay.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1"]);
    holding(&relay, "lds", "mass", "l1").await;
    let until = || of(&relay, "lds", "mass")[0]["until"].as_str().unwrap().to_owned();
    let mut told = Vec::new();
    // The end is by the relay's own time: a busy machine moves it on the wall clock now and then.
    let kept = (0..10).any(|_| {
        let before = until();
        let (_, out) = order(&relay, &["holds", "extend", "lds/l1", "--for", "1s"]);
        let time = before.split('T').nth(1).unwrap().trim_end_matches('Z');
        let kept = out.contains(&format!("until {time}: ")) && until() == before;
        told.push(format!("{before}: {out}"));
        kept
    });
    assert!(kept, "{told:?}");
    let before = until();
    // Somebody extends it and lets it go again.
    let (code, _) = order(&relay, &["holds", "extend", "lds/l1", "--for", "1h"]);
    assert_eq!(code, Some(0));
    eventually("a later end", || (until() > before).then_some(())).await;
    let (code, _) = order(&relay, &["holds", "release", "lds/l1"]);
    assert_eq!(code, Some(0));
    watcher.has(LDS, "l2 l3").await;
}

/// A listener is released whose clusters a judgement names: they stay, and nobody says that they go with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_a_judgement_of_its_own_stays() {
    let (server, relay, watcher) = path("own", "60s").await;
    server.restart(|content| {
        content.retain(|kind, _| kind == EDS);
    });
    holding(&relay, "lds", "mass", "l").await;
    holding(&relay, "cds", "mass", "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9").await;
    let (code, out) = order(&relay, &["holds", "release", "lds/l"]);
    assert_eq!(code, Some(0), "{out}");
    watcher.has(LDS, "").await;
    watcher.loses_only("l").await;
    assert_eq!(out, "1 held removal is passed on: 1 lds of judgement 1\n");
    let (code, out) = relay.command(&["holds"]);
    assert!(code == Some(1) && out.contains("cds"), "{out}");
}
