// SPDX-License-Identifier: Apache-2.0
//! Connections that send no TLS handshake, or never finish it.

use std::sync::Arc;
use std::time::Duration;

use distributary::xds::Dialect;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustls::ClientConnection;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{client, converses, counted, refused};
use crate::identity::Log;
use crate::support::certificates::{Authority, VERSIONS};
use crate::support::{PATIENCE, Relay, raw, until};

/// The beginning of a good handshake.
pub(crate) fn hello(authority: &Authority) -> Vec<u8> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut hello = Vec::new();
    let config = Arc::new(authority.client(None, &VERSIONS));
    let mut begun = ClientConnection::new(config, name).unwrap();
    begun.write_tls(&mut hello).unwrap();
    hello
}

/// Returns the bytes that the relay sends until it closes.
async fn last_words(mut socket: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    // A reset counts as an end.
    drop(
        tokio::time::timeout(PATIENCE, socket.read_to_end(&mut said))
            .await
            .expect("the connection goes on"),
    );
    said
}

/// Clients that use the wrong port get an answer in their own protocol, and the log reports both cases.
#[tokio::test]
async fn tls_on_one_side_only() {
    let (log, _guard) = Log::begin();
    let warned = async || {
        let warned = || {
            log.warnings()
                .iter()
                .any(|line| line.starts_with("no TLS connection: "))
        };
        until(warned, || "no warning".to_owned()).await;
    };
    let authority = Authority::new();
    let relay = authority.relay();
    for (count, says) in [(1, raw::PREFACE), (2, b"GET / HTTP/1.1\r\nhost: relay\r\n\r\n")] {
        let mut plain = raw::socket(relay.port()).await;
        plain.write_all(says).await.unwrap();
        let said = last_words(plain).await;
        assert_eq!(said.first(), Some(&21), "an alert: {}", said.escape_ascii());
        counted(&relay, "not_tls", count).await;
        match count {
            1 => warned().await,
            // It is the same again, from the same address: one line a minute.
            _ => assert_eq!(log.warnings(), [""; 0]),
        }
    }

    let relay = Relay::start();
    let said = refused(&relay, &Arc::new(authority.client(None, &VERSIONS))).await;
    assert!(said.contains("InvalidContentType"), "{said}");
    counted(&relay, "no_tls_here", 1).await;
    warned().await;
}

/// Garbage in place of a hello, and hellos that are cut or changed at random: only that connection ends.
#[tokio::test]
async fn garbage_for_a_hello() {
    let authority = Authority::new();
    let relay = authority.relay();
    let config = Arc::new(authority.client(None, &VERSIONS));
    let good = client(&relay, &config).await;
    let hello = hello(&authority);
    let mut random = StdRng::seed_from_u64(1);
    for round in 0..300_usize {
        let mut bytes = hello.clone();
        match round % 3 {
            0 => random.fill_bytes(&mut bytes),
            1 => bytes.truncate(round % hello.len()),
            _ => (0..8).for_each(|_| {
                let at = random.next_u32() as usize % hello.len();
                bytes[at] ^= (random.next_u32() % 255 + 1) as u8;
            }),
        }
        let mut socket = raw::socket(relay.port()).await;
        socket.write_all(&bytes).await.unwrap();
        // The relay answers a hello that is still valid, and waits for the rest of one that is incomplete.
        drop(socket.shutdown().await);
        last_words(socket).await;
    }
    // The header announces a message of sixteen megabytes; the relay does not wait for it.
    let mut socket = raw::socket(relay.port()).await;
    socket.write_all(&[22, 3, 1, 64, 0, 1, 255, 255, 255]).await.unwrap();
    drop(socket.write_all(&vec![0; 200_000]).await);
    last_words(socket).await;
    until(|| relay.open().1 == 1, || format!("{:?}", relay.open())).await;
    converses(&relay, &good, Dialect::Delta).await;
}

/// A client has ten seconds for its handshake, wherever it stops in it.
#[tokio::test]
async fn a_client_that_does_not_finish() {
    let authority = Authority::new();
    let relay = authority.relay();
    let hello = hello(&authority);
    for (count, begun) in [
        (1, &hello[..0]),
        (2, &hello[..1]),
        (3, &hello[..hello.len() - 1]),
        (4, &hello[..]),
    ] {
        let mut silent = raw::socket(relay.port()).await;
        silent.write_all(begun).await.unwrap();
        if begun.len() == hello.len() {
            assert_eq!(silent.read_u8().await.unwrap(), 22, "the relay goes on");
        }
        until(|| relay.open().1 == 1, || "not accepted".to_owned()).await;
        tokio::time::pause();
        #[expect(clippy::disallowed_methods, reason = "the time of the paused clock")]
        let began = tokio::time::Instant::now();
        last_words(silent).await;
        let took = began.elapsed();
        tokio::time::resume();
        let ten = Duration::from_secs(9)..Duration::from_secs(20);
        assert!(ten.contains(&took), "{} bytes: {took:?}", begun.len());
        counted(&relay, "timeout", count).await;
    }
}
