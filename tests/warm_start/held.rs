// SPDX-License-Identifier: Apache-2.0
//! A control plane that forgets: clients keep what they have, operators see it, and a restart of the relay changes nothing of it.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use distributary::proto::distributary::references as fields;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryRequest, Resource};
use distributary::proto::google::protobuf::Any;
use prost::Message;

use crate::messages::wants;
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, EDS, Relay, Sotw, clusters, directory, eventually, node};

const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

fn configuration(upstream: SocketAddr, guard: &str, dir: Option<&Path>) -> String {
    let snapshot = dir.map(|dir| format!("snapshot: {{dir: '{}', interval: 100ms}}\n", dir.display()));
    format!(
        "upstream: {{xds_servers: [{{server_uri: '{upstream}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\nguard: {guard}\n{}",
        snapshot.unwrap_or_default()
    )
}

/// A resource with its name and this content.
fn resource(type_url: &str, name: &str, content: &impl Message) -> Resource {
    let name_field = [&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    let value = [name_field, content.encode_to_vec()].concat();
    Resource {
        name: name.to_owned(),
        version: format!("{:x}", value.len()),
        resource: Some(Any {
            type_url: type_url.to_owned(),
            value: Bytes::from(value),
        }),
        ..Resource::default()
    }
}

fn listener(name: &str, route: &str) -> Resource {
    let manager = fields::HttpConnectionManager {
        rds: Some(fields::Rds {
            route_config_name: route.to_owned(),
        }),
        ..Default::default()
    };
    let config = Any {
        type_url:
            "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
                .to_owned(),
        value: Bytes::from(manager.encode_to_vec()),
    };
    let chain = fields::FilterChain {
        filters: vec![fields::Filter {
            typed_config: Some(config),
        }],
    };
    let content = fields::Listener {
        filter_chains: vec![chain],
        ..Default::default()
    };
    resource(LDS, name, &content)
}

fn route(name: &str, cluster: &str) -> Resource {
    let action = fields::RouteAction {
        cluster: cluster.to_owned(),
        ..Default::default()
    };
    let host = fields::VirtualHost {
        routes: vec![fields::Route {
            route: Some(action),
            ..fields::Route::default()
        }],
        ..Default::default()
    };
    let content = fields::RouteConfiguration {
        virtual_hosts: vec![host],
        ..Default::default()
    };
    resource(RDS, name, &content)
}

fn says(type_url: &str, nonce: &str, resources: Vec<Resource>, removed: &[&str]) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: nonce.to_owned(),
        resources,
        removed_resources: removed.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

/// The next call, once it has asked for all of these types.
async fn asked(plane: &mut Plane, types: &[&str]) -> Call {
    let mut call = plane.call().await;
    let mut left = types.to_vec();
    while !left.is_empty() {
        let request = call.delta().await;
        left.retain(|type_url| *type_url != request.type_url);
    }
    call
}

/// Waits until `/holds` contains a text.
async fn holds(relay: &Relay, text: &str) -> String {
    eventually(text, || {
        let holds = relay.admin("/holds");
        holds.contains(text).then_some(holds)
    })
    .await
}

/// kuma #2171: the control plane comes back and says at first that nothing exists. No client is told, in either dialect, and it is
/// seen while it lasts. Without the guard, clients lose everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_state_is_not_passed_on() {
    for guarded in [true, false] {
        let mut plane = Plane::start().await;
        let guard = if guarded {
            "{hold: {endpoints: 60s, other: 60s}}"
        } else {
            "off"
        };
        let relay = Relay::telling(&format!("held-{guarded}"), &configuration(plane.address, guard, None));
        let client = Client::connect(relay.address).await;
        let mut delta: Delta = client.open(&wants(LDS, &["*"])).await;
        let mut call = asked(&mut plane, &[LDS]).await;
        call.send(&says(LDS, "1", vec![listener("l", "r")], &[]));
        assert_eq!(delta.next().await.versions.len(), 1);
        let request = DiscoveryRequest {
            node: Some(node()),
            type_url: LDS.to_owned(),
            ..Default::default()
        };
        let mut sotw: Sotw = client.open(&request).await;
        assert_eq!(sotw.next().await.resources.len(), 1);

        call.finish(tonic::Code::Unavailable, "restarting");
        let mut call = asked(&mut plane, &[LDS]).await;
        call.send(&says(LDS, "1", Vec::new(), &["l"]));
        if !guarded {
            assert_eq!(delta.next().await.removed, ["l"]);
            assert_eq!(sotw.next().await.resources.len(), 0);
            assert!(relay.admin("/holds").ends_with("\r\n\r\nnothing is held\n"));
            continue;
        }
        let shown = holds(&relay, "-lds-mass-1  1 lds of ").await;
        for (command, words) in [
            (
                "holds",
                "still served and need a look: 1; send them again, or let them go with `distributary holds release ID",
            ),
            (
                "status",
                "1 removed resources are still served; `distributary holds` shows why, and how to let them go",
            ),
        ] {
            let (code, said) = relay.command(&[command]);
            assert!(code == Some(1) && said.contains(words), "{said}");
        }
        assert!(
            shown.contains("much was lost at once") && shown.contains("; 2 clients\n  l\n"),
            "{shown}"
        );
        relay.line("removed resources are still served");
        assert!(relay.admin("/resources/l").contains("\"reason\": \"mass\""));
        assert!(relay.admin("/holds?format=json").contains("\"count\": 1"));
        let metrics = relay.admin("/metrics");
        assert!(
            metrics.contains("distributary_holds{reason=\"mass\",type=\"lds\"} 1\n"),
            "{metrics}"
        );
        assert!(metrics.contains("distributary_hold_resources{reason=\"mass\"} 1\n"));
        // A newcomer is served what is held.
        let mut new: Delta = client.open(&wants(LDS, &["*"])).await;
        assert_eq!(new.next().await.versions.len(), 1);

        call.send(&says(LDS, "2", vec![listener("l", "r")], &[]));
        holds(&relay, "nothing is held").await;
        relay.line("held until it was sent again");
        let metrics = relay.admin("/metrics");
        assert!(
            metrics.contains("distributary_held_removals_ended_total{reason=\"mass\",by=\"server\"} 1\n"),
            "{metrics}"
        );
        assert!(metrics.contains("distributary_hold_resources{reason=\"mass\"} 0\n"));
        assert!(delta.is_silent().await && sotw.is_silent().await && new.is_silent().await);
    }
}

