// SPDX-License-Identifier: Apache-2.0
//! Why a TLS connection failed, in plain words.
//!
//! Owns the translation of the library's errors. Does not decide what follows.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use super::spiffe::OtherId;

/// Returns the error of TLS, or none if the socket failed.
#[must_use]
pub fn said(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// Returns why a handshake with `peer` (`server` or `client`) failed.
#[must_use]
pub fn handshake(error: &io::Error, peer: &str) -> String {
    match said(error) {
        Some(error) => words(error, peer),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("the {peer} closed the connection in the middle of it")
        }
        None => error.to_string(),
    }
}

/// Returns what is wrong. `peer` is `server` or `client`.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
pub fn words(error: &Error, peer: &str) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error, peer),
        Error::AlertReceived(alert) => refused(*alert, peer),
        Error::InvalidMessage(_) => format!("what the {peer} sent is not TLS"),
        Error::NoCertificatesPresented => format!("the {peer} shows no certificate"),
        Error::PeerIncompatible(_) => format!("the {peer} and the relay have no TLS version or cipher in common"),
        Error::NoApplicationProtocol => format!("the {peer} does not offer HTTP/2 (`h2` in ALPN)"),
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => format!("the {peer} broke the rules of TLS"),
        _ => "an internal error of TLS".to_owned(),
    }
}

/// Returns a name of a certificate without the library's form of it: `DnsName("a")` is `a`.
fn plain(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
fn certificate(error: &CertificateError, peer: &str) -> String {
    use CertificateError as Kind;
    let flaw = match error {
        Kind::Expired | Kind::ExpiredContext { .. } => "has expired",
        Kind::NotValidYet | Kind::NotValidYetContext { .. } => "is not valid yet; is the clock of this machine right?",
        // An authority that is trusted may have the name, but not the key, of the one that signed it.
        Kind::UnknownIssuer | Kind::BadSignature => "is signed by no authority that the relay trusts",
        Kind::NotValidForName => "is for another name",
        Kind::NotValidForNameContext { expected, presented } => {
            let theirs = match presented.as_slice() {
                [] => "no name at all".to_owned(),
                names => names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
            };
            return format!(
                "the {peer}'s certificate is for {theirs}, not for {}",
                expected.to_str()
            );
        }
        Kind::Revoked => "was revoked",
        Kind::UnknownRevocationStatus => "is by an authority of which the relay has no revocation list",
        Kind::Other(other) if other.0.is::<OtherId>() => return format!("the {peer}'s certificate {}", other.0),
        Kind::InvalidPurpose | Kind::InvalidPurposeContext { .. } => {
            return format!("the {peer}'s certificate is not meant for a {peer} (extended key usage)");
        }
        _ => "cannot be used",
    };
    format!("the {peer}'s certificate {flaw}")
}

/// Returns why the peer gave up.
#[expect(clippy::wildcard_enum_match_arm, reason = "the protocol adds alerts")]
fn refused(alert: AlertDescription, peer: &str) -> String {
    use AlertDescription as Alert;
    let why = match alert {
        Alert::CertificateRequired | Alert::NoCertificate => "wants a certificate, and the relay showed none",
        Alert::UnknownCA => "does not trust the authority that signed the relay's certificate",
        Alert::CertificateExpired => "says that the relay's certificate has expired",
        Alert::CertificateRevoked => "says that the relay's certificate was revoked",
        Alert::BadCertificate | Alert::UnsupportedCertificate | Alert::CertificateUnknown | Alert::AccessDenied => {
            "does not accept the relay's certificate"
        }
        Alert::UnrecognisedName => "does not know the name that it was asked for",
        Alert::NoApplicationProtocol => "does not offer HTTP/2 (`h2` in ALPN)",
        Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "finds no TLS version or cipher in common"
        }
        other => return format!("the {peer} gave up with TLS alert {}", u8::from(other)),
    };
    format!("the {peer} {why}")
}
