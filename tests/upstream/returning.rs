// SPDX-License-Identifier: Apache-2.0
//! E-14: how streams are opened again to a server that many views read.

use distributary::upstream::StreamPhase;
use tokio::net::TcpListener;
use tonic::Code;

use crate::plane::{Call, PATIENCE, Plane, soon};
use crate::{EDS, Relay, delta, ms, now};

async fn answer(call: &mut Call) {
    call.delta().await;
    call.send(&delta(EDS, "n1", &["a=1"], &[]));
}

/// When a server answers one stream, the streams that wait because they could not reach it follow at once.
#[tokio::test]
async fn the_others_follow() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut relays = Relay::many(10, address, &[(EDS, "a")]);
    // After six attempts the pauses are more than eight seconds long.
    soon("six attempts of each", async {
        while relays[0].metrics.failures.get() < 60 {
            tokio::time::sleep(ms(10)).await;
        }
    })
    .await;
    let mut latest = None;
    for relay in &relays {
        let paused = relay.status("a pause", |status| status.next_attempt.is_some()).await;
        latest = latest.max(paused.next_attempt);
    }
    let mut plane = Plane::again(address).await;
    relays.push(relays[0].beside(&[(EDS, "a")]));
    let mut calls = vec![plane.call().await];
    answer(&mut calls[0]).await;
    for _ in 0..10 {
        calls.push(plane.call().await);
    }
    assert!(Some(now()) < latest, "they came when their pauses were over");
}

/// At most sixteen streams to a server are being opened at a time; one without an answer counts for a second.
#[tokio::test]
async fn sixteen_at_a_time() {
    let mut plane = Plane::start().await;
    let begun = now();
    let relays = Relay::many(40, plane.address, &[(EDS, "a")]);
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..17 {
        calls.push(plane.call().await);
    }
    let before = begun.elapsed();
    assert!(before > ms(900), "the seventeenth came after {before:?}");
    // An answered stream makes room at once.
    for call in &mut calls {
        answer(call).await;
    }
    for _ in 17..40 {
        let mut call = plane.call().await;
        answer(&mut call).await;
        calls.push(call);
    }
    for relay in &relays {
        relay.knows(EDS, "a=1").await;
    }
}

/// To an overloaded server the relay opens one stream at a time, after a pause; the streams that it has answered go on.
#[tokio::test]
async fn no_room() {
    let mut plane = Plane::start().await;
    let served = Relay::of(&plane, &[(EDS, "a")]);
    let mut first = plane.call().await;
    answer(&mut first).await;
    served.knows(EDS, "a=1").await;
    let refused = served.beside(&[(EDS, "a")]);
    plane.call().await.finish(Code::ResourceExhausted, "no room");
    let last = plane.call().await;
    let since = now();
    last.finish(Code::ResourceExhausted, "no room");
    let status = refused
        .status("a refusal", |status| status.phase == StreamPhase::Waiting)
        .await;
    assert!(status.refused);
    let third = served.beside(&[(EDS, "a")]);
    // The third has to wait too, although it has not failed: this spares the server.
    let mut second = plane.call().await;
    assert!(since.elapsed() > ms(700), "{:?}", since.elapsed());
    answer(&mut second).await;
    let mut last = plane.call().await;
    answer(&mut last).await;
    for relay in [&refused, &third] {
        relay.knows(EDS, "a=1").await;
    }
    assert!(
        !refused
            .status("an answer", |status| status.phase == StreamPhase::Answering)
            .await
            .refused
    );
    first.send(&delta(EDS, "n2", &["a=2"], &[]));
    tokio::time::timeout(PATIENCE, served.knows(EDS, "a=2")).await.unwrap();
}

/// G-11: while sessions read a lower server, the preferred one is tried each second, also if its pauses have grown before.
#[tokio::test]
async fn the_preferred_server_is_tried_each_second() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let relay = Relay::with(address, &[(EDS, "a")], |_| {});
    let failures = async |number| {
        while relay.metrics.failures.get() < number {
            tokio::time::sleep(ms(10)).await;
        }
    };
    // The next pauses would be four seconds and more.
    soon("five attempts", failures(4)).await;
    relay.view.mailbox().supersede();
    let since = now();
    soon("three more", failures(7)).await;
    assert!(since.elapsed() < ms(12_000), "{:?}", since.elapsed());
}