/// wso2 #3197: after a restart the clusters have other names, and the routes lead to the old ones for ever. They stay, until a person
/// releases them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_that_lead_nowhere() {
    let mut plane = Plane::start().await;
    let relay = Relay::telling(
        "held-routes",
        &configuration(plane.address, "{hold: {endpoints: 1s, other: 1s}}", None),
    );
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
    delta.says(&wants(LDS, &["*"]));
    delta.says(&wants(RDS, &["r"]));
    let types = [CDS, LDS, RDS];
    let mut call = asked(&mut plane, &types).await;
    call.send(&clusters("1", &[("old", "1")], &[]));
    call.send(&says(LDS, "2", vec![listener("l", "r")], &[]));
    call.send(&says(RDS, "3", vec![route("r", "old")], &[]));
    for _ in 0..3 {
        assert_eq!(delta.next().await.versions.len(), 1);
    }
    call.finish(tonic::Code::Unavailable, "restarting");
    let mut call = asked(&mut plane, &types).await;
    call.send(&clusters("1", &[("new", "1")], &["old"]));
    call.send(&says(LDS, "2", Vec::new(), &[]));
    call.send(&says(RDS, "3", Vec::new(), &[]));
    assert!(delta.next().await.versions.contains_key("new"));
    let shown = holds(&relay, "-cds-referenced  1 cds of ").await;
    assert!(shown.contains("old: rds r refers to it"), "{shown}");
    // That is no trouble before it is old.
    let (code, out) = relay.command(&["holds"]);
    assert!(code == Some(0) && out.contains("old: rds r refers to it\n"), "{out}");
    let (code, out) = relay.command(&["status"]);
    assert!(code == Some(0) && out.contains("HELD"), "{out}");
    let (code, out) = relay.command(&["holds", "extend", "cds/old", "--reason", "wait", "--for", "5m"]);
    assert!(
        code == Some(0) && out.starts_with("1 held removal is held at least until "),
        "{out}"
    );
    assert!(delta.is_silent().await);
    // What is wrong with an order is said.
    for (wrong, status) in [
        ("/holds/release?target=cds/other&reason=x", "404"),
        ("/holds/release?target=cds/old&reason=", "400"),
        ("/holds/release?target=cds/old&reason=x&for=1m", "400"),
        ("/holds/extend?target=cds/old&reason=x&for=8760h", "400"),
        ("/holds/extend?target=cds/old", "400"),
    ] {
        let answer = relay.post(wrong);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{wrong}: {answer}");
    }
    let (code, out) = relay.command(&["holds", "release", "cds/old", "--reason", "it is dead"]);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "1 held removal is passed on: 1 cds by reference\n")
    );
    assert!(relay.admin("/changes").contains("\"ended\": \"person\""));
    assert_eq!(delta.next().await.removed, ["old"]);
    holds(&relay, "nothing is held").await;
    assert_eq!(relay.command(&["holds"]), (Some(0), "nothing is held\n".to_owned()));
}

