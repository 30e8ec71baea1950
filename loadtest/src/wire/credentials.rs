// SPDX-License-Identifier: Apache-2.0
//! What clients show a server over TLS: nothing, or a certificate, one for all or one for each. Those of files are read when their
//! client connects, and those that are signed here are made then, so a fleet needs no memory for the certificates of all.
//!
//! Owns the files and the certificate authority. Knows nothing of connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;

use crate::wire::pattern::Pattern;

/// Whose certificate a client shows.
pub(crate) enum Credentials {
    None,
    /// In PEM files.
    Files {
        certificate: Pattern,
        key: Pattern,
    },
    /// Each client has its own.
    Signed(Box<ClientAuthority>),
}

/// A certificate with those that lead to its root, and its key.
pub(crate) type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Credentials {
    /// Whether each client shows another certificate.
    pub(crate) fn differ(&self) -> bool {
        match self {
            Self::None => false,
            Self::Files { certificate, key } => !certificate.is_same() || !key.is_same(),
            Self::Signed(_) => true,
        }
    }

    /// Returns what a client shows.
    pub(crate) fn of(&self, number: u32) -> anyhow::Result<Option<Shown>> {
        Ok(match self {
            Self::None => None,
            Self::Files { certificate, key } => {
                Some((certificates(&certificate.path(number))?, read_key(&key.path(number))?))
            }
            Self::Signed(authority) => Some(authority.sign(number)?),
        })
    }

    /// Returns the files of a client.
    pub(crate) fn files(&self, number: u32) -> Vec<PathBuf> {
        match self {
            Self::None | Self::Signed(_) => Vec::new(),
            Self::Files { certificate, key } => vec![certificate.path(number), key.path(number)],
        }
    }
}

/// Signs certificates of clients.
pub(crate) struct ClientAuthority {
    issuer: Issuer<'static, KeyPair>,
    chain: Vec<CertificateDer<'static>>,
    /// The name in each client's certificate.
    names: Pattern,
}

/// For how long a certificate is good; a client that comes back has a new one.
const LIFE: Duration = Duration::from_secs(3600);
/// The clock of the server may be late by so much.
const SKEW: Duration = Duration::from_secs(300);

impl ClientAuthority {
    /// Reads the certificate and the key of the authority from PEM files, and checks that they belong together.
    pub(crate) fn read(certificate: &Path, key: &Path, names: Pattern) -> anyhow::Result<Self> {
        let chain = certificates(certificate)?;
        let own = chain
            .first()
            .with_context(|| format!("{}: there is no certificate in it", certificate.display()))?;
        let text = std::fs::read_to_string(key).with_context(|| format!("cannot read {}", key.display()))?;
        let pair =
            KeyPair::from_pem(&text).with_context(|| format!("{}: there is no usable key in it", key.display()))?;
        let issuer = Issuer::from_ca_cert_der(own, pair).with_context(|| certificate.display().to_string())?;
        let authority = Self { issuer, chain, names };
        let signed = authority.sign(0)?;
        let is_own = authority.verify(&signed);
        is_own.with_context(|| {
            format!(
                "a certificate that {} signs is not accepted where {} is trusted: do the two belong together?",
                key.display(),
                certificate.display()
            )
        })?;
        Ok(authority)
    }

    /// Creates the certificate and the key of a client.
    fn sign(&self, number: u32) -> anyhow::Result<Shown> {
        let name = self.names.of(number);
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![match name.contains("://") {
            true => SanType::URI(ia5(&name)?),
            false => SanType::DnsName(ia5(&name)?),
        }];
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("client {number}"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let since = unix_now();
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + since.saturating_sub(SKEW);
        params.not_after = epoch + since.saturating_add(LIFE);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let mut chain = vec![certificate.der().clone()];
        chain.extend(self.chain.iter().cloned());
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        Ok((chain, key))
    }

    /// Checks a certificate as a server does that trusts this authority.
    fn verify(&self, (chain, _): &Shown) -> anyhow::Result<()> {
        let mut roots = rustls::RootCertStore::empty();
        let (leaf, above) = chain.split_first().context("there is no certificate")?;
        for root in above {
            roots.add(root.clone())?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        verifier.verify_client_cert(leaf, above, UnixTime::since_unix_epoch(unix_now()))?;
        Ok(())
    }
}

fn ia5(name: &str) -> anyhow::Result<Ia5String> {
    let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(fits, "the name of a client must be ASCII without blanks, not `{name}`");
    Ok(Ia5String::try_from(name)?)
}

/// Reads the certificates in a PEM file.
pub(super) fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = || format!("cannot read {}", file.display());
    CertificateDer::pem_file_iter(file)
        .with_context(read)?
        .collect::<Result<_, _>>()
        .with_context(read)
}

/// Reads the private key in a PEM file.
pub(crate) fn read_key(file: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(file).with_context(|| format!("cannot read {}", file.display()))
}

#[expect(clippy::disallowed_methods, reason = "a certificate is good for a time of day")]
fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
