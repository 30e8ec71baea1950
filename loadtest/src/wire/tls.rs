//! TLS to the server under test: which certificates to trust, and whether sessions are resumed. All clients share one
//! configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::wire::folder::Folder;

/// A certificate to present and its key, in PEM files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

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
    /// Trusts servers named `name` whose certificate is signed by a CA in a PEM file, or by one that the system trusts.
    pub(crate) fn new(
        ca: Option<&Path>,
        name: &str,
        shows: Option<Identity<'_>>,
        resumes: bool,
    ) -> anyhow::Result<Arc<Self>> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match ca {
            Some(ca) => builder.with_root_certificates(roots(ca)?),
            None => builder.with_platform_verifier()?,
        };
        let mut config = match shows {
            None => builder.with_no_client_auth(),
            Some(identity) => builder.with_client_auth_cert(certificates(identity.certificate)?, key(identity.key)?)?,
        };
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

/// How many sessions to one server are kept for resumption.
const SESSIONS_MAX: usize = 256;

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = || format!("cannot read {}", file.display());
    CertificateDer::pem_file_iter(file)
        .with_context(read)?
        .collect::<Result<_, _>>()
        .with_context(read)
}

fn roots(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn key(file: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Creates the server side, for the floor. With `clients`, clients must present a certificate signed by a CA in that file.
pub(crate) fn acceptor(shows: Identity<'_>, clients: Option<&Path>) -> anyhow::Result<tokio_rustls::TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider);
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let mut config = builder.with_single_cert(certificates(shows.certificate)?, key(shows.key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

/// Certificates and keys in files that are deleted when this is dropped.
pub(crate) struct Papers {
    certificate: PathBuf,
    key: PathBuf,
    /// The clients' certificate and key, if they must present one.
    client: Option<(PathBuf, PathBuf)>,
    _folder: Folder,
}

impl Papers {
    /// The name in the server's certificate.
    pub(crate) const NAME: &'static str = "relay.test";

    pub(crate) fn new(clients: bool) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let make = |name: &str| -> anyhow::Result<(PathBuf, PathBuf)> {
            let made = rcgen::generate_simple_self_signed([name.to_owned()])?;
            let files = (
                folder.0.join(format!("{name}.pem")),
                folder.0.join(format!("{name}.key")),
            );
            std::fs::write(&files.0, made.cert.pem())?;
            std::fs::write(&files.1, made.signing_key.serialize_pem())?;
            Ok(files)
        };
        let (certificate, key) = make(Self::NAME)?;
        Ok(Self {
            certificate,
            key,
            client: clients.then(|| make("client.test")).transpose()?,
            _folder: folder,
        })
    }

    /// Returns the server's certificate and key.
    pub(crate) fn identity(&self) -> Identity<'_> {
        let (certificate, key) = (&self.certificate, &self.key);
        Identity { certificate, key }
    }

    /// Returns the CA of client certificates, if clients must present one.
    pub(crate) fn client_ca(&self) -> Option<&Path> {
        self.client.as_ref().map(|(certificate, _)| certificate.as_path())
    }

    /// Returns the TLS configuration of clients.
    pub(crate) fn secure(&self, resumes: bool) -> anyhow::Result<Arc<Secure>> {
        let shows = self.client.as_ref();
        let shows = shows.map(|(certificate, key)| Identity { certificate, key });
        Secure::new(Some(&self.certificate), Self::NAME, shows, resumes)
    }

    /// Returns a listener with these certificates, as text of a relay's configuration.
    pub(crate) fn listener(&self, address: SocketAddr) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        let clients = self
            .client_ca()
            .map(|file| format!(", client_ca: '{}'", file.display()));
        format!(
            "listeners:\n  - address: '{address}'\n    tls: {{ certificate: '{certificate}', private_key: '{key}'{} }}\n",
            clients.unwrap_or_default()
        )
    }
}
