// SPDX-License-Identifier: Apache-2.0
//! Session tickets of clients that show certificates: they end with the certificate, and with the trust that it came from.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use distributary::tls;
use distributary::xds::Dialect;
use parking_lot::Mutex;
use rcgen::SerialNumber;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, HandshakeKind, SignatureScheme};

use super::live_files::{following, reloaded};
use super::{converses, refused};
use crate::support::Relay;
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS, connect};
use crate::support::client::Client;

/// A client that can replace its certificate and keeps its tickets.
#[derive(Debug)]
struct Wallet(Mutex<Arc<CertifiedKey>>);

impl Wallet {
    fn new(shown: &Signed) -> Arc<Self> {
        Arc::new(Self(Mutex::new(certified(shown))))
    }

    fn show(&self, shown: &Signed) {
        *self.0.lock() = certified(shown);
    }
}

impl ResolvesClientCert for Wallet {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.lock().clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn certified(shown: &Signed) -> Arc<CertifiedKey> {
    let (chain, key) = shown.der();
    Arc::new(CertifiedKey::from_der(chain, key, &tls::provider()).unwrap())
}

/// Connects, and says how. After an answer the client has also read the ticket, which comes after the handshake.
pub(super) async fn arrives(relay: &Relay, config: &Arc<ClientConfig>, expected: HandshakeKind) {
    let stream = connect(relay, config).await.unwrap();
    assert_eq!(stream.get_ref().1.handshake_kind(), Some(expected));
    let (client, _) = Client::over(stream, &h2::client::Builder::new()).await;
    converses(relay, &client, Dialect::Delta).await;
}

fn numbered(authority: &Authority, serial: u64) -> Signed {
    authority.sign_with("edge-1", |params| {
        params.serial_number = Some(SerialNumber::from(serial))
    })
}

/// K-34: after a change of the authorities or of the revocation lists, no ticket from before is good. Clients that are still
/// admitted show their certificates once more. A new certificate of the relay changes nothing for tickets.
#[tokio::test]
async fn tickets_end_with_the_trust() {
    for version in VERSIONS {
        let (authority, clients, folder) = (Authority::new(), Authority::new(), Folder::new());
        let mut settings = authority.listener(&folder, Some(&clients));
        settings.client_crl = Some(folder.put("clients.crl", &clients.revocations(&[])));
        let relay = following(&settings);
        let [one, two] = [1, 2].map(|serial| {
            let shown = numbered(&clients, serial);
            Arc::new(authority.client(Some(&shown), &[version]))
        });
        for config in [&one, &two] {
            arrives(&relay, config, HandshakeKind::Full).await;
            arrives(&relay, config, HandshakeKind::Resumed).await;
        }
        let own = authority.sign("localhost");
        folder.replace("relay.pem", &own.certificate);
        folder.replace("relay.key", &own.key);
        reloaded(&relay, (1, 0)).await;
        arrives(&relay, &one, HandshakeKind::Resumed).await;

        folder.replace("clients.crl", &clients.revocations(&[1]));
        reloaded(&relay, (2, 0)).await;
        let said = refused(&relay, &one).await;
        assert!(said.contains("CertificateRevoked"), "{said}");
        arrives(&relay, &two, HandshakeKind::Full).await;
        arrives(&relay, &two, HandshakeKind::Resumed).await;

        let others = Authority::new();
        folder.replace("clients.crl", &others.revocations(&[]));
        folder.replace("clients.pem", &others.pem());
        reloaded(&relay, (3, 0)).await;
        let said = refused(&relay, &two).await;
        assert!(said.contains("UnknownCA") || said.contains("DecryptError"), "{said}");
    }
}

/// K-34: a ticket ends with the certificate: an expired one is refused, and with a new one the client is admitted.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "certificates go by the wall clock")]
async fn tickets_end_with_the_certificate() {
    for version in VERSIONS {
        let (authority, clients, folder) = (Authority::new(), Authority::new(), Folder::new());
        let relay = following(&authority.listener(&folder, Some(&clients)));
        let end = SystemTime::now() + Duration::from_secs(8);
        let short = clients.sign_with("edge-1", |params| params.not_after = end.into());
        let wallet = Wallet::new(&short);
        let mut config = authority.client(None, &[version]);
        config.client_auth_cert_resolver = wallet.clone();
        let config = Arc::new(config);
        arrives(&relay, &config, HandshakeKind::Full).await;
        arrives(&relay, &config, HandshakeKind::Resumed).await;
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        tokio::time::sleep(left + Duration::from_millis(1100)).await;
        let said = refused(&relay, &config).await;
        assert!(said.contains("CertificateExpired"), "{said}");
        wallet.show(&clients.sign("edge-1"));
        arrives(&relay, &config, HandshakeKind::Full).await;
        arrives(&relay, &config, HandshakeKind::Resumed).await;
    }
}
