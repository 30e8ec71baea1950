// SPDX-License-Identifier: Apache-2.0
//! Connections with too many streams, and connections that stay silent.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::*;
use crate::support::{PATIENCE, now, path, raw, soon, spawn, until};

/// `streams_per_connection` as it is by default.
const STREAMS: usize = 4096;

/// A client opens 10,000 streams and ignores the limit. The streams within the limit are served, the others are refused one by
/// one, and a client that does not stop is disconnected. Clients on other connections are not affected.
#[tokio::test]
async fn ten_thousand_streams_on_one_connection() {
    let mut world = World::new().await;
    let (mut frames, mut write) = raw::connect(world.relay.port()).await;
    let call = |n: u32| raw::call(2 * n + 1, path(Dialect::Delta), &[]);
    let calls: Vec<u8> = (0..5_000).flat_map(call).collect();
    let (mut begun, mut refused) = (Vec::new(), Vec::new());
    let read = async {
        while begun.len() + refused.len() < 5_000 {
            let frame = frames.next().await.expect("the connection goes on");
            match frame.kind {
                raw::HEADERS => begun.push(frame.stream),
                raw::RESET => {
                    assert_eq!(raw::reason(&frame), h2::Reason::REFUSED_STREAM);
                    refused.push(frame.stream);
                }
                _ => assert_ne!(frame.kind, raw::GO_AWAY),
            }
        }
    };
    // Writes and reads at the same time: the relay's frames would fill the socket otherwise.
    tokio::join!(read, async { write.write_all(&calls).await.unwrap() });
    assert_eq!((begun.len(), refused.len()), (STREAMS, 5_000 - STREAMS));
    assert!(begun.iter().max() < refused.iter().min(), "the first ones are taken");
    assert_eq!(world.relay.open().0, 1 + i64::try_from(STREAMS).unwrap());

    let request = message(&encoded(Dialect::Delta, CDS, &["bystander"]));
    let ask = |id: &u32| raw::frame(raw::DATA, 0, *id, &request);
    let requests: Vec<u8> = begun.iter().flat_map(ask).collect();
    let read = async {
        for _ in 0..STREAMS {
            frames.next_of(raw::DATA).await;
        }
    };
    tokio::join!(read, async { write.write_all(&requests).await.unwrap() });

    let calls: Vec<u8> = (5_000..10_000).flat_map(call).collect();
    // The relay closes while this is still being written, so its last frames may be lost.
    let read = async {
        while let Some(frame) = frames.next().await {
            if frame.kind == raw::GO_AWAY {
                assert_eq!(raw::reason(&frame), h2::Reason::ENHANCE_YOUR_CALM);
            }
        }
    };
    let ((), _) = tokio::join!(read, write.write_all(&calls));
    world.is_unharmed().await;
}

/// `streams_per_connection`: a client that respects it waits on its own side until a stream ends.
#[tokio::test]
async fn more_streams_than_allowed_wait_their_turn() {
    let mut world = World::with(|plan| plan.settings.limits.streams_per_connection = 50).await;
    let mut calls = Vec::new();
    for _ in 0..50 {
        let mut call = world.call(Dialect::Delta).await;
        call.send(&wants(CDS, &["bystander"]));
        calls.push(call);
    }
    let more = world.client.clone();
    let more = spawn(async move {
        for _ in 0..200 {
            drop(more.call(path(Dialect::Delta)).await);
        }
    });
    for call in &mut calls {
        assert!(call.next_bytes().await.is_ok());
    }
    assert_eq!(world.relay.open().0, 51);
    assert!(!more.is_finished());
    drop(calls);
    soon("the last call", more).await.unwrap();
    world.is_unharmed().await;
}

/// A client has ten seconds to say that it speaks HTTP/2; the same for one that begins with HTTP/1.1 and does not finish its request.
#[tokio::test]
async fn clients_that_say_nothing() {
    let mut world = World::new().await;
    let others = world.relay.open().1;
    let [one, all] = [1, raw::PREFACE.len() - 1].map(|bytes| &raw::PREFACE[..bytes]);
    let mut silent = Vec::new();
    for begun in [&b""[..], one, all, b"POST / HTTP/1.1\r\nhost: "] {
        let mut socket = raw::socket(world.relay.port()).await;
        socket.write_all(begun).await.unwrap();
        silent.push(socket);
    }
    until(|| world.relay.open().1 == others + 4, || "not accepted").await;
    let begun = now();
    let closed = silent.into_iter().map(async |mut socket| {
        let mut said = Vec::new();
        drop(
            timeout(PATIENCE, socket.read_to_end(&mut said))
                .await
                .expect("it is open"),
        );
        begun.elapsed().as_secs()
    });
    let took = join_all(closed).await;
    assert!(took.iter().all(|took| (9..=20).contains(took)), "{took:?} s");
    world.is_unharmed().await;
}

/// A client that sends only the HTTP/2 preface gets a ping, and is disconnected when it does not answer.
#[tokio::test]
async fn a_client_that_says_no_more_than_hello() {
    let mut world = World::with(|plan| plan.settings.timers.keepalive = Some(Duration::from_millis(100))).await;
    let mut silent = raw::socket(world.relay.port()).await;
    silent.write_all(raw::PREFACE).await.unwrap();
    soon("an end", silent.read_to_end(&mut Vec::new())).await.unwrap();
    world.is_unharmed().await;
}
