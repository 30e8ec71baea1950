//! More handshakes than `limits.handshakes`.

use std::sync::Arc;

use distributary::xds::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::bad_input::hello;
use super::{client, converses, counted};
use crate::support::certificates::{Authority, VERSIONS};
use crate::support::client::Client;
use crate::support::{Relay, raw, spawn, until};

const PLACES: usize = 4;
const FLOOD: usize = 300;

/// A relay on which few may begin at the same time, and a client that is in.
struct World {
    authority: Authority,
    relay: Relay,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let authority = Authority::new();
        let relay = Relay::with(|plan| authority.secure(plan, None, PLACES));
        let client = client(&relay, &Arc::new(authority.client(None, &VERSIONS))).await;
        Self {
            authority,
            relay,
            client,
        }
    }

    /// Connections on which this was said and nothing more.
    async fn flood(&self, says: &[u8]) -> Vec<TcpStream> {
        let mut sockets = Vec::new();
        for _ in 0..FLOOD {
            let mut socket = raw::socket(self.relay.port()).await;
            socket.write_all(says).await.unwrap();
            sockets.push(socket);
        }
        let all = 1 + i64::try_from(FLOOD).unwrap();
        until(|| self.relay.open().1 == all, || format!("{:?}", self.relay.open())).await;
        sockets
    }
}

/// Clients that never finish keep all places; those who are in do not notice, those who are not wait, and come in when a
/// place is free.
#[tokio::test]
async fn handshakes_wait_and_sessions_do_not() {
    let world = World::new().await;
    let flood = world.flood(&hello(&world.authority)).await;
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        converses(&world.relay, &world.client, dialect).await;
    }
    let mut answered = [false; FLOOD];
    let mut look = || {
        for (socket, answered) in flood.iter().zip(&mut answered) {
            *answered = *answered || socket.try_read(&mut [0]).is_ok();
        }
        answered.iter().filter(|answered| **answered).count()
    };
    until(|| look() >= PLACES, || "the first ones are answered".to_owned()).await;
    // On a slow machine some places are free again by now.
    let freed = || usize::try_from(world.relay.shared.metrics.handshakes("timeout")).unwrap();
    assert!(look() <= PLACES + freed(), "the others wait");

    let config = Arc::new(world.authority.client(None, &VERSIONS));
    let stream = crate::support::certificates::connect(&world.relay, &config);
    let mut late = std::pin::pin!(stream);
    let soon = tokio::time::timeout(std::time::Duration::from_millis(100), late.as_mut()).await;
    assert!(soon.is_err() || freed() > 0, "it came in although all places are taken");
    drop(flood);
    tokio::time::timeout(crate::support::PATIENCE, late)
        .await
        .unwrap()
        .unwrap();
    counted(&world.relay, "full", 2).await;
}

/// Who waits for a place waits ten seconds at most, and is counted.
#[tokio::test]
async fn nobody_waits_for_ever() {
    let world = World::new().await;
    let flood = world.flood(&hello(&world.authority)).await;
    tokio::time::pause();
    let ends = flood.into_iter().map(|mut socket| {
        spawn(async move {
            let mut said = Vec::new();
            drop(socket.read_to_end(&mut said).await);
        })
    });
    for end in ends.collect::<Vec<_>>() {
        end.await.unwrap();
    }
    tokio::time::resume();
    let count = |result| world.relay.shared.metrics.handshakes(result);
    let all = || count("crowded") + count("timeout");
    until(|| all() == FLOOD as u64, || format!("{}", all())).await;
    assert!(
        count("timeout") >= PLACES as u64 && count("crowded") > 0,
        "{} crowded",
        count("crowded")
    );
    converses(&world.relay, &world.client, Dialect::Delta).await;
}

/// Clients that say nothing take no place, however many they are.
#[tokio::test]
async fn silence_keeps_nobody_out() {
    let world = World::new().await;
    let hello = hello(&world.authority);
    let mut silent = world.flood(&[]).await;
    for socket in silent.iter_mut().take(FLOOD / 2) {
        socket.write_all(&hello[..hello.len() - 1]).await.unwrap();
    }
    let config = Arc::new(world.authority.client(None, &VERSIONS));
    let late = client(&world.relay, &config).await;
    converses(&world.relay, &late, Dialect::Delta).await;
}
