// SPDX-License-Identifier: Apache-2.0
//! Limits on connections, streams and subscriptions: who is beyond them is told so, and nobody else feels it.

use std::time::Duration;

use distributary::xds::Dialect;
use tonic::Code;

use crate::support::client::{Call, Client};
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, PATIENCE, Plan, Relay, is_closed, raw, says, until};

fn relay(plan: impl FnOnce(&mut Plan)) -> Relay {
    let relay = Relay::with(plan);
    relay.put(CDS, &["a"], "1");
    relay
}

async fn call(client: &Client) -> Call {
    client.ads(Dialect::Delta).await
}

async fn served(client: &Client) -> Subscriber {
    let mut subscriber = Subscriber::new(call(client).await, Dialect::Delta, CDS);
    subscriber.subscribe(&["*"]);
    subscriber.take().await;
    subscriber
}

fn counted(relay: &Relay, limit: &str, times: u32) {
    relay.shows(&format!("refused_total{{limit=\"{limit}\"}} {times}"));
}

/// `limits.connections`, `limits.connections_per_identity`: what is beyond is closed at once, until one of the others has ended.
#[tokio::test]
async fn too_many_connections() {
    for key in ["connections", "connections_per_identity"] {
        let relay = relay(|plan| match key {
            "connections" => plan.admission.connections = 2,
            _ => plan.admission.connections_per_identity = 2,
        });
        let (one, other) = (relay.connect().await, relay.connect().await);
        let first = served(&one).await;
        let second = served(&other).await;
        is_closed(raw::socket(relay.port()).await).await;
        counted(&relay, key, 1);
        drop((second, other));
        until(|| relay.open().1 == 1, || "it is still open").await;
        served(&relay.connect().await).await;
        drop(first);
    }
}

/// `limits.streams`, `limits.new_streams_per_second`: a client that could be served by another relay is told so before any
/// response. `limits.streams_per_identity`: it has too many itself.
#[tokio::test]
async fn too_many_streams() {
    for (key, code) in [
        ("streams", Code::Unavailable),
        ("new_streams_per_second", Code::Unavailable),
        ("streams_per_identity", Code::ResourceExhausted),
    ] {
        let relay = relay(|plan| match key {
            "streams" => plan.admission.streams = 2,
            "new_streams_per_second" => plan.admission.new_streams_per_second = 2,
            _ => plan.admission.streams_per_identity = 2,
        });
        let client = relay.connect().await;
        let streams = [served(&client).await, served(&client).await];
        let mut refused = call(&client).await;
        let ended = refused.end().await;
        ended.assert(code, code == Code::Unavailable);
        says(&ended, code, &format!("`limits.{key}` = 2"));
        counted(&relay, key, 1);
        if key != "new_streams_per_second" {
            drop(streams);
            until(|| relay.open().0 == 0, || "they are still open").await;
            served(&client).await;
        }
    }
}

async fn asks(relay: &Relay, dialect: Dialect, names: &[&str]) -> Subscriber {
    let client = relay.connect().await;
    let mut subscriber = client.subscriber(dialect, EDS).await;
    subscriber.subscribe(names);
    subscriber
}

fn names_limited_to(subscriptions: usize) -> Relay {
    let relay = Relay::with(|plan| {
        plan.admission.subscriptions = Some(subscriptions);
        plan.protocol.timers.unanswered = Duration::from_secs(1);
    });
    relay.put(EDS, &["a", "b", "c", "d"], "1");
    relay
}

/// `limits.subscriptions`, G-18: a client that was sent nothing goes elsewhere. One that was sent something waits for room, and
/// nobody else does.
#[tokio::test]
async fn names_that_find_room_in_time() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let relay = names_limited_to(4);
        relay.put(CDS, &["x"], "1");
        let mut most = asks(&relay, dialect, &["a", "b", "c"]).await;
        most.take().await;
        let mut small = asks(&relay, dialect, &["d"]).await;
        small.take().await;
        let ended = asks(&relay, dialect, &["a"]).await.call.end().await;
        ended.assert(Code::Unavailable, true);
        says(&ended, Code::Unavailable, "`limits.subscriptions` = 4");
        counted(&relay, "subscriptions", 1);
        // A wildcard has no name.
        served(&relay.connect().await).await;
        small.subscribe(&["a"]);
        assert!(small.call.is_silent().await, "there is no room");
        most.unsubscribe(&["b"]);
        while !small.take().await.bodies.contains(&"1".to_owned()) {}
        counted(&relay, "subscriptions", 2);
        relay.put(EDS, &["a", "c", "d"], "2");
        most.take().await;
        small.take().await;
    }
}

/// After `timers.unanswered` it ends, because it gets no changes either. What it had makes room.
#[tokio::test]
async fn names_that_find_no_room() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let relay = names_limited_to(1);
        let mut only = asks(&relay, dialect, &["a"]).await;
        only.take().await;
        only.subscribe(&["b"]);
        let ended = only.call.end().await;
        ended.assert(Code::ResourceExhausted, false);
        says(&ended, Code::ResourceExhausted, "`limits.subscriptions` = 1");
        counted(&relay, "subscriptions", 1);
        asks(&relay, dialect, &["b"]).await.take().await;
    }
}

/// A stream that waits for room ends like any other when its client goes, or when the relay does.
#[tokio::test]
async fn who_waits_for_room_may_go() {
    let relay = Relay::with(|plan| plan.admission.subscriptions = Some(2));
    relay.put(EDS, &["a", "b", "c", "d"], "1");
    let mut clients = Vec::new();
    for name in ["a", "b"] {
        let mut client = asks(&relay, Dialect::Delta, &[name]).await;
        client.take().await;
        client.subscribe(&["c", "d"]);
        assert!(client.call.is_silent().await);
        clients.push(client);
    }
    drop(clients.pop());
    until(|| relay.open().0 == 1, || "the stream is still open").await;
    relay.begin_drain(PATIENCE);
    assert_eq!(clients[0].call.end().await.code, Code::Ok as i32);
}
