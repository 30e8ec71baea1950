// SPDX-License-Identifier: Apache-2.0
//! Routes of one control plane that lead to clusters whose endpoints come from another one: no client is sent there before they are
//! there (D-12), and what they lead to stays as long as they do (D-11).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{
    CDS, EDS, LDS, RDS, Server, Watcher, cluster, endpoints, guarded, holding, holds, metric, nothing_held, one,
    put_path, route,
};
use crate::stage::{Relay, directory, eventually};

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
    assert!(
        text.contains("r: it leads to eds b, which the other source does not have yet"),
        "{text}"
    );
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
        text.contains("\n  r: it leads to eds b, whose source is away\n")
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

/// A client has new endpoints to ask for, so it turns to the next server of the source. That view is there only after the route has begun
/// to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_control_plane_of_the_source() {
    let (main, mut aside, next) = (Server::start().await, Server::start().await, Server::start().await);
    put_path(&main, &["a"]);
    main.put(CDS, "b", cluster("b"));
    aside.put(EDS, "a", endpoints("a", 1));
    for name in ["a", "b"] {
        next.put(EDS, name, endpoints(name, 1));
    }
    let more = format!(
        "sources: [{{types: [eds], xds_servers: [{}, {}]}}]\n",
        one(&aside),
        one(&next)
    );
    let text = guarded(&one(&main), "{unready: 120s}", &more);
    let relay = Relay::telling("crossings-next", &text);
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &["a"])];
    let watcher = Watcher::start(relay.address, &wants).await;
    watcher.has(CDS, "a b").await;
    watcher.has(RDS, "r").await;
    watcher.has(EDS, "a").await;
    aside.stop().await;
    eventually("a control plane that is away", || {
        let shown = relay.admin("/clusters");
        shown
            .contains(&format!("#eds::{}::state::unreachable", aside.address))
            .then_some(())
    })
    .await;
    main.put(RDS, "r", route("r", &["b"]));
    holding(&relay, "rds", "unready", "r").await;
    watcher.wants(EDS, "b").await;
    watcher.has(EDS, "a b").await;
    eventually("the new route", || (watcher.sent("r") == 2).then_some(())).await;
    nothing_held(&relay).await;
}

/// Clusters come from the source beside, and stay while the other control plane's route leads there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_a_route_elsewhere_names() {
    let (main, aside) = (Server::start().await, Server::start().await);
    put_path(&main, &["a"]);
    for name in ["a", "b"] {
        aside.put(CDS, name, cluster(name));
        aside.put(EDS, name, endpoints(name, 1));
    }
    let more = format!("sources: [{{types: [cds, eds], xds_servers: [{}]}}]\n", one(&aside));
    let relay = Relay::telling("crossings-removed", &guarded(&one(&main), "{within: never}", &more));
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &["a", "b"])];
    let watcher = Watcher::start(relay.address, &wants).await;
    watcher.has(CDS, "a b").await;
    watcher.has(RDS, "r").await;
    watcher.has(EDS, "a b").await;
    aside.remove(CDS, "a");
    aside.remove(EDS, "a");
    holding(&relay, "cds", "referenced", "a").await;
    holding(&relay, "eds", "referenced", "a").await;
    watcher.loses_only("").await;
    main.put(RDS, "r", route("r", &["b"]));
    watcher.has(CDS, "b").await;
    watcher.has(EDS, "b").await;
    nothing_held(&relay).await;
}

/// Two of them: listeners and routes, and clusters, and endpoints. What the registry removes goes with its cluster, or after the order
/// gate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assignment_whose_cluster_is_elsewhere() {
    let (main, aside, _relay, watcher) = start("assignment", "60s").await;
    aside.put(EDS, "b", endpoints("b", 1));
    watcher.has(EDS, "a b").await;
    aside.remove(EDS, "b");
    tokio::time::sleep(Duration::from_secs(1)).await;
    watcher.has(EDS, "a b").await;
    watcher.has(EDS, "a").await;
    aside.put(EDS, "b", endpoints("b", 2));
    watcher.has(EDS, "a b").await;
    aside.remove(EDS, "b");
    main.remove(CDS, "b");
    watcher.has(CDS, "a").await;
    watcher.has(EDS, "a").await;
}

