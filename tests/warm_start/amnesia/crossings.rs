// SPDX-License-Identifier: Apache-2.0
//! Routes of one control plane that lead to clusters whose endpoints come from another one: no client is sent there before they are
//! there (D-12), and what they lead to stays as long as they do (D-11).

use std::path::Path;

use super::{
    CDS, EDS, LDS, RDS, Server, Watcher, cluster, endpoints, guarded, holding, holds, nothing_held, one, order,
    put_path, route,
};
use crate::stage::{Relay, directory, eventually, replace, until};

/// A control plane with a route to `a` and a cluster `b` beside it; one that has endpoints of `a` only; and a client that has all of it.
async fn start() -> (Server, Server, Relay, Watcher) {
    let (main, aside) = (Server::start().await, Server::start().await);
    put_path(&main, &["a"]);
    main.put(CDS, "b", cluster("b"));
    aside.put(EDS, "a", endpoints("a", 1));
    let more = format!("sources: [{{types: [eds], xds_servers: [{}]}}]\n", one(&aside));
    let text = guarded(&one(&main), "{unready: 60s}", &more);
    let relay = Relay::telling("crossings", &text);
    let watcher = Watcher::start(relay.address, &wants(&["a", "b"])).await;
    has_all(&watcher).await;
    (main, aside, relay, watcher)
}

/// What a client asks for that wants these endpoints.
const fn wants<'a>(endpoints: &'a [&'a str]) -> [(&'a str, &'a [&'a str]); 4] {
    [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, endpoints)]
}

async fn has_all(watcher: &Watcher) {
    watcher.has(CDS, "a b").await;
    watcher.has(RDS, "r").await;
    watcher.has(EDS, "a").await;
}

/// The route waits, `holds` says for what, and it is served at once when the endpoints are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_waits_for_endpoints() {
    let (main, aside, relay, watcher) = start().await;
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
    let words = "r: it leads to eds b, which the other source does not have yet";
    assert!(text.contains(words), "{text}");
    aside.put(EDS, "b", endpoints("b", 1));
    until("the new route", || watcher.sent("r") == 2).await;
    assert!(watcher.sent("b") >= 1, "the route came before the endpoints");
    until("the end of the hold", || holds(&relay).is_empty()).await;
    let ended = "distributary_held_removals_ended_total{reason=\"unready\",by=\"free\"} ";
    assert_eq!(relay.number(ended), 1.0);
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
    let watcher = Watcher::start(relay.address, &wants(&["a"])).await;
    has_all(&watcher).await;
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
    until("the new route", || watcher.sent("r") == 2).await;
    nothing_held(&relay).await;
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
    replace(&folder.join("all.yaml"), &text);
}

/// Routes from files wait as well, and what the file says again is what waits. A person lets it go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_of_a_file() {
    let (aside, folder) = (Server::start().await, directory("crossings-files"));
    write(&folder, "a");
    aside.put(EDS, "a", endpoints("a", 1));
    let source = format!("sources: [{{types: [eds], xds_servers: [{}]}}]\n", one(&aside));
    let files = format!("{{server_uri: '{}'}}", folder.display());
    let text = guarded(
        &files,
        "{unready: 60s}",
        &format!("{source}timers: {{order_gate: 10m}}\n"),
    );
    let relay = Relay::telling("crossings-files", &text);
    let watcher = Watcher::start(relay.address, &wants(&["a", "b"])).await;
    has_all(&watcher).await;
    write(&folder, "b");
    holding(&relay, "rds", "unready", "r").await;
    // It is taken back, and said again.
    write(&folder, "a");
    nothing_held(&relay).await;
    write(&folder, "b");
    holding(&relay, "rds", "unready", "r").await;
    assert_eq!(watcher.sent("r"), 1);
    let said = order(&relay, &["holds", "release", "rds/r"]);
    let words = "1 waiting change is served: 1 rds for another source\n";
    assert_eq!(said, (Some(0), words.to_owned()));
    until("what was let go", || watcher.sent("r") == 2).await;
}
