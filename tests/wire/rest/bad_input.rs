// SPDX-License-Identifier: Apache-2.0
//! Polls that no well-behaved client sends: each is refused with an error text, and the relay goes on serving.

use std::time::Duration;

use distributary::xds::{TypeUrl, Update};

use super::{CLUSTERS, hold, put};
use crate::support::client::Half;
use crate::support::polls::{Answer, Poller, request};
use crate::support::{CDS, Relay, resource, until};

const JSON: (&str, &str) = ("content-type", "application/json");

fn refused(answer: &Answer, status: u16, word: &str) {
    assert_eq!(answer.status, status, "{word}: {answer:?}");
    let json = answer.json();
    assert_eq!(json["status"], status);
    assert!(json["error"].as_str().unwrap().contains(word), "{word}: {json}");
    answer.has("content-type: application/json");
}

async fn poll(relay: &Relay, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    Poller::connect(relay.port()).await.post(path, headers, body).await
}

fn relay() -> Relay {
    let relay = Relay::with(hold(Duration::from_millis(50)));
    put(&relay, CDS, &["a"], 1);
    relay
}

/// H-01, H-03: other paths are not found, other verbs are not allowed.
#[tokio::test]
async fn paths_and_verbs() {
    let relay = relay();
    for path in [
        "/v3/discovery:virtual_hosts",
        "/v3/discovery:cluster",
        "/v3/discovery:",
        "/v3/",
        "/v2/discovery:extension_configs",
        "/v3/discovery:clusters/",
    ] {
        refused(&poll(&relay, path, &[JSON], b"{}").await, 404, "cannot be polled");
    }
    let client = relay.connect().await;
    let call = client.request("GET", CLUSTERS, &[], Half::Closed).await.unwrap();
    assert_eq!(call.head.status(), 405);
    assert_eq!(call.head.headers()["allow"], "POST");
    let mut poller = Poller::connect(relay.port()).await;
    let head = b"GET /v3/discovery:clusters HTTP/1.1\r\nhost: relay\r\n\r\n";
    poller.write(head).await;
    refused(&poller.answer().await, 405, "POST");
    let off = Relay::with(|plan| plan.settings.transport_v2 = false);
    let answer = poll(&off, "/v2/discovery:clusters", &[JSON], b"{}").await;
    refused(&answer, 404, "transport_v2");
}

