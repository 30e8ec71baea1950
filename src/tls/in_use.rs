// SPDX-License-Identifier: Apache-2.0
//! The certificates in use, for operators.
//!
//! Owns what is known of each: its file, its names, and when it is valid. Decides nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::pem_file::{BadFile, IdentityFiles, PemFile, up_to_date};
use super::validity::{self, Validity};
use crate::config::{CertificateFiles, Supply, Tls};

/// The certificates of all listeners and control planes, by who uses them.
#[derive(Debug, Default)]
pub struct InUse(Mutex<BTreeMap<String, CertificateSet>>);

/// The certificates of one listener, or towards one control plane.
#[derive(Clone, Debug, Default)]
pub struct CertificateSet {
    /// Whom the relay trusts.
    pub authorities: Vec<Certificate>,
    /// What it presents.
    pub chain: Vec<Certificate>,
    /// What is wrong with the files as they are now, if they cannot be used, or why they may be out of date.
    pub fault: Option<String>,
}

/// One certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The file.
    pub path: PathBuf,
    /// In hexadecimal.
    pub serial_number: String,
    /// Of its alternative names, the DNS names.
    pub dns_names: Vec<String>,
    /// Of its alternative names, the URIs.
    pub uri_names: Vec<String>,
    /// When it is valid.
    pub validity: Validity,
}

impl InUse {
    pub(super) fn put(&self, owner: &str, set: CertificateSet) {
        self.0.lock().insert(owner.to_owned(), set);
    }

    pub(super) fn fault(&self, owner: &str, fault: Option<String>) {
        self.0.lock().entry(owner.to_owned()).or_default().fault = fault;
    }

    /// Forgets whoever is not one of these.
    pub(super) fn keep(&self, owners: &[&str]) {
        self.0.lock().retain(|owner, _| owners.contains(&owner.as_str()));
    }

    /// Returns all of them.
    pub fn all(&self) -> BTreeMap<String, CertificateSet> {
        self.0.lock().clone()
    }

    /// Returns the files with certificates that have ended at this time in seconds since 1970, so that peers refuse them or nobody is
    /// trusted any more, and when they ended; and when the next one does. An authority that has ended beside others harms nobody.
    pub(super) fn ended(&self, now: u64) -> (BTreeMap<PathBuf, u64>, Option<u64>) {
        let mut all: Vec<(PathBuf, u64)> = Vec::new();
        for set in self.0.lock().values() {
            let own = set.chain.iter().map(|own| (own.path.clone(), own.validity.until));
            all.extend(own);
            let last = set.authorities.iter().max_by_key(|trusted| trusted.validity.until);
            all.extend(last.map(|trusted| (trusted.path.clone(), trusted.validity.until)));
        }
        let next = all.iter().map(|(_, until)| *until).filter(|until| *until >= now).min();
        let ended = all.into_iter().filter(|(_, until)| *until < now);
        (ended.collect(), next)
    }

    /// Returns when the first certificate of each file ends, in seconds since 1970.
    pub fn ends(&self) -> BTreeMap<PathBuf, u64> {
        let mut ends = BTreeMap::new();
        for set in self.0.lock().values() {
            for certificate in set.authorities.iter().chain(&set.chain) {
                let until = certificate.validity.until;
                let end = ends.entry(certificate.path.clone()).or_insert(until);
                *end = until.min(*end);
            }
        }
        ends
    }
}

impl CertificateSet {
    /// Reads the certificates towards a control plane.
    pub(super) fn towards(tls: &Tls) -> Self {
        let authorities = |supply: &Supply<PathBuf>| {
            let file = PemFile::authorities(supply)?;
            Ok::<_, BadFile>(Certificate::all(file.path(), &file.chain()?))
        };
        let chain = |supply: &Supply<CertificateFiles>| {
            let files = IdentityFiles::read(supply)?;
            let (chain, _) = files.certified()?;
            Ok::<_, BadFile>(Certificate::all(files.certificate.path(), &chain))
        };
        let authorities = tls.authorities.as_ref().map(authorities).transpose();
        let chain = tls.identity.as_ref().map(chain).transpose();
        let outdated = || {
            let authorities = tls.authorities.as_ref().map_or(Ok(()), up_to_date);
            authorities.and(tls.identity.as_ref().map_or(Ok(()), up_to_date)).err()
        };
        let fault = authorities.as_ref().err().or(chain.as_ref().err()).cloned();
        let fault = fault.or_else(outdated).map(|fault| fault.to_string());
        Self {
            authorities: authorities.ok().flatten().unwrap_or_default(),
            chain: chain.ok().flatten().unwrap_or_default(),
            fault,
        }
    }
}

impl Certificate {
    /// Describes the certificates of a file. One that cannot be read is left out.
    pub(super) fn all(path: &Path, chain: &[CertificateDer<'_>]) -> Vec<Self> {
        chain
            .iter()
            .filter_map(|certificate| Self::of(path, certificate))
            .collect()
    }

    fn of(path: &Path, certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = EndEntityCert::try_from(certificate).ok()?;
        // A leading zero only says that the number is not negative.
        let serial = parsed.serial();
        let digits = serial
            .strip_prefix(&[0])
            .filter(|rest| !rest.is_empty())
            .unwrap_or(serial);
        Some(Self {
            path: path.to_owned(),
            serial_number: digits.iter().map(|byte| format!("{byte:02x}")).collect(),
            dns_names: parsed.valid_dns_names().map(str::to_owned).collect(),
            uri_names: parsed.valid_uri_names().map(str::to_owned).collect(),
            validity: validity::of(certificate)?,
        })
    }
}
