// SPDX-License-Identifier: Apache-2.0
//! The TLS of one listener.
//!
//! Owns which certificate it presents and which clients it admits, as its files were when they were last good. Does not decide
//! when they are read again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WantsServerCert};
use rustls::version::{TLS12, TLS13};
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};

use super::certificates::Certificates;
use super::in_use::{Certificate, CertificateSet};
use super::pem_file::{BadFile, IdentityFiles, KEY_KINDS, up_to_date};
use super::provider::provider;
use super::trust::{Admission, ClientTrust, TrustFiles};
use super::validity;
use crate::config::{ListenerTls, Supply, TlsVersion};

/// The TLS of one listener. Handshakes take its latest state; connections that are established do not need it.
#[derive(Debug)]
pub struct ServerTls {
    /// May be newer than what was read.
    settings: ArcSwap<ListenerTls>,
    protocols: Protocols,
    offer: ArcSwap<Offer>,
    trust: Arc<ArcSwap<ClientTrust>>,
    /// Held while files are read.
    reading: Mutex<()>,
}

/// What is offered by ALPN, the preferred protocol first.
pub type Protocols = &'static [&'static [u8]];

/// What the listener presents.
#[derive(Debug)]
struct Offer {
    settings: Arc<ListenerTls>,
    version: Vec<[u128; 2]>,
    builder: ConfigBuilder<ServerConfig, WantsVerifier>,
    certificates: Arc<dyn ResolvesServerCert>,
    /// The configuration for clients that need no certificate.
    config: Arc<ServerConfig>,
    warnings: Vec<String>,
    shown: CertificateSet,
}

/// All files as they were when they were read.
struct ServerFiles {
    /// For clients that ask for no name, or for one that no certificate has.
    first: IdentityFiles,
    others: Vec<IdentityFiles>,
    trust: TrustFiles,
}

/// A client resumes with the latest ticket only, and each ticket costs one more record on both sides.
const TICKETS: usize = 1;

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of the files cannot be used, or they do not belong together.
    pub fn read(settings: &ListenerTls, protocols: Protocols) -> Result<Self, BadFile> {
        let settings = Arc::new(settings.clone());
        let files = ServerFiles::read(&settings)?;
        let trust = ClientTrust::new(&files.trust)?;
        let offer = Offer::new(&files, &trust, settings.clone(), protocols)?;
        Ok(Self {
            settings: ArcSwap::new(settings),
            protocols,
            offer: ArcSwap::from_pointee(offer),
            trust: Arc::new(ArcSwap::from_pointee(trust)),
            reading: Mutex::default(),
        })
    }

    /// Replaces the settings. They count once their files were read, by [`Self::renew`].
    pub fn set(&self, settings: &ListenerTls) {
        if **self.settings.load() != *settings {
            self.settings.store(Arc::new(settings.clone()));
        }
    }

    /// Reads the files again. Returns whether they or the settings have changed. Nothing changes if one of the files is bad.
    ///
    /// # Errors
    /// When one of the files cannot be used, or they do not belong together; or when nothing new is known and might be out of date.
    pub fn renew(&self) -> Result<bool, BadFile> {
        let _reading = self.reading.lock();
        let settings = self.settings.load_full();
        let files = ServerFiles::read(&settings)?;
        let (offer, trust) = (self.offer.load(), self.trust.load());
        let trust_changed = files.trust.version() != trust.version();
        if !trust_changed && files.version() == offer.version && settings == offer.settings {
            up_to_date(&settings.identity)?;
            settings.client_ca.as_ref().map_or(Ok(()), up_to_date)?;
            return Ok(false);
        }
        // The tickets of a trust that has not changed stay good.
        let trust = if trust_changed {
            Arc::new(ClientTrust::new(&files.trust)?)
        } else {
            trust.clone()
        };
        let offer = Offer::new(&files, &trust, settings, self.protocols)?;
        self.trust.store(trust);
        self.offer.store(Arc::new(offer));
        Ok(true)
    }

    /// Returns the configuration for one connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        let offer = self.offer.load();
        if !self.trust.load().wants_certificates() {
            return offer.config.clone();
        }
        let admission = Arc::new(Admission::new(self.trust.clone()));
        let builder = offer.builder.clone().with_client_cert_verifier(admission.clone());
        let mut config = configured(builder, &offer.certificates);
        config.ticketer = admission;
        config.alpn_protocols.clone_from(&offer.config.alpn_protocols);
        Arc::new(config)
    }

    /// Returns why clients will refuse the listener's certificate, or it theirs, now or soon.
    pub fn warnings(&self) -> Vec<String> {
        self.offer.load().warnings.clone()
    }

    /// Returns the certificates in use.
    pub(super) fn shown(&self) -> CertificateSet {
        self.offer.load().shown.clone()
    }

    /// Returns the paths of all files and sockets.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let settings = self.settings.load();
        let others = settings.others.iter();
        let others = others.flat_map(|files| [files.certificate_file.as_path(), &files.private_key_file]);
        let clients = settings.client_ca.iter().map(Supply::path);
        let clients = clients.chain(settings.client_crl.as_deref());
        let all = settings.identity.paths().into_iter().chain(others).chain(clients);
        all.map(Path::to_owned).collect()
    }
}

