// SPDX-License-Identifier: Apache-2.0
//! Connections that send no TLS handshake, or never finish it, and certificates that are no good.

use std::sync::Arc;
use std::time::Duration;

use distributary::xds::Dialect;
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ClientConnection;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::live_files::following;
use super::{client, converses, counted, refused};
use crate::identity::Log;
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS};
use crate::support::{Relay, closed_after, raw, soon, until};

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
    drop(soon("the end", socket.read_to_end(&mut said)).await);
    said
}

/// Clients that use the wrong port get an answer in their own protocol, and the log reports both cases.
#[tokio::test]
async fn tls_on_one_side_only() {
    let (log, _guard) = Log::begin();
    let warned = async || {
        let says = |line: &String| line.starts_with("no TLS connection: ");
        until(|| log.warnings().iter().any(says), || "no warning").await;
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
    for (count, bytes) in [(1, 0), (2, 1), (3, hello.len() - 1), (4, hello.len())] {
        let begun = &hello[..bytes];
        let mut silent = raw::socket(relay.port()).await;
        silent.write_all(begun).await.unwrap();
        if begun.len() == hello.len() {
            assert_eq!(silent.read_u8().await.unwrap(), 22, "the relay goes on");
        }
        until(|| relay.open().1 == 1, || "not accepted").await;
        let took = closed_after(silent).await;
        let ten = Duration::from_secs(9)..Duration::from_secs(20);
        assert!(ten.contains(&took), "{} bytes: {took:?}", begun.len());
        counted(&relay, "timeout", count).await;
    }
}

/// Clients with certificates that are not valid, in all ways, are refused, and others are served beside them.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "certificates go by the wall clock")]
async fn certificates_that_are_no_good() {
    let (authority, clients, folder) = (Authority::new(), Authority::new(), Folder::new());
    let relay = following(&authority.listener(&folder, Some(&clients)));
    let now = std::time::SystemTime::now();
    let hour = Duration::from_secs(3600);
    let early = clients.sign_with("edge-1", |params| params.not_before = (now + hour).into());
    let late = clients.sign_with("edge-1", |params| params.not_after = (now - hour).into());
    let key = KeyPair::generate().unwrap();
    let alone = CertificateParams::new(["edge-1".to_owned()]).unwrap();
    let alone = alone.self_signed(&key).unwrap();
    let alone = Signed {
        certificate: alone.pem(),
        key: key.serialize_pem(),
    };
    let server = clients.sign_with("edge-1", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let bad = [early, late, alone, server, Authority::new().sign("edge-1")];
    let refusals = bad.iter().map(|shown| async {
        let said = refused(&relay, &Arc::new(authority.client(Some(shown), &VERSIONS))).await;
        assert!(said.contains("alert"), "{said}");
    });
    join_all(refusals).await;
    let metrics = &relay.shared.metrics;
    counted(&relay, "bad_certificate", 5).await;
    let text = metrics.encode().unwrap();
    let grpc = |result: &str, resumed: &str| {
        let labels = format!("grpc_tls_handshake_result=\"{result}\",grpc_tls_handshake_resumed=\"{resumed}\"");
        let series = format!("grpc_server_tls_handshakes_total{{{labels}}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(series.as_str()));
        count.unwrap_or_else(|| panic!("no {series}")).parse::<u64>().unwrap()
    };
    let failed = |result: &str| grpc(result, "FULL_HANDSHAKE");
    for word in ["NOT_YET_VALID", "EXPIRED", "MALFORMED"] {
        assert_eq!(failed(&format!("CERTIFICATE_{word}")), 1, "{word}");
    }
    // An authority that is not trusted may have the name of one that is.
    let foreign = ["CERTIFICATE_AUTHORITY_INVALID", "SIGNATURE_VERIFICATION_FAILED"].map(failed);
    assert_eq!(foreign.iter().sum::<u64>(), 2, "{foreign:?}");
    assert_eq!((failed("SUCCESS"), grpc("SUCCESS", "RESUMED_HANDSHAKE")), (0, 0));
    let good = authority.client(Some(&clients.sign("edge-1")), &VERSIONS);
    client(&relay, &Arc::new(good)).await;
}
