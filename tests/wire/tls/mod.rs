// SPDX-License-Identifier: Apache-2.0
//! Clients with TLS: the same streams and polls, which clients are admitted, and the limits of handshakes.

mod bad_input;
mod floods;
mod live_files;
mod names;
mod records;
mod resumption;
mod spiffe;

use std::sync::Arc;

use distributary::xds::Dialect;
use rustls::{ClientConfig, HandshakeKind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio_rustls::client::TlsStream;

pub(crate) use self::bad_input::hello;
use self::resumption::arrives;
use crate::support::certificates::{Authority, Signed, VERSIONS, connect};
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::polls::{Poller, request};
use crate::support::{CDS, Relay, path, soon, until, windows};

const BOTH: [Dialect; 2] = [Dialect::Sotw, Dialect::Delta];

/// An HTTP/2 client with a window for large answers.
pub(crate) async fn client(relay: &Relay, config: &Arc<ClientConfig>) -> Client {
    speak(connect(relay, config).await.unwrap()).await
}

pub(crate) async fn speak<S>(stream: TlsStream<S>) -> Client
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    Client::over(stream, &windows(16 << 20, 64 << 20)).await.0
}

/// One subscription that works, with a body of several TLS records.
async fn converses(relay: &Relay, client: &Client, dialect: Dialect) {
    let large = "x".repeat(300_000);
    relay.put(CDS, &["a"], "first");
    let mut subscriber = Subscriber::new(client.call(path(dialect)).await, dialect, CDS);
    subscriber.subscribe(&["a"]);
    assert_eq!(subscriber.take().await.bodies, ["first"]);
    relay.put(CDS, &["a"], &large);
    assert!(subscriber.take().await.bodies == [large], "300 kB");
    relay.put(CDS, &["a"], "last");
    assert_eq!(subscriber.take().await.bodies, ["last"]);
}

/// Returns the error of a connection that ends before any call.
async fn refused(relay: &Relay, config: &Arc<ClientConfig>) -> String {
    let ended = async {
        // With TLS 1.3 the client's handshake ends before the relay has checked the client's certificate.
        let mut stream = connect(relay, config).await?;
        match stream.read(&mut [0]).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    };
    let ended: std::io::Result<()> = soon("the end", ended).await;
    ended.unwrap_err().to_string()
}

/// Waits until this number of handshakes has ended with this result.
async fn counted(relay: &Relay, result: &'static str, count: u64) {
    let handshakes = || relay.shared.metrics.handshakes.count(result);
    until(|| handshakes() >= count, || format!("{result}: {}", handshakes())).await;
    assert_eq!(handshakes(), count, "{result}");
}

/// Both dialects over both versions of TLS.
#[tokio::test]
async fn discovery_over_tls() {
    let authority = Authority::new();
    for version in VERSIONS {
        let relay = authority.relay();
        let config = Arc::new(authority.client(None, &[version]));
        let client = client(&relay, &config).await;
        for dialect in BOTH {
            converses(&relay, &client, dialect).await;
        }
        counted(&relay, "full", 1).await;
    }
}

/// Clients that poll: over HTTP/2 or HTTP/1.1, negotiated (ALPN) or not.
#[tokio::test]
async fn polls_over_tls() {
    let authority = Authority::new();
    let relay = authority.relay();
    crate::rest::put(&relay, CDS, &["a"], 1);
    for protocols in [vec![b"http/1.1".to_vec()], Vec::new()] {
        let mut config = authority.client(None, &VERSIONS);
        config.alpn_protocols.clone_from(&protocols);
        let stream = connect(&relay, &Arc::new(config)).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(agreed, protocols.first().cloned());
        let mut poller = Poller::over(stream);
        for _ in 0..2 {
            let answer = poller.poll(crate::rest::CLUSTERS, &request("", &["a"])).await;
            assert_eq!(answer.says().1, ["a"]);
        }
    }
    let client = client(&relay, &Arc::new(authority.client(None, &VERSIONS))).await;
    assert_eq!(crate::rest::poll(&client, &[]).await.head.status(), 200);
}

/// `client_ca`: only clients with a certificate of these authorities are admitted; each refusal is counted with its reason, and
/// the client gets an alert.
#[tokio::test]
async fn only_clients_with_a_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    for version in VERSIONS {
        let relay = Relay::with(|plan| authority.secure(plan, Some(&clients), 256));
        let shows = |shown: Option<&Signed>| Arc::new(authority.client(shown, &[version]));
        let good = client(&relay, &shows(Some(&clients.sign("edge-1")))).await;
        converses(&relay, &good, Dialect::Delta).await;

        let said = refused(&relay, &shows(None)).await;
        let told = said.contains("CertificateRequired") || said.contains("HandshakeFailure");
        assert!(told, "{said}");
        counted(&relay, "no_certificate", 1).await;
        let said = refused(&relay, &shows(Some(&Authority::new().sign("edge-1")))).await;
        assert!(said.contains("alert"), "{said}");
        counted(&relay, "bad_certificate", 1).await;
        converses(&relay, &good, Dialect::Sotw).await;
    }
}

/// A client that does not trust the relay sends an alert and disconnects; the relay counts it.
#[tokio::test]
async fn a_client_with_other_authorities() {
    let authority = Authority::new();
    let relay = authority.relay();
    let other = Arc::new(Authority::new().client(None, &VERSIONS));
    let said = refused(&relay, &other).await;
    assert!(said.contains("UnknownIssuer"), "{said}");
    counted(&relay, "refused_by_client", 1).await;
}

/// Clients that come back with a session ticket of the relay: the second handshake needs no certificates, not even theirs.
#[tokio::test]
async fn sessions_resume() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let shown = clients.sign("edge-1");
    for version in VERSIONS {
        for mutual in [false, true] {
            let relay = Relay::with(|plan| authority.secure(plan, mutual.then_some(&clients), 256));
            let config = Arc::new(authority.client(mutual.then_some(&shown), &[version]));
            for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
                arrives(&relay, &config, expected).await;
            }
            counted(&relay, "full", 1).await;
            counted(&relay, "resumed", 2).await;

            // The ticket of another relay does not help, and does no harm.
            let other = Relay::with(|plan| authority.secure(plan, mutual.then_some(&clients), 256));
            client(&other, &config).await;
            counted(&other, "full", 1).await;
        }
    }
}
