// SPDX-License-Identifier: Apache-2.0
//! The requests and responses on the wire, in both dialects and on both streams.

use std::time::Duration;

use distributary::protocol::Why;
use distributary::upstream::StreamPhase;
use distributary::xds::Dialect;
use distributary::xds::ServerState;
use tonic::Code;

use crate::plane::Plane;
use crate::{CDS, EDS, Relay, delta, ms};

pub(crate) const DELTA: &str = peers::path(Dialect::Delta);
pub(crate) const SOTW: &str = peers::path(Dialect::Sotw);

/// A-01, E-01, E-02, K-25: each request has the node; a response reaches the view and is acknowledged.
#[tokio::test]
async fn delta_is_the_default() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let mut call = plane.call().await;
    assert_eq!(
        (call.path.as_str(), &call.authority),
        (DELTA, &plane.address.to_string())
    );
    let header = |name: &str| {
        call.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        (header("te"), header("content-type")),
        ("trailers".to_owned(), "application/grpc".to_owned())
    );
    assert!(header("user-agent").starts_with("distributary/"));
    let first = call.delta().await;
    assert_eq!(
        (first.type_url.as_str(), first.resource_names_subscribe),
        (EDS, vec!["a".to_owned()])
    );
    let node = first.node.unwrap();
    assert_eq!(node.id, "relay");
    assert!(
        node.metadata
            .clone()
            .unwrap()
            .fields
            .contains_key("distributary.relays")
    );
    call.send(&delta(EDS, "n1", &["a=1"], &[]));
    relay.knows(EDS, "a=1").await;
    let ack = call.delta().await;
    assert_eq!(
        (ack.response_nonce.as_str(), ack.node, ack.error_detail),
        ("n1", Some(node), None)
    );
    let status = relay
        .status("an answer", |status| status.phase == StreamPhase::Answering)
        .await;
    assert_eq!((status.dialect, status.error), (Dialect::Delta, None));
    assert_eq!(status.why, Some(Why::Preferred));
    assert_eq!(relay.metrics.responses.get(), 1);
}

/// G-08, C-16: a server that has answered one of the two streams is there, also if it has nothing to say on the other one.
#[tokio::test]
async fn a_silent_aside() {
    let mut plane = Plane::start().await;
    let wants = [(CDS, "*"), (CDS, "besides")];
    let relay = Relay::with(plane.address, &wants, |plan| plan.does_not_exist = ms(400));
    let mut main = plane.call().await;
    main.send(&delta(CDS, "n1", &["a=1"], &[]));
    relay.knows(CDS, "a=1 complete").await;
    let mut aside = plane.call().await;
    assert_eq!(aside.delta().await.resource_names_subscribe, ["besides"]);
    relay.stands(ServerState::Up).await;
    // It is tried in the other dialect before that counts as a failure.
    aside.finish(Code::Unavailable, "no more");
    plane.call().await.finish(Code::Unavailable, "no more");
    relay.stands(ServerState::Failing).await;
    let _silent = plane.call().await;
    relay.stands(ServerState::Up).await;
}

/// K-05: a name that a complete wildcard lacks is requested on a second stream, which ends when no session wants it.
#[tokio::test]
async fn the_aside() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*")]);
    let mut main = plane.call().await;
    assert!(main.delta().await.resource_names_subscribe.is_empty());
    relay.want(CDS, "a", true);
    relay.want(CDS, "besides", true);
    main.send(&delta(CDS, "n1", &["a=1"], &[]));
    relay.knows(CDS, "a=1 complete").await;
    let mut aside = plane.call().await;
    let request = aside.delta().await;
    assert_eq!(request.resource_names_subscribe, ["besides"]);
    assert!(request.node.is_some());
    aside.send(&delta(CDS, "n1", &["besides=1"], &[]));
    relay.knows(CDS, "a=1 besides=1 complete").await;
    // The wildcard covers it now: the name is not requested any more, and the second stream has nothing else to request.
    main.send(&delta(CDS, "n2", &["besides=2"], &[]));
    relay.knows(CDS, "a=1 besides=2 complete").await;
    aside.gone().await;
    main.send(&delta(CDS, "n3", &["a=2"], &[]));
    relay.knows(CDS, "a=2 besides=2 complete").await;
}

/// G-08: the second stream failed, and was not wanted any more; then the server answered the first one. When the second is wanted
/// again, its old failure does not count: a server that has nothing to say about a name would never end it.
#[tokio::test]
async fn an_answer_ends_what_failed_on_the_other_stream() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*"), (CDS, "besides")]);
    let mut main = plane.call().await;
    main.delta().await;
    main.send(&delta(CDS, "n1", &["a=1"], &[]));
    relay.knows(CDS, "a=1 complete").await;
    let fails = async {
        loop {
            plane.call().await.finish(Code::Unavailable, "no capacity");
        }
    };
    tokio::select! {
        () = relay.stands(ServerState::Failing) => {}
        never = fails => never,
    }
    relay.want(CDS, "besides", false);
    relay.stands(ServerState::Up).await;
    main.finish(Code::Unavailable, "a restart");
    let mut main = plane.call().await;
    main.delta().await;
    main.send(&delta(CDS, "n1", &["a=2"], &[]));
    relay.knows(CDS, "a=2 complete").await;
    relay.want(CDS, "besides", true);
    let _silent = plane.call().await;
    relay.stands(ServerState::Up).await;
}

/// E-21: the relay reads from a server that does not read itself; once it reads again it gets the latest requests.
#[tokio::test]
async fn reading_never_waits_for_writing() {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(200);
    let mut plane = Plane::with(builder).await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let mut call = plane.call().await;
    for round in 0..2000 {
        call.send(&delta(EDS, &format!("n{round}"), &[&format!("a={round}")], &[]));
    }
    relay.knows(EDS, "a=1999").await;
    for name in ["x", "y", "z"] {
        relay.want(EDS, name, true);
    }
    let mut names = Vec::new();
    let mut answers = 0;
    while names.len() < 4 {
        let request = call.delta().await;
        answers += usize::from(!request.response_nonce.is_empty());
        names.extend(request.resource_names_subscribe);
    }
    names.sort();
    assert_eq!(names, ["a", "x", "y", "z"]);
    assert!(answers < 400, "{answers} answers waited in a queue");
}

/// E-19: a stream without subscriptions is closed, and opened again when something is subscribed.
#[tokio::test]
async fn no_interest_no_stream() {
    let (mut plane, relay, mut call) = Relay::with_a().await;
    relay.want(EDS, "a", false);
    call.gone().await;
    relay.want(EDS, "b", true);
    let mut call = plane.call().await;
    assert_eq!(call.delta().await.resource_names_subscribe, ["b"]);
    drop(relay);
    call.gone().await;
}

/// E-19: a subscription soon after the last one has ended goes out at once on the open stream.
#[tokio::test]
async fn interest_that_comes_back_finds_the_stream_open() {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| plan.idle = Duration::from_secs(60));
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    call.delta().await;
    relay.want(EDS, "a", false);
    relay.forgets(EDS).await;
    relay.want(EDS, "b", true);
    assert_eq!(call.delta().await.resource_names_unsubscribe, ["a"]);
    assert_eq!(call.delta().await.resource_names_subscribe, ["b"]);
}