/// A folder with a listener, whose routes lead to a cluster.
fn write(folder: &Path, leads: &str) {
    let kind = |kind: &str| format!("'@type': type.googleapis.com/envoy.config.{kind}");
    let (listener, route, cluster) = (
        kind("listener.v3.Listener"),
        kind("route.v3.RouteConfiguration"),
        kind("cluster.v3.Cluster"),
    );
    let eds = "type: EDS, eds_cluster_config: {eds_config: {ads: {}}}";
    let host = format!("name: h, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster: {leads}}}}}]");
    let text = format!(
        "- {{{listener}, name: l}}\n- {{{route}, name: r, virtual_hosts: [{{{host}}}]}}\n- {{{cluster}, name: a, {eds}}}\n- {{{cluster}, name: b, {eds}}}\n"
    );
    std::fs::write(folder.join("new"), text).unwrap();
    std::fs::rename(folder.join("new"), folder.join("all.yaml")).unwrap();
}

/// A folder with a route to `a`, a control plane that has the endpoints of `a` only, and a client that has all of it. Routes wait so long.
async fn start_files(name: &str, gate: &str) -> (PathBuf, Server, Relay, Watcher) {
    let name = format!("crossings-files-{name}");
    let (aside, folder) = (Server::start().await, directory(&name));
    write(&folder, "a");
    aside.put(EDS, "a", endpoints("a", 1));
    let more = format!(
        "sources: [{{types: [eds], xds_servers: [{}]}}]\ntimers: {{order_gate: {gate}}}\n",
        one(&aside)
    );
    let files = format!("{{server_uri: '{}'}}", folder.display());
    let relay = Relay::telling(&name, &guarded(&files, "{unready: 60s}", &more));
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &["a", "b"])];
    let watcher = Watcher::start(relay.address, &wants).await;
    watcher.has(CDS, "a b").await;
    watcher.has(RDS, "r").await;
    watcher.has(EDS, "a").await;
    (folder, aside, relay, watcher)
}

/// Routes from files wait as well, and what the file says again is what waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_of_a_file() {
    let (folder, aside, relay, watcher) = start_files("wait", "10m").await;
    write(&folder, "b");
    holding(&relay, "rds", "unready", "r").await;
    // It is taken back, and said again.
    write(&folder, "a");
    nothing_held(&relay).await;
    write(&folder, "b");
    holding(&relay, "rds", "unready", "r").await;
    assert_eq!(watcher.sent("r"), 1);
    aside.put(EDS, "b", endpoints("b", 1));
    eventually("the new route", || (watcher.sent("r") == 2).then_some(())).await;
    nothing_held(&relay).await;
    // What is removed stays while its cluster may be in use, and the route may lead there again.
    aside.remove(EDS, "a");
    write(&folder, "a");
    eventually("the first route", || (watcher.sent("r") == 3).then_some(())).await;
    watcher.has(EDS, "a b").await;
}

/// A person lets it go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_of_a_file_is_let_go() {
    let (folder, _aside, relay, watcher) = start_files("released", "10m").await;
    write(&folder, "b");
    holding(&relay, "rds", "unready", "r").await;
    assert_eq!(watcher.sent("r"), 1);
    let (code, text) = relay.command(&["holds", "release", "rds/r", "--reason", "a test"]);
    assert_eq!(
        (code, &*text),
        (Some(0), "1 waiting change is served: 1 rds for another source\n")
    );
    eventually("what was let go", || (watcher.sent("r") == 2).then_some(())).await;
}

/// The order gate ends both waits: that of endpoints that were removed, and that of a route to them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_that_go_under_a_route_of_a_file() {
    let (folder, aside, relay, watcher) = start_files("clock", "1s").await;
    aside.put(EDS, "b", endpoints("b", 1));
    watcher.has(EDS, "a b").await;
    write(&folder, "b");
    eventually("the second route", || (watcher.sent("r") == 2).then_some(())).await;
    aside.remove(EDS, "a");
    watcher.has(EDS, "b").await;
    write(&folder, "a");
    eventually("the first route", || (watcher.sent("r") == 3).then_some(())).await;
    let ended = "distributary_held_removals_ended_total{reason=\"unready\",by=\"clock\"}";
    assert_eq!(metric(&relay, ended), 1);
}
