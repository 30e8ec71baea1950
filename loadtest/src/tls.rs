//! TLS on the way to the server under test: whom to trust, and whether sessions are resumed. One configuration serves all
//! clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::folder::Folder;

/// How clients secure their connections.
pub(crate) struct Secure {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Secure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Secure")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Secure {
    /// Trusts the certificates in a file of PEM, which speak of `name`.
    pub(crate) fn new(ca: &Path, name: &str, resumes: bool) -> anyhow::Result<Arc<Self>> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            roots.add(certificate)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = if resumes {
            Resumption::in_memory_sessions(SESSIONS_MAX)
        } else {
            Resumption::disabled()
        };
        Ok(Arc::new(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name: ServerName::try_from(name.to_owned())?,
        }))
    }

    pub(crate) async fn connect(&self, socket: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), socket).await
    }
}

/// Sessions to one server that may be resumed.
const SESSIONS_MAX: usize = 256;

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = || format!("cannot read {}", file.display());
    CertificateDer::pem_file_iter(file)
        .with_context(read)?
        .collect::<Result<_, _>>()
        .with_context(read)
}

/// The other side, for the floor.
pub(crate) fn acceptor(chain: &Path, key: &Path) -> anyhow::Result<tokio_rustls::TlsAcceptor> {
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| format!("cannot read {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates(chain)?, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

/// A certificate and its key in files that go when this does.
pub(crate) struct Papers {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    _folder: Folder,
}

impl Papers {
    /// Whom the certificate speaks of.
    pub(crate) const NAME: &'static str = "relay.test";

    pub(crate) fn new() -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed([Self::NAME.to_owned()])?;
        let folder = Folder::new()?;
        let (certificate, key) = (folder.0.join("certificate.pem"), folder.0.join("key.pem"));
        std::fs::write(&certificate, made.cert.pem())?;
        std::fs::write(&key, made.signing_key.serialize_pem())?;
        Ok(Self {
            certificate,
            key,
            _folder: folder,
        })
    }

    /// A relay's listener with them, as its configuration has it.
    pub(crate) fn listener(&self, address: SocketAddr) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        format!(
            "listeners:\n  - address: '{address}'\n    tls: {{ certificate: '{certificate}', private_key: '{key}' }}\n"
        )
    }
}
