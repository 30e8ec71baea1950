// SPDX-License-Identifier: Apache-2.0
//! A control plane with TLS.

use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::plane::Plane;

/// The client certificates that a plane got, and the names (SNI) under which clients asked for it, one for each connection.
pub type Shown = Arc<Mutex<Vec<(Option<CertificateDer<'static>>, Option<String>)>>>;

/// A plane that admits every client.
pub async fn tls_plane(identity: &CertifiedKey<KeyPair>) -> (Plane, u16) {
    let (plane, port, _) = tls_plane_for(identity, &[]).await;
    (plane, port)
}

/// A plane that admits clients with a certificate of one of `clients`, or every client if there is none.
pub async fn tls_plane_for(
    identity: &CertifiedKey<KeyPair>,
    clients: &[&CertifiedKey<KeyPair>],
) -> (Plane, u16, Shown) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der()).unwrap();
    let verifier = if clients.is_empty() {
        WebPkiClientVerifier::no_client_auth()
    } else {
        let mut roots = rustls::RootCertStore::empty();
        for client in clients {
            roots.add(client.cert.der().clone()).unwrap();
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        builder.build().unwrap()
    };
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = listener.local_addr().unwrap();
    let shown = Shown::default();
    let note = shown.clone();
    let plane = Plane::on(address, h2::server::Builder::new(), move || {
        let (acceptor, listener, note) = (acceptor.clone(), listener.clone(), note.clone());
        async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                if let Ok(stream) = acceptor.accept(socket).await {
                    let session = stream.get_ref().1;
                    let certificate = session.peer_certificates().and_then(|chain| chain.first());
                    let certificate = certificate.map(|certificate| certificate.clone().into_owned());
                    let name = session.server_name().map(ToOwned::to_owned);
                    note.lock().unwrap().push((certificate, name));
                    return stream;
                }
            }
        }
    });
    (plane, address.port(), shown)
}
