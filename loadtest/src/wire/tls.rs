// SPDX-License-Identifier: Apache-2.0
//! TLS to the server under test: which certificates to trust, what to show, and whether sessions are resumed. Clients that show the
//! same share one configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::wire::credentials::{ClientAuthority, Credentials, certificates, read_key};
use crate::wire::folder::Folder;
use crate::wire::pattern::Pattern;

/// A certificate to present and its key, in PEM files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

/// How clients secure their connections.
pub(crate) struct Secure {
    /// Of all clients; what each shows is added when it connects.
    config: Arc<ClientConfig>,
    shows: Credentials,
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
    /// Trusts servers named `name` whose certificate is signed by a CA in a PEM file, or by one that the system trusts. Sessions
    /// are resumed only if all clients show the same: a session belongs to who began it.
    pub(crate) fn new(ca: Option<&Path>, name: &str, shows: Credentials, resumes: bool) -> anyhow::Result<Arc<Self>> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match ca {
            Some(ca) => builder.with_root_certificates(roots(ca)?),
            None => builder.with_platform_verifier()?,
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = if resumes && !shows.differ() {
            Resumption::in_memory_sessions(SESSIONS_MAX)
        } else {
            Resumption::disabled()
        };
        if !shows.differ() {
            show(&mut config, &shows, 0)?;
        }
        Ok(Arc::new(Self {
            config: Arc::new(config),
            shows,
            name: ServerName::try_from(name.to_owned())?,
        }))
    }

    /// Secures a connection of a client.
    pub(crate) async fn connect(&self, number: u32, socket: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = self.config(number);
        let config = config.map_err(|error| std::io::Error::other(format!("{error:#}")))?;
        TlsConnector::from(config).connect(self.name.clone(), socket).await
    }

    /// Returns the files that a client needs.
    pub(crate) fn files(&self, number: u32) -> Vec<PathBuf> {
        self.shows.files(number)
    }

    fn config(&self, number: u32) -> anyhow::Result<Arc<ClientConfig>> {
        if !self.shows.differ() {
            return Ok(Arc::clone(&self.config));
        }
        let mut config = ClientConfig::clone(&self.config);
        show(&mut config, &self.shows, number)?;
        Ok(Arc::new(config))
    }
}

/// Has a configuration show what a client shows.
fn show(config: &mut ClientConfig, shows: &Credentials, number: u32) -> anyhow::Result<()> {
    if let Some((chain, key)) = shows.of(number)? {
        let shown = CertifiedKey::from_der(chain, key, config.crypto_provider());
        let shown = shown.with_context(|| match shows.files(number).first() {
            Some(file) => format!("{} and its key", file.display()),
            None => "a signed certificate".to_owned(),
        })?;
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
    }
    Ok(())
}

/// How many sessions to one server are kept for resumption.
const SESSIONS_MAX: usize = 256;

fn roots(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate)?;
    }
    Ok(roots)
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
    let mut config = builder.with_single_cert(certificates(shows.certificate)?, read_key(shows.key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

/// Certificates and keys in files that are deleted when this is dropped.
pub(crate) struct Papers {
    certificate: PathBuf,
    key: PathBuf,
    client: Option<ClientPapers>,
    _folder: Folder,
}

/// What clients must show.
struct ClientPapers {
    /// What the server trusts: the clients' own certificate, or that of the authority which signs one for each.
    certificate: PathBuf,
    key: PathBuf,
    /// The name of each client, if each has its own.
    names: Option<Pattern>,
}

impl Papers {
    /// The name in the server's certificate.
    pub(crate) const NAME: &'static str = "relay.test";

    /// Creates the certificate of the server. With `clients` there is one for all clients, with `names` one for each.
    pub(crate) fn new(clients: bool, names: Option<Pattern>) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let make = |name: &str, signs: bool| -> anyhow::Result<(PathBuf, PathBuf)> {
            let mut params = CertificateParams::new([name.to_owned()])?;
            if signs {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                params.distinguished_name = DistinguishedName::new();
                params.distinguished_name.push(DnType::CommonName, name);
            }
            let signing_key = KeyPair::generate()?;
            let files = (
                folder.0.join(format!("{name}.pem")),
                folder.0.join(format!("{name}.key")),
            );
            std::fs::write(&files.0, params.self_signed(&signing_key)?.pem())?;
            std::fs::write(&files.1, signing_key.serialize_pem())?;
            Ok(files)
        };
        let (certificate, key) = make(Self::NAME, false)?;
        let client = match clients || names.is_some() {
            true => {
                let (certificate, key) = make("client.test", names.is_some())?;
                Some(ClientPapers {
                    certificate,
                    key,
                    names,
                })
            }
            false => None,
        };
        Ok(Self {
            certificate,
            key,
            client,
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
        self.client.as_ref().map(|client| client.certificate.as_path())
    }

    /// Returns the TLS configuration of clients.
    pub(crate) fn secure(&self, resumes: bool) -> anyhow::Result<Arc<Secure>> {
        let shows = match &self.client {
            None => Credentials::None,
            Some(ClientPapers {
                certificate,
                key,
                names: Some(names),
            }) => Credentials::Signed(Box::new(ClientAuthority::read(certificate, key, names.clone())?)),
            Some(ClientPapers {
                certificate,
                key,
                names: None,
            }) => Credentials::Files {
                certificate: Pattern::same(certificate),
                key: Pattern::same(key),
            },
        };
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
