//! Routes of one control plane that lead to clusters whose endpoints come from another one: no client is sent there before they are
//! there (D-12).

use std::time::Duration;

use super::{CDS, EDS, LDS, RDS, Server, Watcher, cluster, endpoints, guarded, holds, metric, one, put_path, route};
use crate::stage::{Relay, eventually};

/// A control plane with a route to `a` and a cluster `b` beside it; one that has endpoints of `a` only; and a client that has all of it.
async fn start(name: &str, unready: &str) -> (Server, Server, Relay, Watcher) {
    let (main, aside) = (Server::start().await, Server::start().await);
    put_path(&main, &["a"]);
    main.put(CDS, "b", cluster("b"));
    aside.put(EDS, "a", endpoints("a", 1));
    let more = format!("sources: [{{types: [eds], xds_servers: [{}]}}]\n", one(&aside));
    let text = guarded(&one(&main), &format!("{{unready: {unready}}}"), &more);
    let relay = Relay::telling(&format!("crossings-{name}"), &text);
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &["a", "b"])];
    let watcher = Watcher::start(relay.address, &wants).await;
    watcher.has(CDS, "a b").await;
    watcher.has(RDS, "r").await;
    watcher.has(EDS, "a").await;
    (main, aside, relay, watcher)
}

/// The route waits, `holds` says for what, and it is served at once when the endpoints are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_waits_for_endpoints() {
    let (main, aside, relay, watcher) = start("waits", "60s").await;
    main.put(RDS, "r", route("r", &["b"]));
    eventually("a change that waits", || {
        holds(&relay)
            .iter()
            .any(|hold| hold["reason"] == "unready")
            .then_some(())
    })
    .await;
    assert_eq!(watcher.sent("r"), 1);
    let (code, text) = relay.command(&["holds"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("r, which waits for eds b"), "{text}");
    aside.put(EDS, "b", endpoints("b", 1));
    eventually("the new route", || (watcher.sent("r") == 2).then_some(())).await;
    assert!(watcher.sent("b") >= 1, "the route came before the endpoints");
    eventually("the end of the hold", || holds(&relay).is_empty().then_some(())).await;
    let ended = "distributary_held_removals_ended_total{reason=\"unready\",by=\"free\"}";
    assert_eq!(metric(&relay, ended), 1);
}

/// The other control plane is away: the route waits for longer than for one that does not have the endpoints, and a person lets it go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_control_plane_is_away() {
    let (main, mut aside, relay, watcher) = start("away", "60s").await;
    aside.stop().await;
    main.put(RDS, "r", route("r", &["b"]));
    eventually("a change that waits for who is away", || {
        let (_, text) = relay.command(&["holds"]);
        text.contains("which waits for eds b, whose server is away")
            .then_some(())
    })
    .await;
    for _ in 0..50 {
        assert_eq!(watcher.sent("r"), 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (code, text) = relay.command(&["holds", "release", "rds/r", "--reason", "a test"]);
    assert_eq!(code, Some(0), "{text}");
    eventually("the new route", || (watcher.sent("r") == 2).then_some(())).await;
}

/// The other control plane does not have them: the route waits for the order gate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_that_never_come() {
    let (main, _aside, relay, watcher) = start("never", "60s").await;
    main.put(RDS, "r", route("r", &["b"]));
    eventually("the new route", || (watcher.sent("r") == 2).then_some(())).await;
    let ended = "distributary_held_removals_ended_total{reason=\"unready\",by=\"clock\"}";
    assert_eq!(metric(&relay, ended), 1);
}
