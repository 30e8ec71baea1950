// SPDX-License-Identifier: Apache-2.0
//! What the relay logs of its peers: their words stay within one line, and lines that they cause are few.

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tonic::Code;

use crate::messages::{self, answer, of_node};
use crate::plane::{Plane, soon};
use crate::stage::{CDS, Client, Delta, Relay, asking, clusters, eventually, has};

const FORGED: &str = "2026-11-22T00:00:00.000000Z ERROR forged";

fn wants(id: &str, cluster: &str, names: &[&str]) -> DeltaDiscoveryRequest {
    of_node(id, cluster, messages::wants(CDS, names))
}

fn nack(nonce: &str, message: &str) -> DeltaDiscoveryRequest {
    answer(CDS, nonce, Some(message))
}

/// Control characters in a node id, in a client's words, in names and in a control plane's words are escaped, so that none of them
/// can forge a line of the log or of `/clusters`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_peers_stay_in_their_line() {
    let mut plane = Plane::start().await;
    let relay = Relay::telling("forged", &asking(plane.address, ""));
    let client = Client::connect(relay.address).await;
    let forged = |what: &str| format!("{what}\n{FORGED} by {what}\u{1b}[2J");
    let missing = forged("name");
    let mut stream: Delta = client.open(&wants(&forged("node"), "c", &["a", &missing])).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    let nonce = soon("a response", stream.message()).await.nonce;
    stream.says(&nack(&nonce, &forged("reason")));
    let line = relay.line("a client rejected a response");
    for what in ["node", "reason"] {
        has(&line, &format!("{what}\\n{FORGED} by {what}\\u{{1b}}[2J"));
    }
    call.finish(Code::Unavailable, &format!("status%0A{FORGED}"));
    relay.line("stream ended");
    for line in relay.seen() {
        assert!(!line.starts_with(FORGED), "{line}");
    }
    let mut text = String::new();
    eventually("the control plane's words", || {
        text = relay.admin("/clusters");
        text.contains("status\\n2026").then_some(())
    })
    .await;
    let forged = |line: &str| line.trim_start().starts_with(FORGED);
    assert!(!text.lines().any(forged), "{text}");
}

/// The line about a rejected response has a fixed message and fields; of a long reason, both ends are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_line_of_a_rejection() {
    let mut plane = Plane::start().await;
    let relay = Relay::run("rejected", &asking(plane.address, ""));
    let client = Client::connect(relay.address).await;
    let mut stream: Delta = client.open(&wants("edge-1", "c", &[])).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1"), ("b", "7")], &[]));
    let nonce = soon("a response", stream.message()).await.nonce;
    let reason = format!("Error adding clusters: {} and in the end: bad type", "x".repeat(5000));
    stream.says(&nack(&nonce, &reason));
    let line = relay.line("a client rejected a response");
    let fields: serde_json::Value = serde_json::from_str(&line).unwrap();
    let text = |key: &str| fields.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    assert_eq!(text("message"), "a client rejected a response");
    let kind = CDS.trim_start_matches("type.googleapis.com/");
    assert_eq!([text("level"), text("node"), text("type")], ["WARN", "edge-1", kind]);
    assert!(text("peer").starts_with("127.0.0.1:"), "{line}");
    assert_eq!(text("nonce"), nonce);
    let (first, second) = text("response").split_once(", ").unwrap();
    assert!(first.starts_with("a@") && second.starts_with("b@"), "{line}");
    let said = text("reason");
    assert!(said.starts_with("Error adding clusters: xxx"), "{line}");
    assert!(said.ends_with("in the end: bad type"), "{line}");
    assert!(said.len() < 1100 && said.contains("characters left out"), "{line}");
    assert_eq!(fields.get("suppressed").and_then(serde_json::Value::as_u64), Some(0));
}

/// A control plane that comes and goes has one line a minute of each kind, not one each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_that_flaps() {
    let mut plane = Plane::start().await;
    let relay = Relay::run("flaps", &asking(plane.address, ""));
    let client = Client::connect(relay.address).await;
    let _stream: Delta = client.open(&wants("edge", "c", &[])).await;
    for _ in 0..4 {
        // It answers a stream and ends it, and ends the next one before it answers in either dialect.
        let mut call = plane.call().await;
        call.delta().await;
        call.send(&clusters("n1", &[("a", "1")], &[]));
        call.delta().await;
        call.finish(Code::Unavailable, "over");
        for _ in 0..2 {
            plane.call().await.finish(Code::Unavailable, "not yet");
        }
    }
    drop(plane.call().await);
    relay.signal("-USR1");
    relay.line("SIGUSR1");
    for message in [
        "control plane answers",
        "stream ended",
        "no answer in this dialect; trying the other one",
        "control plane not reached",
        "control plane is back",
    ] {
        let lines = relay.lines(&format!("\"message\":\"{message}\""));
        assert_eq!(lines, 1, "{message}: {:#?}", relay.seen());
    }
    let changes = relay.lines("\"message\":\"server lost\"") + relay.lines("\"message\":\"server back\"");
    assert!(changes <= 4, "{changes}");
    // What is left are the lines of the start, of the client, and one of its view.
    assert!(relay.seen().len() <= 25, "{:#?}", relay.seen());
    // Nor is any value written as the program has it.
    assert_eq!(relay.lines("Class {"), 0, "{:#?}", relay.seen());
}

/// The log says what starts and when it is ready, and at `debug` each client that comes and goes, without the frames of HTTP/2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_begins_with_what_runs() {
    let mut plane = Plane::start().await;
    let relay = Relay::run("begins", &asking(plane.address, "logging: {level: debug}\n"));
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let start = parse(&relay.line("the relay starts"));
    let expected = [
        ("level", "INFO"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", distributary::telemetry::COMMIT),
    ];
    for (key, value) in expected {
        assert_eq!(start[key], value, "{start}");
    }
    assert_eq!(start["servers"], plane.address.to_string());
    has(&start["configuration"].to_string(), "begins.yaml\"");
    relay.line("ready: clients can be served");

    let client = Client::connect(relay.address).await;
    let mut stream: Delta = client.open(&wants("edge-1", "c", &[])).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    soon("a response", stream.message()).await;
    let came = parse(&relay.line("a stream begins"));
    drop((stream, client));
    let went = parse(&relay.line("a stream is over"));
    for line in [&came, &went] {
        assert_eq!([&line["level"], &line["node"]], ["DEBUG", "edge-1"], "{line}");
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    }
    assert_eq!((&came["dialect"], &came["stream"]), (&"delta".into(), &went["stream"]));
    for line in relay.seen() {
        let target = parse(&line)["target"].as_str().unwrap().to_owned();
        assert!(!target.starts_with("h2"), "{line}");
    }
}
