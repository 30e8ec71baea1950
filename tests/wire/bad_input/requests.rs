// SPDX-License-Identifier: Apache-2.0
//! Requests with invalid content.

use super::*;

#[tokio::test]
async fn garbage_and_truncated_protobuf() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let good = encoded(dialect, CDS, vec!["a".repeat(300)]);
        refused(&world, dialect, &good[..good.len() - 1], 3, "protobuf").await;
        refused(&world, dialect, &[0xff; 64], 3, "protobuf").await;
        // Valid wire format, but a name that is not UTF-8, and a node that is not a message.
        refused(&world, dialect, &[0x1a, 1, 0xff], 3, "decoded").await;
        let node_field = if dialect == Dialect::Sotw { 0x12 } else { 0x0a };
        refused(&world, dialect, &[node_field, 2, 0x0a, 200], 3, "decoded").await;
    }
    world.is_unharmed().await;
}

/// A-03, B-01.
#[tokio::test]
async fn requests_that_do_not_say_what_they_must() {
    let mut world = World::new().await;
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, "", Vec::new()),
            3,
            "type_url is empty",
        )
        .await;
    }
    let anonymous = DiscoveryRequest {
        node: None,
        ..sotw_request(CDS, Vec::new())
    }
    .encode_to_vec();
    refused(&world, Dialect::Sotw, &anonymous, 3, "node").await;
    let anonymous = DeltaDiscoveryRequest {
        node: None,
        ..delta_request(CDS, Vec::new())
    }
    .encode_to_vec();
    refused(&world, Dialect::Delta, &anonymous, 3, "node").await;
    let clusters = "/envoy.service.cluster.v3.ClusterDiscoveryService";
    for (method, dialect) in [("StreamClusters", Dialect::Sotw), ("DeltaClusters", Dialect::Delta)] {
        for other in [EDS, "type.googleapis.com/acme.Unknown"] {
            let mut call = world.client.call(&format!("{clusters}/{method}")).await;
            call.send_bytes(message(&encoded(dialect, other, Vec::new())));
            let Ended { code, message, .. } = call.end().await;
            assert_eq!(code, 3);
            assert!(
                message.contains(other) && message.contains("Cluster service"),
                "{message}"
            );
        }
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
        assert_eq!(ended.code, 8);
        assert!(
            ended.message.contains("limits.request") && ended.message.contains("16777216"),
            "{}",
            ended.message
        );
        refused(
            &world,
            dialect,
            &encoded(dialect, CDS, vec!["x".repeat(17 << 20)]),
            8,
            "limits.request",
        )
        .await;
    }
    world.is_unharmed().await;
}

/// F-01: a name is any text.
#[tokio::test]
async fn strange_names() {
    let mut world = World::new().await;
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, &"t".repeat(1 << 20), Vec::new()),
            8,
            "`name_bytes`",
        )
        .await;
        let strange = "\0*\u{202e}\n\"'%s\u{1F980}";
        let mut subscriber = world.subscriber(dialect, EDS).await;
        subscriber.subscribe(&[strange]);
        world.relay.put(EDS, &[strange], "found");
        assert_eq!(subscriber.take().await.bodies, ["found"]);
    }
    world.is_unharmed().await;
}

/// B-32: a slip in one name takes nothing else; each is counted.
#[tokio::test]
async fn a_slip_in_one_name() {
    let mut world = World::new().await;
    let long = "x".repeat(4 << 20);
    world.relay.put(EDS, &["good"], "0");
    for dialect in BOTH {
        let mut subscriber = world.subscriber(dialect, EDS).await;
        subscriber.subscribe(&["", &long, "xdstp:bad", "good"]);
        let got = subscriber.take().await;
        assert_eq!(got.bodies.len(), 1);
        let gone: &[&str] = match dialect {
            Dialect::Sotw => &[],
            Dialect::Delta => &["", &long],
        };
        assert_eq!(got.removed, gone);
        let body = format!("{dialect:?}");
        world.relay.put(EDS, &["good"], &body);
        assert_eq!(subscriber.take().await.bodies, [body]);
    }
    let shown = world.relay.shared.metrics.encode().unwrap();
    // A SotW client repeats its names in each request.
    for fault in ["empty\"} 2", "malformed\"} 2"] {
        let line = format!("distributary_name_faults_total{{fault=\"{fault}");
        assert!(shown.contains(&line), "no {line} in {shown}");
    }
    let long = shown
        .lines()
        .find_map(|line| line.strip_prefix("distributary_name_faults_total{fault=\"long\"} "));
    assert!(long.is_some_and(|count| count != "0"), "{long:?} in {shown}");
    world.is_unharmed().await;
}