impl ServerFiles {
    fn read(settings: &ListenerTls) -> Result<Self, BadFile> {
        Ok(Self {
            first: IdentityFiles::read(&settings.identity)?,
            others: settings
                .others
                .iter()
                .map(IdentityFiles::of_files)
                .collect::<Result<_, _>>()?,
            trust: TrustFiles::read(settings)?,
        })
    }

    fn identities(&self) -> impl Iterator<Item = &IdentityFiles> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn version(&self) -> Vec<[u128; 2]> {
        self.identities().map(IdentityFiles::version).collect()
    }

    fn certificates(&self) -> Result<Certificates, BadFile> {
        let others: Result<Vec<_>, _> = self.others.iter().map(IdentityFiles::signer).collect();
        Ok(Certificates::new(self.first.signer()?, others?))
    }

    fn warnings(&self) -> Result<Vec<String>, BadFile> {
        let mut warnings = Vec::new();
        for IdentityFiles { certificate, .. } in self.identities() {
            warnings.extend(validity::doubt(certificate.path(), &certificate.chain()?));
        }
        warnings.extend(self.trust.warnings()?);
        Ok(warnings)
    }

    fn shown(&self) -> Result<CertificateSet, BadFile> {
        let mut chain = Vec::new();
        for IdentityFiles { certificate, .. } in self.identities() {
            chain.extend(Certificate::all(certificate.path(), &certificate.chain()?));
        }
        Ok(CertificateSet {
            authorities: self.trust.shown()?,
            chain,
            fault: None,
        })
    }
}

impl Offer {
    fn new(
        files: &ServerFiles,
        trust: &ClientTrust,
        settings: Arc<ListenerTls>,
        protocols: &[&[u8]],
    ) -> Result<Self, BadFile> {
        let versions: &[_] = match settings.oldest {
            TlsVersion::V1_2 => &[&TLS13, &TLS12],
            TlsVersion::V1_3 => &[&TLS13],
        };
        let certificates: Arc<dyn ResolvesServerCert> = Arc::new(files.certificates()?);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .map_err(|_| {
                files
                    .first
                    .certificate
                    .bad(format!("its key cannot be used ({KEY_KINDS})"))
            })?;
        let mut config = configured(
            builder.clone().with_client_cert_verifier(trust.clients()),
            &certificates,
        );
        config.ticketer = trust.tickets();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self {
            settings,
            version: files.version(),
            builder,
            certificates,
            config: Arc::new(config),
            warnings: files.warnings()?,
            shown: files.shown()?,
        })
    }
}

fn configured(
    builder: ConfigBuilder<ServerConfig, WantsServerCert>,
    certificates: &Arc<dyn ResolvesServerCert>,
) -> ServerConfig {
    let mut config = builder.with_cert_resolver(certificates.clone());
    // Clients keep the state for resumption in their tickets, so it costs the relay no memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = TICKETS;
    config
}
