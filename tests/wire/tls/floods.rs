// SPDX-License-Identifier: Apache-2.0
//! More handshakes than are worked on at the same time.

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

/// A relay that processes few handshakes at the same time.
struct World {
    authority: Authority,
    relay: Relay,
}

impl World {
    fn new(places: usize) -> Self {
        let authority = Authority::new();
        let relay = Relay::with(|plan| authority.secure(plan, None, places));
        Self { authority, relay }
    }

    async fn client(&self) -> Client {
        client(&self.relay, &Arc::new(self.authority.client(None, &VERSIONS))).await
    }

    /// Opens connections that send these bytes and nothing more.
    async fn flood(&self, says: &[u8]) -> Vec<TcpStream> {
        let mut sockets = Vec::new();
        let all = self.relay.open().1 + i64::try_from(FLOOD).unwrap();
        for _ in 0..FLOOD {
            let mut socket = raw::socket(self.relay.port()).await;
            socket.write_all(says).await.unwrap();
            sockets.push(socket);
        }
        until(|| self.relay.open().1 == all, || format!("{:?}", self.relay.open())).await;
        sockets
    }
}

/// Clients that send a hello and then nothing more get an answer, and do not keep others out; connected clients are not affected.
#[tokio::test]
async fn clients_that_never_finish_keep_nobody_out() {
    let world = World::new(PLACES);
    let early = world.client().await;
    let flood = world.flood(&hello(&world.authority)).await;
    let late = world.client().await;
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        converses(&world.relay, &late, dialect).await;
        converses(&world.relay, &early, dialect).await;
    }
    let mut answered = [false; FLOOD];
    let mut look = || {
        for (socket, answered) in flood.iter().zip(&mut answered) {
            *answered = *answered || socket.try_read(&mut [0]).is_ok();
        }
        answered.iter().filter(|answered| **answered).count()
    };
    until(|| look() == FLOOD, || "all are answered").await;
    assert_eq!(world.relay.shared.metrics.handshakes.count("crowded"), 0);
}

/// A handshake waits ten seconds at most, for a place or for its client, and the failure is counted.
#[tokio::test]
async fn nobody_waits_for_ever() {
    for (places, result) in [(PLACES, "timeout"), (0, "crowded")] {
        let world = World::new(places);
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
        counted(&world.relay, result, FLOOD as u64).await;
    }
}

/// Clients that send nothing take no place, however many they are.
#[tokio::test]
async fn silence_keeps_nobody_out() {
    let world = World::new(PLACES);
    let hello = hello(&world.authority);
    let mut silent = world.flood(&[]).await;
    for socket in silent.iter_mut().take(FLOOD / 2) {
        socket.write_all(&hello[..hello.len() - 1]).await.unwrap();
    }
    let late = world.client().await;
    converses(&world.relay, &late, Dialect::Delta).await;
}
