// SPDX-License-Identifier: Apache-2.0
//! K-25: clients that say they come through a relay do no harm to others.

use std::time::Duration;

use distributary::classes::{Marks, RELAYS};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};
use distributary::protocol::read_node;
use tonic::Code;

use crate::plane::{Call, Plane, soon};
use crate::stage::{ANYWHERE, CDS, Client, Delta, Relay, clusters};

/// A request for all clusters, which says that it comes through these relays.
fn through(relays: &[&str]) -> DeltaDiscoveryRequest {
    let text = |relay: &&str| Value {
        kind: Some(Kind::StringValue((*relay).to_owned())),
    };
    let values = relays.iter().map(text).collect();
    let list = Value {
        kind: Some(Kind::ListValue(ListValue { values })),
    };
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: "client".to_owned(),
            metadata: (!relays.is_empty()).then(|| Struct {
                fields: [(RELAYS.to_owned(), list)].into(),
            }),
            ..Node::default()
        }),
        type_url: CDS.to_owned(),
        ..Default::default()
    }
}

/// A client that says the mark of the relay above again and again, on streams that it keeps or closes at once, ends its own streams and
/// no other's: they miss nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_of_the_relay_above_concerns_who_says_it() {
    for (transport, stays) in [("delta", true), ("sotw", true), ("delta", false)] {
        lies(transport, stays).await;
    }
}

/// A liar that waits for what becomes of its stream, or goes at once or after a second.
async fn lies(transport: &str, stays: bool) {
    let mut plane = Plane::start().await;
    let of = |tier: &str| format!("{tier}-{transport}-{stays}");
    let upper = relay(&of("upper"), &plane.address.to_string(), "delta");
    let lower = relay(&of("lower"), &upper.address.to_string(), transport);
    let connection = Client::connect(lower.address).await;
    let mut others: Vec<Delta> = Vec::new();
    for _ in 0..30 {
        others.push(connection.open(&through(&[])).await);
    }
    let mut call = plane.call().await;
    // Every server that it asks knows its mark.
    let node = call.delta().await.node.unwrap();
    let mark = read_node(&node).relays().last().unwrap().clone();
    send(&mut call, 0).await;
    for other in &mut others {
        assert_eq!(other.next().await.versions.len(), 1);
    }
    for change in 1..=12 {
        let connection = Client::connect(lower.address).await;
        let mut lie: Delta = connection.open(&through(&["far", &mark])).await;
        // In SotW the marks go with the next request.
        send(&mut call, change).await;
        if stays {
            let (code, words) = lie.end().await;
            assert_eq!(code, Code::FailedPrecondition, "{words}");
            assert!(words.contains(&format!("`{mark}`")), "{words}");
        } else {
            // It is gone before the relay above has answered, and sometimes before it is asked.
            tokio::time::sleep(Duration::from_millis(if change % 2 == 0 { 0 } else { 1100 })).await;
            drop(lie);
        }
        for other in &mut others {
            let next = soon("a change", other.next()).await;
            assert_eq!((next.versions.len(), next.removed.len()), (1, 0), "change {change}");
        }
    }
    if stays {
        lower.line("the server is asked again");
    }
    assert_eq!(lower.lines("control plane not reached"), 0, "{:?}", lower.seen());
    // The same client without the mark is served, and with others.
    for relays in [&[][..], &["far", "other"]] {
        let mut stream: Delta = Client::connect(lower.address).await.open(&through(relays)).await;
        assert_eq!(stream.next().await.versions.len(), 1);
    }
}

/// A relay that asks this server.
fn relay(name: &str, server: &str, transport: &str) -> Relay {
    let upstream = format!("upstream: {{xds_servers: [{{server_uri: '{server}', transport: {transport}}}]}}\n");
    Relay::run(&format!("marks-{name}"), &format!("{upstream}{ANYWHERE}"))
}

/// Sends the only cluster, which is another one after each change, and reads what the relay says to that.
async fn send(call: &mut Call, change: usize) {
    let content = (change % 10).to_string();
    call.send(&clusters(&change.to_string(), &[("a", &content)], &[]));
    loop {
        if call.delta().await.response_nonce == change.to_string() {
            return;
        }
    }
}

/// The own mark of the relay is refused always, whatever rules say; those of a client that no rule lets be a relay go no further.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_rules_let_be_a_relay() {
    for (rules, passed_on) in [
        (
            "rules: [{name: relays, nodes: {id: 'relay-*'}, relay: true}, {name: all}]\nsecrets: allow\n",
            &["zone"][..],
        ),
        ("rules: [{name: all}]\nsecrets: allow\n", &["edge", "zone"]),
        ("", &["edge", "zone"]),
    ] {
        let mut plane = Plane::start().await;
        let relay = Relay::asks(&format!("let-{}", rules.len()), plane.address, rules);
        let mut streams: Vec<Delta> = Vec::new();
        for (id, mark) in [("gateway", "edge"), ("relay-1", "zone")] {
            let mut request = through(&[mark]);
            request.node.as_mut().unwrap().id = id.to_owned();
            streams.push(Client::connect(relay.address).await.open(&request).await);
        }
        let mut call = plane.call().await;
        let mut own = String::new();
        soon("the marks", async {
            loop {
                let Some(node) = call.delta().await.node else { continue };
                let marks = read_node(&node).relays().to_vec();
                let (last, others) = marks.split_last().unwrap();
                own.clone_from(last);
                let mut others = others.to_vec();
                others.sort_unstable();
                if others == passed_on {
                    return;
                }
            }
        })
        .await;
        let warning = "no rule has `relay`";
        if rules.len() < 60 && !rules.is_empty() {
            relay.line(warning);
        } else {
            assert_eq!(relay.lines(warning), 0);
        }
        let mut looped: Delta = Client::connect(relay.address)
            .await
            .open(&through(&["zone", &own]))
            .await;
        assert_eq!(looped.end().await.0, Code::FailedPrecondition);
        assert!(Marks::of(&[own]).is_some());
    }
}
