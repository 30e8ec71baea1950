// SPDX-License-Identifier: Apache-2.0
//! How streams and connections end, and what follows.

use distributary::upstream::{StreamPhase, StreamStatus};
use h2::Reason;
use peers::request::framed;
use tonic::Code;

use crate::plane::{Call, Plane};
use crate::{CDS, EDS, Relay, delta, ms, now, sotw};

/// GOAWAY in the middle of an answer: the relay drops the part, and the next stream brings the whole.
#[tokio::test]
async fn go_away_in_the_middle_of_an_answer() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*")]);
    let mut call = plane.call().await;
    call.delta().await;
    let message = framed(&delta(CDS, "n1", &["a=1", "b=1"], &[]));
    call.send_raw(message.slice(..message.len() / 2));
    call.go_away(Reason::NO_ERROR).await;
    // E-23: the stream was not answered, so the next one uses the other dialect.
    let mut call = plane.call().await;
    assert_eq!(relay.known(CDS), "");
    call.sotw().await;
    call.send(&sotw(CDS, "1", "n1", &["a=1", "b=1"]));
    relay.knows(CDS, "a=1 b=1 complete").await;
}

/// A GOAWAY without an error lets the stream run until the server ends it.
#[tokio::test]
async fn a_polite_go_away() {
    let (mut plane, relay, mut call) = Relay::with_a().await;
    call.drain().await;
    call.send(&delta(EDS, "n2", &["a=2"], &[]));
    relay.knows(EDS, "a=2").await;
    call.finish(Code::Unavailable, "max age");
    let mut call = plane.call().await;
    assert_eq!(
        call.delta()
            .await
            .initial_resource_versions
            .get("a")
            .map(String::as_str),
        Some("unknown")
    );
}

/// E-14, L-22c: a stream that is closed before any response is a failure, with growing pauses and an error text for the operator.
#[tokio::test]
async fn closed_before_any_response() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let mut last = now();
    for (round, least) in [0, 800, 1280].into_iter().enumerate() {
        plane.call().await.finish(Code::Unavailable, "no capacity");
        // E-23: then a stream in the other dialect, at once.
        let call = plane.call().await;
        assert!(
            last.elapsed() >= ms(least),
            "attempt {round} after {:?}",
            last.elapsed()
        );
        last = now();
        call.finish(Code::Unavailable, "no capacity");
        let attempts = u64::try_from(round).unwrap() + 1;
        relay
            .status("a failure", |status| {
                status.phase == StreamPhase::Waiting && relay.metrics.failures.get() == attempts
            })
            .await;
    }
    let status = relay.status("words", |status| status.error.is_some()).await;
    assert!(status.error.unwrap().contains("no capacity"));
    assert_eq!(relay.known(EDS), "");
}

/// E-15, L-22a, G-02: a server that closes each stream after one response is no failure, but is asked at most once a second;
/// nothing is lost.
#[tokio::test]
async fn closed_after_one_response() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let mut last = None;
    for _ in 0..3 {
        let mut call = plane.call().await;
        assert!(last.is_none_or(|last: std::time::Instant| last.elapsed() >= ms(990)));
        relay.takes(&mut call, "a=1").await;
        last = Some(now());
        call.finish(Code::Ok, "");
        relay
            .status("a pause", |status| status.phase == StreamPhase::Waiting)
            .await;
        assert_eq!(relay.known(EDS), "a=1");
    }
    assert_eq!(relay.metrics.failures.get(), 0);
}

/// A stream whose first response cannot be read never counted as one that works, so its end takes nothing from those that do.
#[tokio::test]
async fn an_unreadable_first_response_takes_nothing_from_other_streams() {
    let (mut plane, relay, _call) = Relay::with_a().await;
    let other = relay.beside(&[(EDS, "b")]);
    let mut call = plane.call().await;
    call.delta().await;
    call.send_bytes(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    other.fails().await;
    let numbers = relay.all.encode().unwrap();
    let connected = "distributary_upstream_connected{server=\"cp\"} 1";
    assert!(numbers.lines().any(|line| line == connected), "{numbers}");
}

/// UNAUTHENTICATED is an error with a clear text, and the relay retries later.
#[tokio::test]
async fn unauthenticated() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    plane.call().await.finish(Code::Unauthenticated, "who are you?");
    let error = relay.fails().await;
    assert!(error.contains("UNAUTHENTICATED: who are you?"), "{error}");
    plane.call().await;
}

/// HTTP/2 keepalive notices a server that has vanished; known resources stay.
#[tokio::test]
async fn half_open() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| plan.keepalive = ms(200));
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    call.freeze().await;
    let mut call = plane.call().await;
    assert_eq!(relay.known(EDS), "a=1");
    relay.takes(&mut call, "a=2").await;
}

const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// A relay whose server has complained of too many pings, and has answered again.
async fn calmed(mut plane: Plane) -> (Plane, Relay, Call) {
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| plan.keepalive = ms(500));
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    call.go_away(Reason::ENHANCE_YOUR_CALM).await;
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=2").await;
    (plane, relay, call)
}

/// A-12, with the relay as the client: a server that complains about too many pings is asked by calls instead, which it need not know, and
/// one that hangs is noticed as soon as by pings.
#[tokio::test]
async fn too_many_pings() {
    let (mut plane, relay, call) = calmed(Plane::start().await).await;
    for _ in 0..3 {
        let question = plane.call().await;
        assert_eq!(question.path, HEALTH);
        question.finish(Code::Unimplemented, "unknown service grpc.health.v1.Health");
    }
    assert_eq!(relay.known(EDS), "a=2");
    call.freeze().await;
    let hangs = |status: &StreamStatus| {
        let error = status.error.as_deref().unwrap_or_default();
        error.contains("has said nothing since ") && error.contains(" and does not answer calls")
    };
    relay
        .status("the end", |status| {
            status.phase == StreamPhase::Waiting && hangs(status)
        })
        .await;
    let mut call = plane.call().await;
    assert_ne!(call.path, HEALTH);
    relay.takes(&mut call, "a=3").await;
}

/// A server that allows one stream at a time cannot be asked, and is not taken for one that hangs.
#[tokio::test]
async fn too_many_pings_and_one_stream() {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(1);
    let (mut plane, relay, mut call) = calmed(Plane::with(builder).await).await;
    tokio::time::sleep(ms(2500)).await;
    assert!(plane.has_call().is_none(), "it is asked anew");
    call.send(&delta(EDS, "n2", &["a=3"], &[]));
    relay.knows(EDS, "a=3").await;
}
