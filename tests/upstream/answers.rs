// SPDX-License-Identifier: Apache-2.0
//! Answers that are wrong, too large or too many.

use bytes::{BufMut, Bytes, BytesMut};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;

use crate::plane::Plane;
use crate::{EDS, Relay, delta};

/// A message that cannot be decoded ends the stream; known resources stay, and the next stream repairs the rest (G-19).
#[tokio::test]
async fn garbage_all_over() {
    let (mut plane, relay, mut call) = Relay::with_a().await;
    call.send_bytes(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    assert!(relay.fails().await.contains("not readable"));
    assert_eq!(relay.known(EDS), "a=1");
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=2").await;
}

/// Bytes that are no gRPC frame.
#[tokio::test]
async fn no_grpc() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let mut call = plane.call().await;
    call.send_raw(Bytes::from_static(b"<html>It works!</html>"));
    relay.fails().await;
    plane.call().await;
}

/// answers of 64 MiB are taken, and a small resource in one does not keep it in memory.
#[tokio::test]
async fn a_very_large_answer() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "large0"), (EDS, "small")]);
    let mut call = plane.call().await;
    call.delta().await;
    let large = |number: usize| Resource {
        name: format!("large{number}"),
        resource: Some(Any {
            type_url: EDS.to_owned(),
            value: Bytes::from(vec![b'='; 1024 * 1024]),
        }),
        ..Resource::default()
    };
    let mut response: DeltaDiscoveryResponse = delta(EDS, "n1", &["small=1"], &[]);
    response.resources.extend((0..63).map(large));
    call.send(&response);
    relay.knows(EDS, "large0= small=1").await;
    let slot = relay.view.cut().slot(&xds::TypeUrl::new(EDS)).unwrap().clone();
    assert!(slot.named.bytes() < 3 * 1024 * 1024, "only what was asked for is kept");
    assert_eq!(call.delta().await.response_nonce, "n1");
}

/// an answer over the limit ends the stream, and the error names the limit's key.
#[tokio::test]
async fn an_answer_beyond_the_limit() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| plan.upstream_message = 100_000);
    let mut call = plane.call().await;
    call.delta().await;
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(100_001);
    frame.put_bytes(0, 1000);
    call.send_raw(frame.freeze());
    let error = relay.fails().await;
    assert!(
        error.contains("100001") && error.contains("`limits.upstream_message`"),
        "{error}"
    );
    // It never answered, so it counts as a failure (G-02).
    assert_eq!(relay.metrics.failures.get(), 1);
}

/// E-13: of an answer with very many tiny entries the end is rejected before it is judged. What was known stays, and the stream
/// goes on.
#[tokio::test]
async fn an_answer_of_tiny_entries() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a"), (EDS, "b")], |plan| {
        plan.upstream_message = 100_000;
    });
    let mut call = plane.call().await;
    while call.delta().await.resource_names_subscribe.last().map(String::as_str) != Some("b") {}
    call.send(&delta(EDS, "n1", &["a=1", "b=1"], &[]));
    relay.knows(EDS, "a=1 b=1").await;
    let mut response: DeltaDiscoveryResponse = delta(EDS, "n2", &["a=2"], &[]);
    response.resources.resize(10_000, Resource::default());
    response.resources.extend(delta(EDS, "", &["b=2"], &[]).resources);
    call.send(&response);
    relay.knows(EDS, "a=2 b=1").await;
    let refused = loop {
        let request = call.delta().await;
        if request.response_nonce == "n2" {
            break request.error_detail.unwrap().message;
        }
    };
    assert!(refused.contains("`limits.upstream_message`"), "{refused}");
    call.send(&delta(EDS, "n3", &["b=3"], &[]));
    relay.knows(EDS, "a=2 b=3").await;
}
