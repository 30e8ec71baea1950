// SPDX-License-Identifier: Apache-2.0
//! A control plane that forgets: clients keep what they have, operators see it, and a restart of the relay changes nothing of it.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use peers::state::{listener, route};

use crate::messages::{LDS, RDS, wants, wants_sotw};
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, Relay, Sotw, asking, clusters, directory, eventually, has};

fn configuration(upstream: SocketAddr, guard: &str, dir: Option<&Path>) -> String {
    let snapshot = dir.map(|dir| format!("snapshot: {{dir: '{}', interval: 100ms}}\n", dir.display()));
    asking(upstream, &format!("guard: {guard}\n{}", snapshot.unwrap_or_default()))
}

fn resource(type_url: &str, name: &str, value: Bytes) -> Resource {
    Resource {
        name: name.to_owned(),
        version: "1".to_owned(),
        resource: Some(Any {
            type_url: type_url.to_owned(),
            value,
        }),
        ..Resource::default()
    }
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
        let guard = ["off", "{hold: {endpoints: 60s, other: 60s}}"][usize::from(guarded)];
        let relay = Relay::telling(&format!("held-{guarded}"), &configuration(plane.address, guard, None));
        let client = Client::connect(relay.address).await;
        let mut delta: Delta = client.open(&wants(LDS, &["*"])).await;
        let mut call = asked(&mut plane, &[LDS]).await;
        call.send(&says(LDS, "1", vec![resource(LDS, "l", listener("l", "r", 1))], &[]));
        assert_eq!(delta.next().await.versions.len(), 1);
        let mut sotw: Sotw = client.open(&wants_sotw(LDS, &[])).await;
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
        has(&shown, "much was lost at once");
        has(&shown, "; 2 clients\n  l\n");
        relay.line("removed resources are still served");
        assert!(relay.admin("/resources/l").contains("\"reason\": \"mass\""));
        assert!(relay.admin("/holds?format=json").contains("\"count\": 1"));
        relay.shows("holds{reason=\"mass\",type=\"lds\"} 1");
        relay.shows("hold_resources{reason=\"mass\"} 1");
        // A newcomer is served what is held.
        let mut new: Delta = client.open(&wants(LDS, &["*"])).await;
        assert_eq!(new.next().await.versions.len(), 1);

        call.send(&says(LDS, "2", vec![resource(LDS, "l", listener("l", "r", 1))], &[]));
        holds(&relay, "nothing is held").await;
        relay.line("held until it was sent again");
        relay.shows("held_removals_ended_total{reason=\"mass\",by=\"server\"} 1");
        relay.shows("hold_resources{reason=\"mass\"} 0");
        assert!(delta.is_silent().await && sotw.is_silent().await && new.is_silent().await);
    }
}

/// wso2 #3197: after a restart the clusters have other names, and the routes lead to the old ones for ever. They stay, until a person
/// releases them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_that_lead_nowhere() {
    let mut plane = Plane::start().await;
    let text = configuration(plane.address, "{hold: {endpoints: 1s, other: 1s}}", None);
    let relay = Relay::telling("held-routes", &text);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &["*"])).await;
    delta.says(&wants(LDS, &["*"]));
    delta.says(&wants(RDS, &["r"]));
    let types = [CDS, LDS, RDS];
    let mut call = asked(&mut plane, &types).await;
    call.send(&clusters("1", &[("old", "1")], &[]));
    call.send(&says(LDS, "2", vec![resource(LDS, "l", listener("l", "r", 1))], &[]));
    call.send(&says(RDS, "3", vec![resource(RDS, "r", route("r", &["old"]))], &[]));
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
    assert_eq!(code, Some(0));
    has(&out, "1 held removal is held at least until ");
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
    let expected = "1 held removal is passed on: 1 cds by reference\n";
    assert_eq!((code, out.as_str()), (Some(0), expected));
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
    let body = shown.rsplit("\r\n\r\n").next().unwrap();
    let id = body.split("  ").next().unwrap().to_owned();
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
