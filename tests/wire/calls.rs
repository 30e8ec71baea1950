// SPDX-License-Identifier: Apache-2.0
//! What a call must satisfy before a discovery stream begins, and the small services.

use distributary::proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use distributary::telemetry::RelayStatus;
use distributary::wire::message;
use distributary::xds::Dialect;
use flate2::read::GzDecoder;
use http::StatusCode;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::neighbours::packed;
use crate::support::client::{Call, Half};
use crate::support::messages::{Subscriber, sotw};
use crate::support::{ADS, CDS, Relay, path, raw, says, soon, spawn, until, wants_sotw};

const STREAM: &str = path(Dialect::Sotw);
const GRPC: (&str, &str) = ("content-type", "application/grpc");

fn request() -> DiscoveryRequest {
    wants_sotw(CDS, &[])
}

async fn body(call: &mut Call) -> String {
    let mut text = Vec::new();
    while let Some(part) = call.responses.data().await {
        text.extend_from_slice(&part.unwrap());
    }
    String::from_utf8(text).unwrap()
}

/// services that the relay does not serve answer UNIMPLEMENTED, and ADS on the same connection is not affected.
#[tokio::test]
async fn unknown_methods_do_not_disturb_discovery() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "first");
    let client = relay.connect().await;
    let mut ads = Subscriber::new(client.call(STREAM).await, Dialect::Sotw, CDS);
    ads.subscribe(&[]);
    assert_eq!(ads.take().await.bodies, ["first"]);
    for path in [
        "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
        "/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck",
        "/envoy.service.route.v3.ScopedRouteDiscoveryService/StreamScopedRoutes",
        "/envoy.service.discovery.v3.AggregatedDiscoveryService/Nothing",
        "/nowhere/Nothing",
        "/",
    ] {
        let mut call = client.call(path).await;
        // LRS clients keep sending reports whatever the answer is.
        call.send_bytes(vec![0; 1000]);
        let ended = call.end().await;
        assert_eq!(ended.code, 12, "{path}");
        assert!(!ended.message.is_empty());
        assert_eq!(call.head.status(), StatusCode::OK);
    }
    relay.put(CDS, &["a"], "second");
    assert_eq!(ads.take().await.bodies, ["second"]);
    relay.settles_at(1).await;
}

