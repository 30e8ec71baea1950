// SPDX-License-Identifier: Apache-2.0
//! E-23: control planes that do not answer in the dialect of the request.

use std::time::Duration;

use distributary::config::Transport;
use distributary::protocol::Why;
use distributary::upstream::StreamPhase;
use futures_util::future::join_all;
use h2::Reason;
use tonic::Code;

use crate::dialects::{DELTA, SOTW};
use crate::plane::{Call, Plane};
use crate::{EDS, Relay, ms, now, sotw};

/// How a control plane ends a stream that it has not answered.
#[derive(Clone, Copy, Debug)]
enum End {
    Status(Code),
    Reset,
    Lost,
}

async fn end(call: Call, how: End) {
    match how {
        End::Status(code) => call.finish(code, "not implemented"),
        End::Reset => call.reset(Reason::INTERNAL_ERROR),
        End::Lost => call.go_away(Reason::INTERNAL_ERROR).await,
    }
}

/// Ends a delta stream without an answer, in this way: a stream in state of the world follows at once, is answered, and ends.
/// Returns the path of the next stream.
async fn refuses_delta(how: End) -> String {
    // A busy machine may be slow now and then.
    for _ in 0..5 {
        let (took, path) = refuses_once(how).await;
        if took < ms(700) {
            return path;
        }
    }
    panic!("{how:?}: there is a pause");
}

/// The same once, and how long it took until the other stream.
async fn refuses_once(how: End) -> (Duration, String) {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let call = plane.call().await;
    assert_eq!(call.path, DELTA, "{how:?}");
    let refused = now();
    end(call, how).await;
    let mut call = plane.call().await;
    assert_eq!(call.path, SOTW, "{how:?}");
    let took = refused.elapsed();
    relay.takes(&mut call, "a=1").await;
    assert_eq!(relay.metrics.failures.get(), 0, "{how:?} is no failure of the server");
    let status = relay
        .status("an answer", |status| status.phase == StreamPhase::Answering)
        .await;
    let (reason, words) = match status.why {
        Some(Why::Refused(words)) => ("refused", words),
        Some(Why::Unanswered(words)) => ("unanswered", words),
        other => panic!("{how:?}: {other:?}"),
    };
    assert!(!words.is_empty());
    let counted = format!("distributary_upstream_streams{{server=\"cp\",dialect=\"sotw\",reason=\"{reason}\"}} 1");
    let numbers = relay.all.encode().unwrap();
    assert!(numbers.contains(&counted), "{counted} is missing in\n{numbers}");
    call.finish(Code::Ok, "");
    (took, plane.call().await.path)
}

/// E-23: after a definite refusal the relay keeps to the dialect that was answered.
#[tokio::test]
async fn a_clear_refusal_decides() {
    let codes = [
        Code::Ok,
        Code::Unknown,
        Code::Internal,
        Code::InvalidArgument,
        Code::Unimplemented,
    ];
    let paths = join_all(codes.map(|code| refuses_delta(End::Status(code)))).await;
    assert_eq!(paths, codes.map(|_| SOTW));
}

/// E-23: after an error that may be temporary the next stream tries delta first.
#[tokio::test]
async fn what_may_pass_decides_for_one_stream() {
    let ends = [
        End::Status(Code::Unavailable),
        End::Status(Code::ResourceExhausted),
        End::Status(Code::DeadlineExceeded),
        End::Status(Code::Cancelled),
        End::Reset,
        End::Lost,
    ];
    let paths = join_all(ends.map(refuses_delta)).await;
    assert_eq!(paths, ends.map(|_| DELTA));
}

/// E-23: a server that rejects the relay's credentials is not asked in the other dialect.
#[tokio::test]
async fn who_is_denied_alternates_nothing() {
    let denied = async |code| {
        let mut plane = Plane::start().await;
        let relay = Relay::of(&plane, &[(EDS, "a")]);
        for attempt in 0..2 {
            let call = plane.call().await;
            assert_eq!(call.path, DELTA, "{code:?}");
            assert_eq!(relay.metrics.failures.get(), attempt, "{code:?}");
            call.finish(code, "who are you?");
        }
    };
    join_all([Code::Unauthenticated, Code::PermissionDenied].map(denied)).await;
}