/// H-02: a body that cannot be parsed is answered with 400 and the place of the error.
#[tokio::test]
async fn bodies() {
    let relay = relay();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_node = format!(r#"{{"node":{{"id":"x","metadata":{{"a":{deep}}}}}}}"#);
    let own = br#"{"node":{"id":"x","metadata":{"distributary.relays":["relay"]}}}"#;
    let double = r#"{"node":{"id":"x"},"node":{"id":"y"}}"#;
    for (body, word) in [
        (&b""[..], "the body is empty"),
        (b"{", "1:"),
        (b"[]", "1:1"),
        (b"null", "found null"),
        (b"{}", "node"),
        (b"{\"node\":5}", "node"),
        (b"{\"node\":{\"id\":\"\xff\"}}", "UTF-8"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "UTF-8"),
        (deep.as_bytes(), "nested"),
        (deep_node.as_bytes(), "nested"),
        (double.as_bytes(), "node"),
        (own, "loop"),
    ] {
        refused(&poll(&relay, CLUSTERS, &[JSON], body).await, 400, word);
    }
    // B-32: an empty name is one that does not exist.
    let empty = br#"{"node":{"id":"x"},"resource_names":[""]}"#;
    assert_eq!(poll(&relay, CLUSTERS, &[JSON], empty).await.status, 200);
    // J-05: unknown fields of a request are ignored.
    let unknown = br#"{"node":{"id":"x","nodule":1},"x":[{}]}"#;
    assert_eq!(poll(&relay, CLUSTERS, &[JSON], unknown).await.status, 200);
    assert_eq!(poll(&relay, CLUSTERS, &[], unknown).await.status, 200);
}

#[tokio::test]
async fn what_is_no_json() {
    let relay = relay();
    let body = request("", &[]);
    for kind in [
        "text/plain",
        "application/grpc",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ] {
        let answer = poll(&relay, CLUSTERS, &[("content-type", kind)], body.as_bytes()).await;
        refused(&answer, 415, kind);
    }
    let gzip = poll(&relay, CLUSTERS, &[JSON, ("content-encoding", "gzip")], b"\x1f\x8b").await;
    refused(&gzip, 415, "gzip");
}

/// K-21: a request that is too large is refused before the relay buffers it, also one without a content length.
#[tokio::test]
async fn too_large() {
    let relay = relay();
    let mut poller = Poller::connect(relay.port()).await;
    let length = 100 << 20;
    let head = format!("POST {CLUSTERS} HTTP/1.1\r\nhost: relay\r\ncontent-length: {length}\r\n\r\n");
    poller.write(head.as_bytes()).await;
    refused(&poller.answer().await, 413, "limits.request");

    let small = Relay::with(|plan| {
        plan.settings.limits.request = 1 << 20;
        plan.settings.limits.node_bytes = 1000;
        plan.protocol.limits.names_per_stream = 10;
    });
    let mut poller = Poller::connect(small.port()).await;
    let head = format!("POST {CLUSTERS} HTTP/1.1\r\nhost: relay\r\ntransfer-encoding: chunked\r\n\r\n");
    poller.write(head.as_bytes()).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..100 {
        if !poller.write(chunk.as_bytes()).await {
            break;
        }
    }
    refused(&poller.answer().await, 413, "limits.request");

    let names: Vec<String> = (0..11).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let answer = poll(&small, CLUSTERS, &[JSON], request("", &names).as_bytes()).await;
    refused(&answer, 413, "names_per_stream");
    let node = format!(r#"{{"node":{{"id":"{}"}}}}"#, "x".repeat(2000));
    let answer = poll(&small, CLUSTERS, &[JSON], node.as_bytes()).await;
    refused(&answer, 413, "node_bytes");
}

/// The relay does not wait for a body without an end, and such bodies do not keep other clients out.
#[tokio::test]
async fn without_an_end() {
    let relay = relay();
    let mut endless = Vec::new();
    // More than the number of large requests that are read at the same time.
    for _ in 0..6 {
        let mut poller = Poller::connect(relay.port()).await;
        let head = format!("POST {CLUSTERS} HTTP/1.1\r\nhost: relay\r\ntransfer-encoding: chunked\r\n\r\n");
        poller.write(head.as_bytes()).await;
        let chunk = format!("40000\r\n{}\r\n", " ".repeat(0x40000));
        poller.write(chunk.as_bytes()).await;
        endless.push(poller);
    }
    let mut good = Poller::connect(relay.port()).await;
    assert_eq!(good.poll(CLUSTERS, &request("", &[])).await.status, 200);
    tokio::time::pause();
    for poller in &mut endless {
        refused(&poller.answer().await, 408, "within 10s");
    }
    tokio::time::resume();
    drop((good, endless));
    until(|| relay.open() == (0, 0), || "connections stay").await;
}

/// J-04: a resource that cannot be written as JSON makes its poll fail, and nothing else.
#[tokio::test]
async fn what_cannot_be_written() {
    let relay = relay();
    let kind = TypeUrl::new(CDS);
    // Field 1 is the name; 36 holds extensions by name, here one of an unknown type.
    let body = b"\x0a\x01b\xa2\x02\x21\x0a\x01k\x12\x1c\x0a\x1atype.googleapis.com/x.Nobo";
    relay.publish(&kind, vec![Update::Put(resource(&kind, "b", body), None)]);
    let answer = poll(&relay, CLUSTERS, &[JSON], request("", &[]).as_bytes()).await;
    refused(&answer, 500, "x.Nobo");
    let answer = poll(&relay, CLUSTERS, &[JSON], request("", &["a"]).as_bytes()).await;
    assert_eq!(answer.says().1, ["a"]);
}