/// wrong or missing content-type is 415, as gRPC asks, but what codec a client names is its own business; a missing `te` is tolerated, a forbidden one is HTTP/2's business.
#[tokio::test]
async fn what_is_no_grpc_call_is_answered_in_http() {
    let relay = Relay::start();
    let client = relay.connect().await;
    let html = ("content-type", "text/html");
    #[rustfmt::skip]
    let rows = [
        ("GET", &[GRPC][..], StatusCode::METHOD_NOT_ALLOWED),
        ("POST", &[], StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("POST", &[html], StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("POST", &[("content-type", "application/grpc-web+proto")], StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("POST", &[("content-type", "application/grpcx")], StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ];
    for (verb, headers, status) in rows {
        let mut call = client.request(verb, STREAM, headers, Half::Closed).await.unwrap();
        assert_eq!(call.head.status(), status, "{verb} {headers:?}");
        assert!(body(&mut call).await.contains("gRPC"));
    }
    for headers in [
        &[GRPC][..],
        &[("content-type", "application/grpc+proto"), ("te", "trailers")],
        &[("content-type", "application/grpc+envoy-raw")],
        &[("content-type", "application/grpc+json")],
        &[("content-type", "application/grpc; charset=utf-8")],
    ] {
        let call = client.request("POST", STREAM, headers, Half::Open).await.unwrap();
        assert_eq!(call.head.status(), StatusCode::OK, "{headers:?}");
    }
    let (mut frames, mut write) = raw::connect(relay.port()).await;
    write.write_all(&raw::call(1, STREAM, &[("te", "gzip")])).await.unwrap();
    let reset = frames.next_of(raw::RESET).await;
    assert_eq!(raw::reason(&reset), h2::Reason::PROTOCOL_ERROR);
    drop((frames, write));
    relay.settles_at(0).await;
}

#[tokio::test]
async fn http_1_is_told_that_grpc_needs_http_2() {
    let relay = Relay::start();
    let post = format!(
        "POST {STREAM} HTTP/1.1\r\nhost: relay\r\ncontent-type: application/grpc\r\ncontent-length: 5\r\n\r\n\0\0\0\0\0"
    );
    for (bytes, status, words) in [
        (post.as_str(), "HTTP/1.1 505", "HTTP/2 with prior knowledge"),
        ("PRI? no\r\n\r\n", "HTTP/1.1 400", ""),
    ] {
        let mut socket = raw::socket(relay.port()).await;
        // In pieces, so that the deciding bytes do not come at once.
        for piece in bytes.as_bytes().chunks(3) {
            socket.write_all(piece).await.unwrap();
            socket.flush().await.unwrap();
        }
        let mut answer = String::new();
        soon("an answer", socket.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(status) && answer.contains(words), "{answer}");
    }
    let settled = || relay.open() == (0, 0);
    until(settled, || "connections stay").await;
}

/// gzip is accepted; any other encoding is answered with UNIMPLEMENTED and the list of what is accepted.
#[tokio::test]
async fn compressed_requests() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let packed = packed(&request().encode_to_vec());

    let mut call = client.call_with(STREAM, &[("grpc-encoding", "gzip")]).await;
    call.send_bytes(packed.clone());
    assert_eq!(sotw(call.next().await.unwrap()).bodies, ["body"]);

    let mut unannounced = client.call(STREAM).await;
    unannounced.send_bytes(packed);
    assert_eq!(unannounced.end().await.code, 13);

    for other in ["deflate", "zstd", "snappy"] {
        let mut call = client.call_with(STREAM, &[("grpc-encoding", other)]).await;
        assert_eq!(call.head.headers()["grpc-accept-encoding"], "identity,gzip");
        says(&call.end().await, Code::Unimplemented, other);
    }
    relay.settles_at(1).await;
}

/// only a relay that says so gets compressed responses, and no secrets in them. Clients that get the same share the compressed bytes.
#[tokio::test]
async fn compressed_responses() {
    const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
    const TAKES: (&str, &str) = ("grpc-accept-encoding", "identity, gzip");
    let content = "a body that many clusters have ".repeat(100);
    let relay = Relay::start();
    relay.put(CDS, &["a", "b"], &content);
    relay.put(CDS, &["c"], "short");
    relay.put(SDS, &["a"], &content);
    let client = relay.connect().await;
    #[rustfmt::skip]
    let rows = [
        (&[("user-agent", "distributary/0.1.0"), TAKES][..], CDS, &["a", "b"][..], true),
        (&[("user-agent", "distributary/0.1.0"), ("grpc-accept-encoding", "gzip")], CDS, &["a", "b"], true),
        (&[("user-agent", "distributary/0.1.0"), TAKES], CDS, &["c"], false),
        (&[("user-agent", "distributary/0.1.0"), TAKES], SDS, &["a"], false),
        (&[("user-agent", "distributary/0.1.0"), ("grpc-accept-encoding", "identity,gzipped")], CDS, &["a", "b"],
            false),
        (&[("user-agent", "distributary/0.1.0")], CDS, &["a", "b"], false),
        (&[("user-agent", "distributary-load/0.1.0"), TAKES], CDS, &["a", "b"], false),
        (&[("user-agent", "envoy/1.36"), TAKES], CDS, &["a", "b"], false),
        (&[TAKES], CDS, &["a", "b"], false),
        (&[], CDS, &["a", "b"], false),
    ];
    for (headers, kind, names, compressed) in rows {
        let mut call = client.call_with(STREAM, headers).await;
        call.send(&wants_sotw(kind, names));
        let announced = call.head.headers().get("grpc-encoding").is_some();
        let takes = headers.contains(&("user-agent", "distributary/0.1.0")) && headers.len() == 2;
        let (flag, message) = call.next_flagged().await.unwrap();
        assert_eq!(flag == 1, compressed, "{headers:?} {kind}");
        let wrong = !announced && (compressed || takes) && !headers[1].1.contains("gzipped");
        assert!(!wrong, "{headers:?}");
        let plain = if compressed {
            assert!(message.len() < content.len() / 4, "{} bytes", message.len());
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut GzDecoder::new(&*message), &mut plain).unwrap();
            plain
        } else {
            message.to_vec()
        };
        let response = sotw(DiscoveryResponse::decode(&*plain).unwrap());
        assert_eq!(response.bodies.len(), names.len());
    }
}

#[tokio::test]
async fn the_clients_deadline_holds() {
    let relay = Relay::start();
    let client = relay.connect().await;
    for (timeout, code) in [("0n", 4), ("1u", 4), ("100m", 4), ("1", 3), ("x", 3), ("123456789S", 3)] {
        let mut call = client.call_with(STREAM, &[("grpc-timeout", timeout)]).await;
        let ended = call.end().await;
        assert_eq!(ended.code, code, "{timeout}: {}", ended.message);
    }
    let mut call = client.call_with(STREAM, &[("grpc-timeout", "1H")]).await;
    call.send(&request());
    relay.put(CDS, &["a"], "body");
    assert_eq!(sotw(call.next().await.unwrap()).bodies, ["body"]);
    relay.settles_at(1).await;
}

/// Messages are read whole wherever the frames are cut.
#[tokio::test]
async fn frames_are_cut_anywhere() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let bytes = message(&request().encode_to_vec());

    let mut split = client.call(STREAM).await;
    for byte in &bytes {
        split.send_bytes(vec![*byte]);
    }
    assert_eq!(sotw(split.next().await.unwrap()).bodies, ["body"]);

    let mut together = client.call(STREAM).await;
    relay.put("type.googleapis.com/acme.A", &["x"], "other");
    let other = wants_sotw("type.googleapis.com/acme.A", &["x"]);
    let both: Vec<u8> = bytes.iter().copied().chain(message(&other.encode_to_vec())).collect();
    together.send_bytes(both);
    let mut got = Vec::new();
    for _ in 0..2 {
        got.push(sotw(together.next().await.unwrap()).bodies);
    }
    got.sort();
    assert_eq!(got, [["body"], ["other"]]);

    for cut in [1, 4, 5, bytes.len() - 1] {
        let mut broken = client.call(STREAM).await;
        broken.send_bytes(bytes.slice(..cut));
        broken.close_half();
        says(&broken.end().await, Code::InvalidArgument, "middle of a message");
    }
    relay.settles_at(2).await;
}

async fn check(relay: &Relay, service: &str) -> Result<i32, i32> {
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let mut call = relay
        .connect()
        .await
        .unary("/grpc.health.v1.Health/Check", &request)
        .await;
    let answer = call.next::<HealthCheckResponse>().await;
    answer.map(|answer| answer.status).map_err(|ended| ended.code)
}

#[tokio::test]
async fn health_is_that_of_the_relay() {
    let relay = Relay::start();
    for service in ["", ADS, "envoy.api.v2.ClusterDiscoveryService", "grpc.health.v1.Health"] {
        assert_eq!(check(&relay, service).await, Ok(1), "{service}");
    }
    assert_eq!(check(&relay, "acme.Unknown").await, Err(5));

    let client = relay.connect().await;
    let mut watches = Vec::new();
    for (service, first) in [(ADS, 1), ("acme.Unknown", 3)] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut call = client.unary("/grpc.health.v1.Health/Watch", &request).await;
        assert_eq!(call.next::<HealthCheckResponse>().await.unwrap().status, first);
        assert!(call.is_silent().await, "nothing has changed");
        watches.push(call);
    }
    relay.shared.health.advance(RelayStatus::Draining);
    assert_eq!(watches[0].next::<HealthCheckResponse>().await.unwrap().status, 2);
    assert_eq!(watches[0].end().await.code, 0);
    assert_eq!(watches[1].end().await.code, 0);
    assert_eq!(check(&relay, "").await, Ok(2));
}

/// however often a client pings, it is not disconnected.
#[tokio::test]
async fn pings_are_answered() {
    let relay = Relay::start();
    let socket = raw::socket(relay.port()).await;
    let (send, mut connection) = h2::client::handshake(socket).await.unwrap();
    let mut pings = connection.ping_pong().unwrap();
    let connection = spawn(async move { connection.await.unwrap() });
    for _ in 0..200 {
        soon("a pong", pings.ping(h2::Ping::opaque())).await.unwrap();
    }
    send.ready().await.unwrap();
    assert!(!connection.is_finished());
}

/// `call` returns when the response headers are there: they do not wait for the first message.
#[tokio::test]
async fn headers_come_before_anything_is_known() {
    let relay = Relay::start();
    let mut call = relay.connect().await.call(STREAM).await;
    call.send(&request());
    assert!(call.is_silent().await);
    relay.put(CDS, &["a"], "late");
    assert_eq!(sotw(call.next().await.unwrap()).bodies, ["late"]);
}
