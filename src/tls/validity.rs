// SPDX-License-Identifier: Apache-2.0
//! When certificates are valid, and what they are meant for.
//!
//! Owns the warnings of certificates that peers refuse or will soon refuse. Does not know whom a peer trusts.

use std::path::Path;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::provider::provider;

/// Returns why clients will reject the certificate, for reasons that do not depend on which authorities they trust.
pub(super) fn doubt(path: &Path, chain: &[CertificateDer<'_>]) -> Option<String> {
    let (own, others) = chain.split_first()?;
    let parsed = ParsedCertificate::try_from(own).ok()?;
    let wrong = |at| flaw(&parsed, others, at);
    let path = path.display();
    match (wrong(now()), wrong(soon(own))) {
        (Some(flaw), _) => Some(format!("{path}: clients will refuse it: certificate {}", flaw.words())),
        (None, Some(_)) => Some(format!("{path}: it ends in {}; renew it", left(own))),
        (None, None) => None,
    }
}

/// Returns which certificates of a file have expired or will soon.
pub(super) fn ends<'a>(path: &'a Path, chain: &'a [CertificateDer<'_>]) -> impl Iterator<Item = String> + use<'a> {
    chain.iter().enumerate().filter_map(|(at, certificate)| {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let timely = |flaw: &Flaw| *flaw != Flaw::Purpose;
        let wrong = |at| flaw(&parsed, &[], at).filter(timely);
        let what = format!("{}: certificate {} in it", path.display(), at + 1);
        match (wrong(now()), wrong(soon(certificate))) {
            (Some(Flaw::Early), _) => Some(format!("{what} is not valid yet")),
            (Some(_), _) => Some(format!("{what} has expired; renew it")),
            (None, Some(_)) => Some(format!("{what} ends in {}; renew it", left(certificate))),
            (None, None) => None,
        }
    })
}

/// A certificate that ends within this time deserves a warning,
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// or within such a part of its life, if that is less: certificates that live for hours are renewed before.
const LAST_PART: u64 = 3;

fn now() -> UnixTime {
    UnixTime::now()
}

/// Returns when a certificate must still be valid if it deserves no warning.
fn soon(certificate: &CertificateDer<'_>) -> UnixTime {
    let life = of(certificate).map_or(u64::MAX, |validity| validity.until.saturating_sub(validity.from));
    let left = SOON.min(Duration::from_secs(life / LAST_PART));
    UnixTime::since_unix_epoch(Duration::from_secs(now().as_secs()) + left)
}

/// Returns how long a certificate is still valid, in words.
fn left(certificate: &CertificateDer<'_>) -> String {
    let until = of(certificate).map_or(0, |validity| validity.until);
    span(until.saturating_sub(now().as_secs()))
}

/// Returns a time in the unit in which a person would tell it.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        172_800.. => format!("{} days", seconds / 86_400),
    }
}

/// When a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub from: u64,
    /// Its last second.
    pub until: u64,
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
fn flaw(parsed: &ParsedCertificate<'_>, others: &[CertificateDer<'_>], at: UnixTime) -> Option<Flaw> {
    let error = error(parsed, others, at)?;
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

fn error(parsed: &ParsedCertificate<'_>, others: &[CertificateDer<'_>], at: UnixTime) -> Option<CertificateError> {
    let algorithms = provider().signature_verification_algorithms.all;
    // No authority is trusted here, so a good certificate fails only with an unknown issuer.
    let nobody = RootCertStore::empty();
    match verify_server_cert_signed_by_trust_anchor(parsed, &nobody, others, at, algorithms) {
        Err(Error::InvalidCertificate(error)) => Some(error),
        Ok(()) | Err(_) => None,
    }
}

/// Returns when a certificate is valid. None if it cannot be read.
pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let at = |seconds| error(&parsed, &[], UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
    // The library tells these times only with the error that it is too early or too late.
    let (Some(CertificateError::ExpiredContext { not_after, .. }), early) = (at(u64::MAX), at(0)) else {
        return None;
    };
    let from = match early {
        Some(CertificateError::NotValidYetContext { not_before, .. }) => not_before.as_secs(),
        Some(_) | None => 0,
    };
    Some(Validity {
        from,
        until: not_after.as_secs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_is_left() {
        let told = [0, 75, 119, 120, 7_199, 7_200, 172_799, 172_800, 1_209_599].map(span);
        assert_eq!(
            told,
            [
                "0 s", "75 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days", "13 days"
            ]
        );
    }
}
