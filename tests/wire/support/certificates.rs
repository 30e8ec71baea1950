// SPDX-License-Identifier: Apache-2.0
//! Certificate authorities, the certificates that they sign, and both ends of TLS with them.

use std::sync::Arc;

use distributary::config::{CertificateFiles, ListenerTls, Supply, TlsVersion};
use distributary::downstream::Handshakes;
use distributary::tls::{self, ServerTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa, KeyIdMethod,
    KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) use peers::folder::Folder;

use super::{Plan, Relay};

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A signed certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        let name = format!("authority {:08x}", rand::random::<u32>());
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn sign(&self, name: &str) -> Signed {
        self.sign_with(name, |_| ())
    }

    /// Signs a certificate for a name, which `change` has changed.
    pub(crate) fn sign_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Signed {
        self.sign_as(|params| {
            *params = CertificateParams::new([name.to_owned()]).unwrap();
            change(params);
        })
    }

    pub(crate) fn sign_as(&self, change: impl FnOnce(&mut CertificateParams)) -> Signed {
        self.sign_key(&KeyPair::generate().unwrap(), change)
    }

    /// Signs a certificate of this key.
    pub(crate) fn sign_key(&self, key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) -> Signed {
        let mut params = CertificateParams::new([]).unwrap();
        change(&mut params);
        Signed {
            certificate: params.signed_by(key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// A client that trusts this authority alone, and shows what it has.
    pub(crate) fn client(
        &self,
        shown: Option<&Signed>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(shown) => {
                let (chain, key) = shown.der();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }

    /// Writes the files of a listener with a certificate of this authority, which admits clients with a certificate of `clients`.
    pub(crate) fn listener(&self, folder: &Folder, clients: Option<&Self>) -> ListenerTls {
        let own = self.sign("localhost");
        ListenerTls {
            identity: Supply::Files(CertificateFiles {
                certificate_file: folder.put("relay.pem", &own.certificate),
                private_key_file: folder.put("relay.key", &own.key),
            }),
            others: Vec::new(),
            oldest: TlsVersion::default(),
            client_ca: clients.map(|clients| folder.put("clients.pem", &clients.pem()).into()),
            client_crl: None,
        }
    }

    /// Gives a relay's listener a TLS certificate of this authority, and admits clients with a certificate of `clients`.
    pub(crate) fn secure(&self, plan: &mut Plan, clients: Option<&Self>, handshakes: usize) {
        let folder = Folder::new();
        let tls = self.listener(&folder, clients);
        let tls = ServerTls::read(&tls, &[tls::HTTP2, tls::HTTP1]).unwrap();
        assert_eq!(tls.warnings(), [""; 0]);
        plan.tls = Some(Handshakes::new(Arc::new(tls), handshakes));
    }

    /// A list of the certificates that this authority has revoked.
    pub(crate) fn revocations(&self, revoked: &[u64]) -> String {
        let revoked = revoked.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(3000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }

    /// A relay with TLS that asks for no client certificate.
    pub(crate) fn relay(&self) -> Relay {
        Relay::with(|plan| self.secure(plan, None, 256))
    }
}

impl Signed {
    pub(crate) fn der(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).map(Result::unwrap);
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        (chain.collect(), key)
    }
}

/// Connects, as `localhost`.
pub(crate) async fn connect(relay: &Relay, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(relay.port()).await?;
    socket.set_nodelay(true)?;
    agree(config, socket).await
}

/// The same on a connected socket.
pub(crate) async fn agree<S>(config: &Arc<ClientConfig>, socket: S) -> std::io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config.clone()).connect(name, socket).await
}