/// `limits.names_per_stream`: a million names are too many, also if all of them are empty.
#[tokio::test]
async fn a_million_empty_names() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let request = encoded(dialect, EDS, vec![String::new(); 1_000_000]);
        refused(&world, dialect, &request, 8, "limits.names_per_stream").await;
    }
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
    let request = DiscoveryRequest {
        node: node.clone(),
        ..sotw_request(CDS, Vec::new())
    };
    refused(&world, Dialect::Sotw, &request.encode_to_vec(), 8, "`node_bytes`").await;
    let request = DeltaDiscoveryRequest {
        node,
        ..delta_request(CDS, Vec::new())
    };
    refused(&world, Dialect::Delta, &request.encode_to_vec(), 8, "`node_bytes`").await;
    world.is_unharmed().await;
}

/// B-05, B-08, B-25, C-03: a request with a nonce of another stream is neither ACK nor NACK, but its subscriptions count.
#[tokio::test]
async fn foreign_nonces_and_acks_of_nothing() {
    let mut world = World::new().await;
    world.relay.put(EDS, &["a", "b"], "body");
    for dialect in BOTH {
        let mut other = world.subscriber(dialect, EDS).await;
        other.subscribe(&["a"]);
        let foreign = other.take().await;

        let mut subscriber = world.subscriber(dialect, EDS).await;
        subscriber.nonce.clone_from(&foreign.nonce);
        subscriber.version.clone_from(&foreign.version);
        // Before any response: it is the first request of the stream, whatever its nonce is.
        subscriber.subscribe(&["a"]);
        assert_eq!(subscriber.take().await.bodies, ["body"], "{dialect:?}");
        subscriber.nonce.clone_from(&foreign.nonce);
        subscriber.nack("not mine");
        subscriber.subscribe(&["b"]);
        let got = subscriber.take().await;
        assert!(!got.bodies.is_empty(), "{dialect:?}");
        assert_eq!(got.nonce[..8], subscriber.nonce[..8]);
        assert_ne!(got.nonce[..8], foreign.nonce[..8], "prefixes differ between streams");
    }
    let mut ack = world.call(Dialect::Delta).await;
    let request = DeltaDiscoveryRequest {
        response_nonce: "00000000-1".to_owned(),
        ..delta_request(EDS, Vec::new())
    };
    ack.send(&request);
    assert!(ack.is_silent().await);
    drop(ack);
    world.is_unharmed().await;
    let nacks = world.relay.shared.metrics.of(&TypeUrl::new(EDS)).nacks.get();
    assert_eq!(nacks, 0, "a foreign nonce rejects nothing");
}

/// B-01: the node of the first request counts.
#[tokio::test]
async fn a_node_that_changes() {
    let mut world = World::with(by_cluster).await;
    let mut call = world.call(Dialect::Sotw).await;
    world.relay.put(EDS, &["a"], "of the default class");
    let first = Node {
        cluster: "one".to_owned(),
        ..node()
    };
    call.send(&DiscoveryRequest {
        node: Some(first),
        ..sotw_request(EDS, vec!["a".to_owned()])
    });
    assert!(call.is_silent().await, "another class than that of the empty cluster");
    let views = world.relay.shared.scopes.all().len();
    for n in 0..100 {
        let changed = Node {
            cluster: format!("other{n}"),
            ..node()
        };
        call.send(&DiscoveryRequest {
            node: Some(changed),
            ..sotw_request(EDS, vec!["a".to_owned()])
        });
    }
    assert!(call.is_silent().await);
    assert_eq!(world.relay.shared.scopes.all().len(), views);
    drop(call);
    let mut call = world.call(Dialect::Sotw).await;
    call.send(&sotw_request(EDS, vec!["a".to_owned()]));
    assert_eq!(sotw(call.next().await.unwrap()).bodies, ["of the default class"]);
    drop(call);
    world.is_unharmed().await;
}
