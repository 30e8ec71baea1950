//! Certificates and keys in files, and the TLS configuration of listeners.
//!
//! Owns the one provider of cryptography, the reading of PEM files, and the error texts for bad files. Knows nothing of sockets
//! and peers.

mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::config::{Identity, ListenerTls, Tls};
pub use words::{handshake, said, words};

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
    /// Why clients will reject its certificate, or it theirs.
    pub warnings: Vec<String>,
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
    roots(path, &chain(path)?)
}

fn roots(path: &Path, chain: &[CertificateDer<'static>]) -> Result<RootCertStore, BadFile> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in chain.iter().enumerate() {
        let bad = |_| bad(path, format!("certificate {} in it is not a CA", at + 1));
        roots.add(certificate.clone()).map_err(bad)?;
    }
    Ok(roots)
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// When one of the files cannot be read, has no certificate or key, or the key does not belong to the certificate.
pub fn identity(identity: &Identity) -> Result<Certified, BadFile> {
    let (chain, key) = (chain(&identity.certificate_file)?, key(&identity.private_key_file)?);
    if chain
        .first()
        .is_some_and(|own| ParsedCertificate::try_from(own).is_err())
    {
        let why = "the first certificate in it is bad".to_owned();
        return Err(bad(&identity.certificate_file, why));
    }
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider()).map_err(|error| {
        let why = if matches!(error, Error::InconsistentKeys(_)) {
            let certificate = identity.certificate_file.display();
            format!("it is not the key of the first certificate in {certificate}")
        } else {
            "the private key in it, or its certificate, cannot be used".to_owned()
        };
        bad(&identity.private_key_file, why)
    })?;
    Ok((chain, key))
}

/// Reads the files for connections to a control plane. Returns what is wrong, and why the control plane or the relay will
/// refuse the connection now or soon.
#[must_use]
pub fn inspect(tls: &Tls) -> (Vec<BadFile>, Vec<String>) {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    if let Some(path) = &tls.ca_certificate_file {
        match chain(path).and_then(|chain| roots(path, &chain).map(|_| chain)) {
            Ok(chain) => warnings.extend(ends(path, &chain)),
            Err(error) => faults.push(error),
        }
    }
    if let Some(files) = &tls.identity {
        match identity(files) {
            Ok((chain, _)) => warnings.extend(ends(&files.certificate_file, &chain)),
            Err(error) => faults.push(error),
        }
    }
    (faults, warnings)
}

/// Creates the TLS configuration of a listener with these files.
///
/// # Errors
/// When one of the files cannot be used, or the key does not belong to the certificate.
pub fn listener(tls: &ListenerTls) -> Result<Offer, BadFile> {
    let provider = provider();
    let files = &tls.identity;
    let (chain, private_key) = identity(files)?;
    let mut warnings: Vec<String> = doubt(&files.certificate_file, &chain, &provider).into_iter().collect();
    let clients = match &tls.client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(path) => {
            let authorities = self::chain(path)?;
            warnings.extend(ends(path, &authorities));
            let roots = roots(path, &authorities)?;
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|_| bad(path, "the certificates in it cannot be used".to_owned()))?
        }
    };
    let unfit = |_| bad(&files.private_key_file, format!("it cannot be used ({KEY_KINDS})"));
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
        warnings,
    })
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadFile> {
    let text = read(path)?;
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| bad(path, garbled(&error)))?;
    if chain.is_empty() {
        return Err(bad(path, "there is no certificate in it; it must be PEM".to_owned()));
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, BadFile> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let why = if !matches!(error, pem::Error::NoItemsFound) {
            garbled(&error)
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

/// Returns what is wrong with a text that should be PEM.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
fn garbled(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it is cut off: a BEGIN line has no END line".to_owned(),
        pem::Error::IllegalSectionStart { .. } => "it has a BEGIN line that is not PEM".to_owned(),
        pem::Error::Base64Decode(_) => "what is between BEGIN and END is not base64".to_owned(),
        _ => "it is not PEM".to_owned(),
    }
}

/// Returns why clients will reject the certificate, for reasons that do not depend on which authorities they trust.
fn doubt(path: &Path, chain: &[CertificateDer<'_>], provider: &CryptoProvider) -> Option<String> {
    let (own, others) = chain.split_first()?;
    let parsed = ParsedCertificate::try_from(own).ok()?;
    let wrong = |at| flaw(&parsed, others, at, provider);
    let path = path.display();
    match (wrong(now()), wrong(soon())) {
        (Some(flaw), _) => Some(format!("{path}: clients will refuse it: certificate {}", flaw.words())),
        (None, Some(_)) => Some(format!("{path}: it expires within 14 days; renew it")),
        (None, None) => None,
    }
}

/// Returns which certificates of a file have expired or will soon.
fn ends<'a>(path: &'a Path, chain: &'a [CertificateDer<'_>]) -> impl Iterator<Item = String> + use<'a> {
    let provider = provider();
    chain.iter().enumerate().filter_map(move |(at, certificate)| {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let timely = |flaw: &Flaw| *flaw != Flaw::Purpose;
        let wrong = |at| flaw(&parsed, &[], at, &provider).filter(timely);
        let what = format!("{}: certificate {} in it", path.display(), at + 1);
        match (wrong(now()), wrong(soon())) {
            (Some(Flaw::Early), _) => Some(format!("{what} is not valid yet")),
            (Some(_), _) => Some(format!("{what} has expired; renew it")),
            (None, Some(_)) => Some(format!("{what} expires within 14 days; renew it")),
            (None, None) => None,
        }
    })
}

/// A certificate that ends within this time deserves a warning.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

fn now() -> UnixTime {
    UnixTime::now()
}

fn soon() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(now().as_secs()) + SOON)
}

/// What is wrong with a certificate, whomever the peer trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Expired,
    Early,
    /// It is not meant for servers.
    Purpose,
}

impl Flaw {
    const fn words(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Early => "not valid yet",
            Self::Purpose => "not meant for servers: its extended key usage lacks serverAuth",
        }
    }
}

/// Returns what is wrong with a certificate at this time. Its validity is looked at first, and its purpose after that.
fn flaw(
    parsed: &ParsedCertificate<'_>,
    others: &[CertificateDer<'_>],
    at: UnixTime,
    provider: &CryptoProvider,
) -> Option<Flaw> {
    let algorithms = provider.signature_verification_algorithms.all;
    // No authority is trusted here, so a good certificate fails only with an unknown issuer.
    let nobody = RootCertStore::empty();
    let judged = verify_server_cert_signed_by_trust_anchor(parsed, &nobody, others, at, algorithms);
    let Err(Error::InvalidCertificate(error)) = judged else {
        return None;
    };
    let expired = matches!(
        error,
        CertificateError::Expired | CertificateError::ExpiredContext { .. }
    );
    let early = matches!(
        error,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }
    );
    let purpose = matches!(
        error,
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. }
    );
    match (expired, early, purpose) {
        (true, ..) => Some(Flaw::Expired),
        (_, true, _) => Some(Flaw::Early),
        (.., true) => Some(Flaw::Purpose),
        (false, false, false) => None,
    }
}

fn bad(path: &Path, why: String) -> BadFile {
    BadFile {
        path: path.to_owned(),
        why,
    }
}
