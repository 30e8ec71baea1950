//! K-25: a relay that leads back to itself is found, and clients that say they come through a relay do no harm to others.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use distributary::classes::{Marks, RELAYS};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};
use distributary::protocol::read_node;
use tonic::Code;

use crate::plane::{Plane, soon};
use crate::stage::{CDS, Client, Delta, EDS, Relay, directory};

/// A rule for relays, and one for all else.
const RULES: &str = "rules: [{name: relays, identities: 'ip:127.0.0.1', relay: true}, {name: all}]\nsecrets: allow\n";

/// A request for a name of the authority that is asked of the next relay.
fn asks(name: &str) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: "client".to_owned(),
            ..Node::default()
        }),
        type_url: EDS.to_owned(),
        resource_names_subscribe: vec![format!(
            "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/{name}"
        )],
        ..Default::default()
    }
}

/// Relays in a ring are told within ten seconds that they ask themselves, and so is who asks, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_of_two() {
    ring(2, "delta", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_of_three_with_rules() {
    ring(3, "delta", RULES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_of_four_in_sotw() {
    ring(4, "sotw", "").await;
}

async fn ring(size: usize, transport: &str, rules: &str) {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listeners: Vec<TcpListener> = (0..size).map(|_| TcpListener::bind(anywhere).unwrap()).collect();
    let places: Vec<SocketAddr> = listeners.iter().map(|one| one.local_addr().unwrap()).collect();
    drop(listeners);
    let files = directory(&format!("ring-{size}"));
    std::fs::write(files.join("none.yaml"), "[]").unwrap();
    let relays: Vec<Relay> = (0..size)
        .map(|at| {
            let (next, place) = (places[(at + 1) % size], places[at]);
            let text = format!(
                "upstream: {{xds_servers: [{{server_uri: '{}'}}], authorities: {{x: {{xds_servers: [{{server_uri: '{next}', transport: {transport}}}]}}}}}}\nlisteners: [{{address: '{place}'}}]\nadmin: {{address: '127.0.0.1:0'}}\n{rules}",
                files.display()
            );
            Relay::run(&format!("ring-{size}-{at}"), &text)
        })
        .collect();
    for (round, asker) in relays.iter().take(2).enumerate() {
        let asking = asks(&round.to_string());
        let stream: Delta = Client::connect(asker.address).await.open(&asking).await;
        let told = soon("an error that names the loop", told(stream)).await;
        assert!(
            told.contains("loop: the request has already come through relay"),
            "{told}"
        );
    }
    let all: Vec<String> = relays.iter().map(|relay| relay.admin("/clusters")).collect();
    assert!(all.iter().any(|text| text.contains("loop: ")), "{all:?}");
}

/// The first error of a name, or of the stream.
async fn told(mut stream: Delta) -> String {
    loop {
        let response = match stream.message_or_end().await {
            Ok(response) => response,
            Err((_, words)) => return words,
        };
        if let Some(error) = response.resource_errors.first() {
            return error.error_detail.clone().unwrap_or_default().message;
        }
    }
}

/// Writes the only cluster of the files, with this content.
fn write(files: &Path, connect_timeout: usize) {
    let text = format!("- '@type': {CDS}\n  name: a\n  connect_timeout: {connect_timeout}s\n");
    std::fs::write(files.join("new"), text).unwrap();
    std::fs::rename(files.join("new"), files.join("clusters.yaml")).unwrap();
}

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

/// How many clients there are beside the one that says what it likes.
const OTHERS: usize = 30;
const CHANGES: usize = 12;

/// A client that says the mark of the relay above again and again, on streams that it keeps or closes at once, ends its own streams and
/// no other's: they miss nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_of_the_relay_above_concerns_who_says_it() {
    for (transport, stays) in [("delta", true), ("sotw", true), ("delta", false)] {
        let files = directory(&format!("said-{transport}-{stays}"));
        write(&files, 1);
        let mut plane = Plane::start().await;
        let upper = Relay::run(
            &format!("said-upper-{transport}-{stays}"),
            &format!(
                "upstream: {{xds_servers: [{{server_uri: '{}'}}], authorities: {{x: {{xds_servers: [{{server_uri: '{}'}}]}}}}}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n",
                files.display(),
                plane.address
            ),
        );
        // Every server that it asks knows its mark.
        let _asker: Delta = Client::connect(upper.address).await.open(&asks("1")).await;
        let mut call = plane.call().await;
        let mark = read_node(&call.delta().await.node.unwrap()).relays().join("");
        let lower = Relay::run(
            &format!("said-lower-{transport}-{stays}"),
            &format!(
                "upstream: {{xds_servers: [{{server_uri: '{}', transport: {transport}}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n",
                upper.address
            ),
        );
        let connection = Client::connect(lower.address).await;
        let mut others: Vec<Delta> = Vec::new();
        for _ in 0..OTHERS {
            others.push(connection.open(&through(&[])).await);
        }
        for other in &mut others {
            assert_eq!(other.next().await.versions.len(), 1);
        }
        let mut refused = 0;
        for change in 2..CHANGES + 2 {
            let mut liar: Delta = Client::connect(lower.address)
                .await
                .open(&through(&["far", &mark]))
                .await;
            // In SotW the marks go with the next request.
            write(&files, change);
            if stays {
                let (code, words) = liar.end().await;
                assert_eq!(code, Code::FailedPrecondition, "{words}");
                assert!(words.contains(&format!("`{mark}`")), "{words}");
                refused += 1;
            } else {
                // It is gone before the relay above has answered, and sometimes before it is asked.
                tokio::time::sleep(Duration::from_millis(if change % 2 == 0 { 0 } else { 1100 })).await;
                drop(liar);
            }
            for other in &mut others {
                let next = soon("a change", other.next()).await;
                assert_eq!((next.versions.len(), next.removed.len()), (1, 0), "change {change}");
            }
        }
        let (said, failed) = ("the server is asked again", "control plane not reached");
        if stays {
            assert_eq!(refused, CHANGES);
            lower.line(said);
        }
        // The relay above has refused the two streams of the view once, or each once more if the client was gone.
        let text = lower.admin("/metrics");
        assert_eq!(lower.lines(failed), 0, "{:?}", lower.seen());
        assert!(text.contains("distributary_"), "{text}");
        // The same client without the mark is served, and with others.
        for relays in [&[][..], &["far", "other"]] {
            let mut stream: Delta = Client::connect(lower.address).await.open(&through(relays)).await;
            assert_eq!(stream.next().await.versions.len(), 1);
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
        let relay = Relay::run(
            &format!("let-{}", rules.len()),
            &format!(
                "upstream: {{xds_servers: [{{server_uri: '{}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n{rules}",
                plane.address
            ),
        );
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