/// What is held, until when, and what a person has ordered, outlives a restart of the relay: it begins no new time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_outlive_the_relay() {
    let dir = directory("held");
    let mut plane = Plane::start().await;
    let text = configuration(plane.address, "{hold: {endpoints: 60s, other: 60s}}", Some(&dir));
    let relay = Relay::telling("held-restart", &text);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
    let mut call = asked(&mut plane, &[CDS]).await;
    call.send(&clusters("1", &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")], &[]));
    assert_eq!(delta.next().await.versions.len(), 4);
    call.finish(tonic::Code::Unavailable, "restarting");
    let mut call = asked(&mut plane, &[CDS]).await;
    call.send(&clusters("1", &[], &["a", "b", "c"]));
    let shown = holds(&relay, "-cds-mass-1  3 cds of ").await;
    let id = shown
        .rsplit("\r\n\r\n")
        .next()
        .unwrap()
        .split("  ")
        .next()
        .unwrap()
        .to_owned();
    let answer = relay.post(&format!("/holds/extend?target={id}&reason=it%20is%20mended&for=2h"));
    assert!(answer.contains("3 held removals are held at least until "), "{answer}");
    let until = |relay: &Relay| {
        let holds = relay.admin("/holds?format=json");
        let at = holds.find("\"until\": \"")? + 10;
        Some(holds.get(at..at + 20)?.to_owned())
    };
    holds(&relay, "extended: it is mended").await;
    let before = until(&relay).unwrap();
    // The snapshot has it.
    eventually("a snapshot with the order", || {
        let file = crate::find(&dir)?;
        let found = distributary::snapshot::read(&file, &Default::default(), crate::stage::now()).ok()?;
        let extended = |hold: &xds::Hold| hold.removals.values().all(|one| one.extended.is_some());
        (!found.cut.holds().is_empty() && found.cut.holds().iter().all(extended)).then_some(())
    })
    .await;
    relay.kill();

    let relay = Relay::telling("held-restart", &text);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
    assert_eq!(delta.next().await.versions.len(), 4);
    let mut call = asked(&mut plane, &[CDS]).await;
    call.send(&clusters("1", &[("d", "1")], &[]));
    let shown = holds(&relay, "extended: it is mended").await;
    assert!(shown.contains(&id), "{id} in {shown}");
    assert_eq!(until(&relay), Some(before));
    assert!(delta.is_silent().await);
}

/// D-10: the control plane fails, and the sessions move to another server, whose view begins with them. What that server's first whole
/// state lacks of what they were served is held once for all of them, and a newcomer is served it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_knows_half() {
    let mut first = Plane::start().await;
    let mut second = Plane::start().await;
    let servers = [first.address, second.address].map(|server| format!("{{server_uri: '{server}'}}"));
    let text = configuration(first.address, "{hold: {endpoints: 60s, other: 60s}}", None);
    let text = text.replace(&servers[0], &servers.join(", "));
    let relay = Relay::telling("held-failover", &text);
    let client = Client::connect(relay.address).await;
    let mut sessions: Vec<Delta> = Vec::new();
    let all = [("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"), ("e", "1"), ("f", "1")];
    let mut call = None;
    for _ in 0..2 {
        let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
        // Of this the first server says nothing, so the session has a reason to leave it.
        delta.says(&wants(EDS, &["unknown"]));
        if call.is_none() {
            let mut asking = asked(&mut first, &[CDS]).await;
            asking.send(&clusters("1", &all, &[]));
            call = Some(asking);
        }
        assert_eq!(delta.next().await.versions.len(), 6);
        sessions.push(delta);
    }
    drop((call, first));
    let mut call = asked(&mut second, &[CDS]).await;
    call.send(&clusters("1", &[("a", "1"), ("b", "2")], &[]));
    let shown = holds(&relay, "-cds-mass-1  4 cds of ").await;
    assert!(shown.contains(&second.address.to_string()), "{shown}");
    for delta in &mut sessions {
        let got = delta.next().await;
        assert_eq!((got.versions.len(), got.removed.len()), (1, 0));
        assert!(delta.is_silent().await);
    }
    let mut new: Delta = client.open(&wants(CDS, &["*"])).await;
    assert_eq!(new.next().await.versions.len(), 6);
    call.send(&clusters("2", &all[2..], &[]));
    holds(&relay, "nothing is held").await;
    for delta in sessions.iter_mut().chain([&mut new]) {
        assert!(delta.is_silent().await);
    }
}

/// A listener names a route that nobody asks for. A cluster that is removed waits for `order_gate`, because that route may lead to it;
/// that it is over is no warning, because nothing is known to refer to the cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_that_nobody_asks_for() {
    let mut plane = Plane::start().await;
    let config = configuration(plane.address, "{}", None) + "timers: {order_gate: 1s}\n";
    let relay = Relay::run("held-unasked", &config);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
    delta.says(&wants(LDS, &["*"]));
    let mut call = asked(&mut plane, &[CDS, LDS]).await;
    call.send(&clusters("1", &[("a", "1"), ("b", "1")], &[]));
    call.send(&says(LDS, "2", vec![listener("l", "r")], &[]));
    for count in [2, 1] {
        assert_eq!(delta.next().await.versions.len(), count);
    }
    call.send(&clusters("3", &[], &["a"]));
    assert_eq!(delta.next().await.removed, ["a"]);
    let line = relay.line("no longer held: its time was over");
    assert!(
        line.contains("\"level\":\"INFO\"") && line.contains("\"by\":\"clock\""),
        "{line}"
    );
    assert_eq!(relay.lines("\"level\":\"WARN\""), 0, "{:#?}", relay.seen());
}
