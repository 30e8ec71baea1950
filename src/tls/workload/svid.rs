// SPDX-License-Identifier: Apache-2.0
//! What a SPIFFE Workload API sends: one or more identities of the relay, as the PEM files in which they could stand.
//!
//! Owns what makes a message unusable. A message is a whole state: one bad SVID makes all of it bad.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::proto::spiffe::workload::{X509svid, X509svidResponse};
use crate::tls::pem_file::{BadFile, IdentityFiles, PemFile};

/// A certificate with its key, and whom to trust.
#[derive(Clone)]
pub(in crate::tls) struct Svid {
    id: String,
    hint: String,
    pub(in crate::tls) identity: IdentityFiles,
    pub(in crate::tls) authorities: PemFile,
}

/// Returns all SVIDs in a message, or what is wrong with it.
pub(super) fn read(origin: &Path, message: &X509svidResponse) -> Result<Vec<Svid>, String> {
    if message.svids.is_empty() {
        return Err("there is no SVID in it".to_owned());
    }
    let svids = message.svids.iter().map(|svid| {
        let bad = |BadFile { why, .. }| format!("{}: {why}", svid.spiffe_id.escape_debug());
        Svid::read(origin, svid).map_err(bad)
    });
    svids.collect()
}

/// Returns the SVID with this hint, or the first one.
pub(super) fn choose(svids: &[Svid], hint: Option<&str>) -> Result<Svid, String> {
    let found = svids.iter().find(|svid| hint.is_none_or(|hint| svid.hint == hint));
    found.cloned().ok_or_else(|| {
        let known = svids.iter().map(|svid| format!("`{}` ({})", svid.hint, svid.id));
        let (hint, known) = (hint.unwrap_or_default(), known.collect::<Vec<_>>().join(", "));
        format!(
            "no SVID has the hint `{hint}` of `spiffe`; there are {}",
            known.escape_debug()
        )
    })
}

impl Svid {
    fn read(origin: &Path, svid: &X509svid) -> Result<Self, BadFile> {
        let certificates = |der: &[u8], what: &str| {
            let parts = split(der).filter(|parts| !parts.is_empty());
            let parts = parts.ok_or_else(|| BadFile::new(origin, format!("its {what} is not DER")))?;
            let text: String = parts.iter().map(|der| pem("CERTIFICATE", der)).collect();
            Ok(PemFile::made(origin, text))
        };
        let private_key = PemFile::made(origin, pem("PRIVATE KEY", &svid.x509_svid_key));
        let read = Self {
            id: svid.spiffe_id.clone(),
            hint: svid.hint.clone(),
            identity: IdentityFiles::new(certificates(&svid.x509_svid, "certificate")?, private_key),
            authorities: certificates(&svid.bundle, "bundle")?,
        };
        read.identity.certified()?;
        read.authorities.roots()?;
        Ok(read)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// Splits certificates in DER that stand one after the other.
fn split(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at_checked(length(bytes)?)?;
        parts.push(part);
        bytes = rest;
    }
    Some(parts)
}

const SEQUENCE: u8 = 0x30;

/// Returns the length of the sequence with which these bytes begin, its head included.
fn length(bytes: &[u8]) -> Option<usize> {
    let (&[SEQUENCE, first], rest) = bytes.split_first_chunk()? else {
        return None;
    };
    if first < 0x80 {
        return Some(2 + usize::from(first));
    }
    let digits = rest.get(..usize::from(first & 0x7f))?;
    if !(1..=4).contains(&digits.len()) {
        return None;
    }
    let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
    length.checked_add(2 + digits.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_one_after_the_other() {
        let short = [&[SEQUENCE, 2][..], &[1, 2]].concat();
        let long = [&[SEQUENCE, 0x82, 1, 0][..], &[7; 256]].concat();
        assert_eq!(split(&[]), Some(Vec::new()));
        assert_eq!(
            split(&[&short[..], &long, &short].concat()),
            Some(vec![&short[..], &long, &short])
        );
        for cut in 1..long.len() {
            assert_eq!(split(&long[..cut]), None, "{cut}");
        }
        for bad in [
            &[2, 1, 0][..],
            &[SEQUENCE, 0x80],
            &[SEQUENCE, 0x85, 0, 0, 0, 0, 0],
            &[SEQUENCE, 0xff],
        ] {
            assert_eq!(split(bad), None, "{bad:?}");
        }
    }
}
