// SPDX-License-Identifier: Apache-2.0
//! Requests with invalid content.

use super::*;

const BAD: Code = Code::InvalidArgument;
const MUCH: Code = Code::ResourceExhausted;

#[tokio::test]
async fn garbage_and_truncated_protobuf() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let good = encoded(dialect, CDS, &[&"a".repeat(300)]);
        refused(&world, dialect, &good[..good.len() - 1], BAD, "protobuf").await;
        refused(&world, dialect, &[0xff; 64], BAD, "protobuf").await;
        // Valid wire format, but a name that is not UTF-8, and a node that is not a message.
        refused(&world, dialect, &[0x1a, 1, 0xff], BAD, "decoded").await;
        let node_field = if dialect == Dialect::Sotw { 0x12 } else { 0x0a };
        refused(&world, dialect, &[node_field, 2, 0x0a, 200], BAD, "decoded").await;
    }
    world.is_unharmed().await;
}

/// `limits.request`: a request that is too large is refused by its length prefix, before the relay buffers anything.
#[tokio::test]
async fn a_request_of_17_mib() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let mut call = world.call(dialect).await;
        call.send_bytes(vec![0, 1, 0x10, 0, 0]);
        let ended = call.end().await;
        says(&ended, MUCH, "limits.request");
        says(&ended, MUCH, "16777216");
        let large = encoded(dialect, CDS, &[&"x".repeat(17 << 20)]);
        refused(&world, dialect, &large, MUCH, "limits.request").await;
    }
    world.is_unharmed().await;
}

/// B-32: a slip in one name takes nothing else; each is counted. A type that is too long ends the stream.
#[tokio::test]
async fn a_slip_in_one_name() {
    let mut world = World::new().await;
    let long = "x".repeat(4 << 20);
    let strange = "\0*\u{202e}\n\"'%s\u{1F980}";
    world.relay.put(EDS, &["good", strange], "0");
    for dialect in BOTH {
        let type_url = encoded(dialect, &"t".repeat(1 << 20), &[]);
        refused(&world, dialect, &type_url, MUCH, "`name_bytes`").await;
        let mut subscriber = world.client.subscriber(dialect, EDS).await;
        subscriber.subscribe(&["", &long, "xdstp:bad", strange, "good"]);
        let got = subscriber.take().await;
        assert_eq!(got.bodies.len(), 2);
        let gone: &[&str] = match dialect {
            Dialect::Sotw => &[],
            Dialect::Delta => &["", &long],
        };
        assert_eq!(got.removed, gone);
        let body = format!("{dialect:?}");
        world.relay.put(EDS, &["good", strange], &body);
        assert_eq!(subscriber.take().await.bodies, [body.clone(), body]);
    }
    let shown = world.relay.shared.metrics.encode().unwrap();
    // A SotW client repeats its names in each request.
    for fault in ["empty", "malformed"] {
        world.relay.shows(&format!("name_faults_total{{fault=\"{fault}\"}} 2"));
    }
    let long = shown
        .lines()
        .find_map(|line| line.strip_prefix("distributary_name_faults_total{fault=\"long\"} "));
    assert!(long.is_some_and(|count| count != "0"), "{long:?} in {shown}");
    world.is_unharmed().await;
}

#[tokio::test]
async fn a_mebibyte_of_node() {
    let mut world = World::new().await;
    let text = Value {
        kind: Some(Kind::StringValue("x".repeat(1 << 20))),
    };
    let metadata = Struct {
        fields: [("key".to_owned(), text)].into(),
    };
    let node = Some(Node {
        metadata: Some(metadata),
        ..node()
    });
    let mut request = wants_sotw(CDS, &[]);
    request.node.clone_from(&node);
    refused(&world, Dialect::Sotw, &request.encode_to_vec(), MUCH, "`node_bytes`").await;
    let mut request = wants(CDS, &[]);
    request.node = node;
    refused(&world, Dialect::Delta, &request.encode_to_vec(), MUCH, "`node_bytes`").await;
    world.is_unharmed().await;
}
