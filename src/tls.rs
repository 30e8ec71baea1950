//! Certificates and keys in files, and the TLS configuration of listeners.
//!
//! Owns the one provider of cryptography, the reading of PEM files, and the error texts for bad files. Knows nothing of sockets
//! and peers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::config::{Identity, ListenerTls};

/// A file of certificates or keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
}

/// The TLS configuration of a listener.
#[derive(Debug)]
pub struct Offer {
    /// The configuration for each of its connections.
    pub config: Arc<ServerConfig>,
    /// Why clients will reject its certificate.
    pub warning: Option<String>,
}

/// A chain of certificates, the listener's or client's own one first, and its key.
pub type Certified = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The ALPN name of HTTP/2, for gRPC and polling clients.
pub const HTTP2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1, for polling clients.
pub const HTTP1: &[u8] = b"http/1.1";

/// A client resumes with the latest ticket only, and each ticket costs one more record on both sides.
const TICKETS: usize = 1;
const KEY_KINDS: &str = "PKCS#8, SEC1 or RSA, in PEM";

/// Returns the one provider of cryptography.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// Reads the certificate authorities to trust.
///
/// # Errors
/// When the file cannot be read, or has no certificate or a bad one.
pub fn authorities(path: &Path) -> Result<RootCertStore, BadFile> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in chain(path)?.into_iter().enumerate() {
        let bad = |error| bad(path, format!("certificate {} in it is not a CA: {error}", at + 1));
        roots.add(certificate).map_err(bad)?;
    }
    Ok(roots)
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// When one of the files cannot be read, or has no certificate or key.
pub fn identity(identity: &Identity) -> Result<Certified, BadFile> {
    Ok((chain(&identity.certificate_file)?, key(&identity.private_key_file)?))
}

/// Creates the TLS configuration of a listener with these files.
///
/// # Errors
/// When one of the files cannot be used, or the key does not belong to the certificate.
pub fn listener(tls: &ListenerTls) -> Result<Offer, BadFile> {
    let provider = provider();
    let (certificate, key) = (&tls.identity.certificate_file, &tls.identity.private_key_file);
    let (chain, private_key) = identity(&tls.identity)?;
    let warning = doubt(certificate, &chain, &provider)?;
    let clients = match &tls.client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(path) => WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider.clone())
            .build()
            .map_err(|error| bad(path, error.to_string()))?,
    };
    let unfit = |error| {
        let why = if matches!(error, Error::InconsistentKeys(_)) {
            format!(
                "it is not the key of the first certificate in {}",
                certificate.display()
            )
        } else {
            error.to_string()
        };
        bad(key, why)
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, private_key)
        .map_err(unfit)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    // Clients keep the state for resumption in their tickets, so it costs the relay no memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Ticketer::new().map_err(unfit)?;
    config.send_tls13_tickets = TICKETS;
    Ok(Offer {
        config: Arc::new(config),
        warning,
    })
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadFile> {
    let text = read(path)?;
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| bad(path, error.to_string()))?;
    if chain.is_empty() {
        return Err(bad(path, "there is no certificate in it; it must be PEM".to_owned()));
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, BadFile> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let why = if !matches!(error, pem::Error::NoItemsFound) {
            error.to_string()
        } else if text.windows(9).any(|word| word == b"ENCRYPTED") {
            "the key in it is encrypted; write it without a password, with mode 0600".to_owned()
        } else {
            format!("there is no private key in it ({KEY_KINDS})")
        };
        bad(path, why)
    })
}

fn read(path: &Path) -> Result<Vec<u8>, BadFile> {
    std::fs::read(path).map_err(|error| bad(path, format!("cannot be read: {error}")))
}

/// Returns why clients will reject the certificate, for reasons that do not depend on which authorities they trust.
fn doubt(path: &Path, chain: &[CertificateDer<'_>], provider: &CryptoProvider) -> Result<Option<String>, BadFile> {
    let Some((own, others)) = chain.split_first() else {
        return Ok(None);
    };
    let parsed = ParsedCertificate::try_from(own);
    let parsed = parsed.map_err(|error| bad(path, format!("the first certificate in it is bad: {error}")))?;
    let algorithms = provider.signature_verification_algorithms.all;
    // No authority is trusted here, so a good certificate fails only with an unknown issuer.
    let nobody = RootCertStore::empty();
    let wrong = |at: UnixTime| {
        let judged = verify_server_cert_signed_by_trust_anchor(&parsed, &nobody, others, at, algorithms);
        let Err(Error::InvalidCertificate(error)) = judged else {
            return None;
        };
        flaw(&error)
    };
    let now = UnixTime::now();
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + SOON);
    let path = path.display();
    Ok(match (wrong(now), wrong(soon)) {
        (Some(flaw), _) => Some(format!("{path}: clients will refuse it: {flaw}")),
        (None, Some(EXPIRED)) => Some(format!("{path}: it expires within 14 days; renew it")),
        (None, _) => None,
    })
}

const EXPIRED: &str = "certificate expired";
/// A certificate that ends within this time deserves a warning.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// Returns what is wrong with a certificate, if clients refuse it whomever they trust.
const fn flaw(error: &CertificateError) -> Option<&'static str> {
    if matches!(
        error,
        CertificateError::Expired | CertificateError::ExpiredContext { .. }
    ) {
        Some(EXPIRED)
    } else if matches!(
        error,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }
    ) {
        Some("certificate not valid yet")
    } else if matches!(
        error,
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. }
    ) {
        Some("certificate not meant for servers: its extended key usage lacks serverAuth")
    } else {
        None
    }
}

fn bad(path: &Path, why: String) -> BadFile {
    BadFile {
        path: path.to_owned(),
        why,
    }
}
