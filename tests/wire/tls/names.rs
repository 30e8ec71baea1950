// SPDX-License-Identifier: Apache-2.0
//! Several certificates of one listener, and the oldest version of TLS.

use std::sync::Arc;

use distributary::config::{CertificateFiles, TlsVersion};
use distributary::tls;
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::live_files::{following, reloaded};
use super::refused;
use crate::support::Relay;
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS};

/// Connects to this name, and returns the certificate that is shown.
async fn shown(relay: &Relay, config: &ClientConfig, name: &str) -> std::io::Result<CertificateDer<'static>> {
    let socket = TcpStream::connect(relay.port()).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut config = config.clone();
    config.resumption = Resumption::disabled();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    let session = stream.get_ref().1;
    assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
    Ok(session.peer_certificates().unwrap()[0].clone())
}

/// A client gets the certificate with the name that it asks for; with an unknown name or none, the first. A new certificate
/// for one of the names is used like a new first one.
#[tokio::test]
async fn the_name_decides() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let mut settings = authority.listener(&folder, None);
    let put = |name: &str, own: &Signed| CertificateFiles {
        certificate_file: folder.put(&format!("{name}.pem"), &own.certificate),
        private_key_file: folder.put(&format!("{name}.key"), &own.key),
    };
    let (exact, wild) = (authority.sign("in.example.com"), authority.sign("*.example.com"));
    settings.others = vec![put("exact", &exact), put("wild", &wild)];
    let first = std::fs::read_to_string(folder.path("relay.pem")).unwrap();
    let first = Signed {
        certificate: first,
        key: exact.key.clone(),
    };
    let relay = following(&settings);
    for version in VERSIONS {
        let config = authority.client(None, &[version]);
        for (name, expected) in [
            ("localhost", &first),
            ("in.example.com", &exact),
            ("IN.example.com", &exact),
            ("out.example.com", &wild),
        ] {
            let certificate = shown(&relay, &config, name).await.unwrap();
            assert_eq!(certificate, expected.der().0[0], "{name}");
        }
        for name in ["example.com", "a.b.example.com", "127.0.0.1"] {
            let error = shown(&relay, &config, name).await.unwrap_err().to_string();
            assert!(error.contains("localhost"), "{name}: {error}");
        }
    }
    let renewed = authority.sign("in.example.com");
    folder.replace("exact.key", &renewed.key);
    folder.replace("exact.pem", &renewed.certificate);
    reloaded(&relay, (1, 0)).await;
    let both = authority.client(None, &VERSIONS);
    let certificate = shown(&relay, &both, "in.example.com").await.unwrap();
    assert_eq!(certificate, renewed.der().0[0]);
}

/// Of two certificates for one name, a client gets one whose signatures it can check.
#[tokio::test]
async fn the_kind_of_key_decides() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let mut settings = authority.listener(&folder, None);
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let rsa = authority.sign_key(&key, |params| {
        *params = CertificateParams::new(["localhost".to_owned()]).unwrap()
    });
    settings.others = vec![CertificateFiles {
        certificate_file: folder.put("rsa.pem", &rsa.certificate),
        private_key_file: folder.put("rsa.key", &rsa.key),
    }];
    let relay = following(&settings);
    let both = authority.client(None, &VERSIONS);
    let certificate = shown(&relay, &both, "localhost").await.unwrap();
    assert_ne!(certificate, rsa.der().0[0]);
    let mut provider = CryptoProvider::clone(&tls::provider());
    provider.cipher_suites = vec![TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(trusted).unwrap();
    let old = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let certificate = shown(&relay, &old, "localhost").await.unwrap();
    assert_eq!(certificate, rsa.der().0[0]);
}

/// `minimum_tls_version: 1.3`: older clients are refused.
#[tokio::test]
async fn the_oldest_version() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let mut settings = authority.listener(&folder, None);
    settings.oldest = TlsVersion::V1_3;
    let relay = following(&settings);
    let said = refused(&relay, &Arc::new(authority.client(None, &[&TLS12]))).await;
    assert!(said.contains("ProtocolVersion"), "{said}");
    for versions in [&[&TLS13][..], &VERSIONS] {
        shown(&relay, &authority.client(None, versions), "localhost")
            .await
            .unwrap();
    }
}
