// SPDX-License-Identifier: Apache-2.0
//! PEM files: certificates, keys, authorities and revocation lists.
//!
//! Owns the error texts for files that cannot be used. Knows nothing of who uses what is in them.

use std::path::{Path, PathBuf};

use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use xxhash_rust::xxh3::xxh3_128;

use super::provider::provider;
use super::workload;
use crate::config::{CertificateFiles, Supply};
use crate::small_file;

/// A file of certificates or keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
}

/// A file as it was when it was read, or what a Workload API sent in its place.
#[derive(Clone)]
pub(super) struct PemFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The files of a certificate and its key.
#[derive(Clone)]
pub(super) struct IdentityFiles {
    pub(super) certificate: PemFile,
    private_key: PemFile,
}

/// A chain of certificates, the listener's or client's own one first, and its key.
pub type Certified = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub(super) const KEY_KINDS: &str = "PKCS#8, SEC1 or RSA, in PEM";

impl PemFile {
    pub(super) fn read(path: &Path) -> Result<Self, BadFile> {
        let bytes = small_file::read(path, small_file::BYTES_MAX);
        let bytes = bytes.map_err(|error| BadFile::new(path, format!("cannot be read: {error}")))?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
        })
    }

    /// Reads the authorities.
    pub(super) fn authorities(supply: &Supply<PathBuf>) -> Result<Self, BadFile> {
        match supply {
            Supply::Files(path) => Self::read(path),
            Supply::Workload(api) => Ok(workload::latest(api)?.authorities),
        }
    }

    /// Creates what was not read from a file.
    pub(super) fn made(path: &Path, text: String) -> Self {
        Self {
            path: path.to_owned(),
            bytes: text.into_bytes(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a value that changes with the content.
    pub(super) fn version(&self) -> u128 {
        xxh3_128(&self.bytes)
    }

    /// Returns the error of this file.
    pub(super) fn bad(&self, why: impl Into<String>) -> BadFile {
        BadFile::new(&self.path, why)
    }

    pub(super) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, BadFile> {
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        let chain = chain.map_err(|error| self.bad(garbled(&error)))?;
        if chain.is_empty() {
            return Err(self.bad("there is no certificate in it; it must be PEM"));
        }
        Ok(chain)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, BadFile> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| {
            self.bad(if !matches!(error, pem::Error::NoItemsFound) {
                garbled(&error)
            } else if self.bytes.windows(9).any(|word| word == b"ENCRYPTED") {
                "the key in it is encrypted; write it without a password, with mode 0600".to_owned()
            } else {
                format!("there is no private key in it ({KEY_KINDS})")
            })
        })
    }

    pub(super) fn roots(&self) -> Result<RootCertStore, BadFile> {
        let mut roots = RootCertStore::empty();
        for (at, certificate) in self.chain()?.into_iter().enumerate() {
            let bad = |_| self.bad(format!("certificate {} in it is not a CA", at + 1));
            roots.add(certificate).map_err(bad)?;
        }
        Ok(roots)
    }

    pub(super) fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, BadFile> {
        let lists: Result<Vec<_>, pem::Error> = CertificateRevocationListDer::pem_slice_iter(&self.bytes).collect();
        let lists = lists.map_err(|error| self.bad(garbled(&error)))?;
        if lists.is_empty() {
            return Err(self.bad("there is no revocation list in it; it must be PEM (`X509 CRL`)"));
        }
        Ok(lists)
    }
}

impl IdentityFiles {
    pub(super) fn read(supply: &Supply<CertificateFiles>) -> Result<Self, BadFile> {
        match supply {
            Supply::Files(files) => Self::of_files(files),
            Supply::Workload(api) => Ok(workload::latest(api)?.identity),
        }
    }

    pub(super) fn of_files(files: &CertificateFiles) -> Result<Self, BadFile> {
        Ok(Self::new(
            PemFile::read(&files.certificate_file)?,
            PemFile::read(&files.private_key_file)?,
        ))
    }

    pub(super) const fn new(certificate: PemFile, private_key: PemFile) -> Self {
        Self {
            certificate,
            private_key,
        }
    }

    /// Returns a value that changes with the content of each file.
    pub(super) fn version(&self) -> [u128; 2] {
        [self.certificate.version(), self.private_key.version()]
    }

    /// Returns the chain and its key.
    pub(super) fn certified(&self) -> Result<Certified, BadFile> {
        let (chain, key) = (self.certificate.chain()?, self.private_key.key()?);
        self.check(&chain, key.clone_key())?;
        Ok((chain, key))
    }

    /// Returns the same as [`Self::certified`], ready to sign with.
    pub(super) fn signer(&self) -> Result<CertifiedKey, BadFile> {
        let (chain, key) = (self.certificate.chain()?, self.private_key.key()?);
        self.check(&chain, key)
    }

    fn check(&self, chain: &[CertificateDer<'static>], key: PrivateKeyDer<'static>) -> Result<CertifiedKey, BadFile> {
        let own = chain.first();
        if own.is_some_and(|own| ParsedCertificate::try_from(own).is_err()) {
            return Err(self.certificate.bad("the first certificate in it is bad"));
        }
        CertifiedKey::from_der(chain.to_owned(), key, &provider()).map_err(|error| {
            self.private_key.bad(if matches!(error, Error::InconsistentKeys(_)) {
                let certificate = self.certificate.path().display();
                format!("it is not the key of the first certificate in {certificate}")
            } else {
                "the private key in it, or its certificate, cannot be used".to_owned()
            })
        })
    }
}

/// Returns an error if what is read from there may be out of date, although it can be used.
pub(super) fn up_to_date<F>(supply: &Supply<F>) -> Result<(), BadFile> {
    match supply {
        Supply::Files(_) => Ok(()),
        Supply::Workload(api) => workload::up_to_date(api),
    }
}

impl BadFile {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            why: why.into(),
        }
    }
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