/// E-23: a control plane that answered delta once and then refuses it.
#[tokio::test]
async fn delta_is_refused_after_it_was_answered() {
    let (mut plane, relay, call) = Relay::with_a().await;
    call.finish(Code::Ok, "");
    let call = plane.call().await;
    assert_eq!(call.path, DELTA);
    call.finish(Code::Unknown, "not any more");
    for round in 2..4 {
        let mut call = plane.call().await;
        assert_eq!(call.path, SOTW);
        call.sotw().await;
        call.send(&sotw(EDS, "v", "n1", &[&format!("a={round}")]));
        relay.knows(EDS, &format!("a={round}")).await;
        call.finish(Code::Ok, "");
    }
    assert_eq!(relay.metrics.failures.get(), 0);
}

/// E-23, G-02: a refusal in both dialects is a failure, and the error has both messages; then delta is tried first.
#[tokio::test]
async fn both_are_refused() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    plane.call().await.finish(Code::Internal, "no delta");
    let call = plane.call().await;
    assert_eq!(call.path, SOTW);
    call.finish(Code::Unavailable, "no capacity");
    let status = relay
        .status("a failure", |status| status.phase == StreamPhase::Waiting)
        .await;
    let error = status.error.unwrap();
    for words in [
        "DeltaAggregatedResources",
        "no delta",
        "StreamAggregatedResources",
        "no capacity",
    ] {
        assert!(error.contains(words), "{words} is missing in {error}");
    }
    assert!(status.next_attempt > Some(now()));
    assert_eq!(plane.call().await.path, DELTA);
    assert_eq!(relay.metrics.failures.get(), 1);
}

/// A server that implements neither dialect is told of with its own words: the admin address of a relay says there what it is.
#[tokio::test]
async fn neither_dialect_is_implemented() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |_| ());
    for dialect in [DELTA, SOTW] {
        let call = plane.call().await;
        assert_eq!(call.path, dialect);
        call.finish(Code::Unimplemented, "this is no xDS port");
    }
    let words = "the server implements neither DeltaAggregatedResources nor StreamAggregatedResources: this is no xDS port; \
                 is it an xDS server?";
    assert_eq!(relay.fails().await, words);
}

/// if state of the world is configured, the relay does not try delta.
#[tokio::test]
async fn what_is_configured_is_not_left() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.transport = Transport::Sotw
    });
    for attempt in 0..2 {
        let call = plane.call().await;
        assert_eq!(call.path, SOTW);
        assert_eq!(relay.metrics.failures.get(), attempt);
        call.finish(Code::Unimplemented, "no ADS here");
    }
    let status = relay.status("a reason", |status| status.why.is_some()).await;
    assert_eq!(status.why, Some(Why::Configured));
}

/// E-04, E-23: after a failed attempt in the other dialect, the next stream still declares the versions from the first dialect.
#[tokio::test]
async fn versions_outlive_an_attempt_in_the_other_dialect() {
    let (mut plane, _relay, call) = Relay::with_a().await;
    call.finish(Code::Ok, "");
    plane.call().await.finish(Code::Unavailable, "a restart");
    let mut call = plane.call().await;
    assert_eq!(call.path, SOTW);
    assert_eq!(
        call.sotw().await.version_info,
        "unknown",
        "delta's versions are nothing here"
    );
    call.finish(Code::Unavailable, "a restart");
    let mut call = plane.call().await;
    let declared = call.delta().await.initial_resource_versions;
    assert!(declared.contains_key("a"));
}

/// E-23: a control plane that crashes on a delta stream is asked in state of the world when it is back.
#[tokio::test]
async fn who_dies_of_delta_is_asked_otherwise() {
    let mut plane = Plane::start().await;
    let address = plane.address;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let call = plane.call().await;
    assert_eq!(call.path, DELTA);
    drop(plane);
    call.go_away(Reason::INTERNAL_ERROR).await;
    relay.fails().await;
    let mut plane = Plane::again(address).await;
    let mut call = plane.call().await;
    assert_eq!(call.path, SOTW);
    relay.takes(&mut call, "a=1").await;
}
