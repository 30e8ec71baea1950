// SPDX-License-Identifier: Apache-2.0
//! How a TLS handshake with a client failed, in the words of gRPC (A118).
//!
//! Owns the translation of the library's errors. Counts nothing.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible, PeerMisbehaved};

use super::words::said;
use crate::telemetry::HandshakeResult;

/// Returns why a handshake failed.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
pub fn result(error: &io::Error) -> HandshakeResult {
    let Some(error) = said(error) else {
        return HandshakeResult::PeerConnectionClosed;
    };
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        // There is no word for a peer without a certificate.
        Error::NoCertificatesPresented => HandshakeResult::CertificateVerificationFailed,
        Error::AlertReceived(alert) => refused(*alert),
        Error::PeerIncompatible(why) => incompatible(why),
        Error::PeerMisbehaved(how) => misbehaved(how),
        Error::NoApplicationProtocol => HandshakeResult::NoApplicationProtocol,
        Error::DecryptError => HandshakeResult::DecryptionFailed,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerSentOversizedRecord => HandshakeResult::UnexpectedMessage,
        _ => HandshakeResult::UnknownFailure,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
const fn certificate(error: &CertificateError) -> HandshakeResult {
    use CertificateError as Kind;
    match error {
        Kind::Expired | Kind::ExpiredContext { .. } => HandshakeResult::CertificateExpired,
        Kind::NotValidYet | Kind::NotValidYetContext { .. } => HandshakeResult::CertificateNotYetValid,
        Kind::Revoked => HandshakeResult::CertificateRevoked,
        Kind::UnknownIssuer => HandshakeResult::CertificateAuthorityInvalid,
        Kind::BadSignature => HandshakeResult::SignatureVerificationFailed,
        Kind::NotValidForName | Kind::NotValidForNameContext { .. } => HandshakeResult::CertificateHostnameMismatch,
        Kind::BadEncoding
        | Kind::UnhandledCriticalExtension
        | Kind::InvalidPurpose
        | Kind::InvalidPurposeContext { .. } => HandshakeResult::CertificateMalformed,
        _ => HandshakeResult::CertificateVerificationFailed,
    }
}

/// What the peer says about the relay's own certificate is none of gRPC's words: they say what is wrong with the peer's.
#[expect(clippy::wildcard_enum_match_arm, reason = "the protocol adds alerts")]
const fn refused(alert: AlertDescription) -> HandshakeResult {
    use AlertDescription as Alert;
    match alert {
        Alert::ProtocolVersion => HandshakeResult::ProtocolVersionUnsupported,
        Alert::HandshakeFailure | Alert::InsufficientSecurity => HandshakeResult::CipherSuiteMismatch,
        Alert::InappropriateFallback => HandshakeResult::InappropriateFallback,
        Alert::NoApplicationProtocol => HandshakeResult::NoApplicationProtocol,
        Alert::DecryptError => HandshakeResult::SignatureVerificationFailed,
        Alert::DecryptionFailed | Alert::BadRecordMac => HandshakeResult::DecryptionFailed,
        Alert::UnexpectedMessage => HandshakeResult::UnexpectedMessage,
        Alert::CloseNotify | Alert::UserCanceled => HandshakeResult::PeerConnectionClosed,
        _ => HandshakeResult::UnknownFailure,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds reasons")]
const fn incompatible(why: &PeerIncompatible) -> HandshakeResult {
    use PeerIncompatible as Why;
    match why {
        Why::NoCipherSuitesInCommon => HandshakeResult::CipherSuiteMismatch,
        Why::ServerDoesNotSupportTls12Or13
        | Why::ServerTlsVersionIsDisabledByOurConfig
        | Why::SupportedVersionsExtensionRequired
        | Why::Tls12NotOffered
        | Why::Tls12NotOfferedOrEnabled => HandshakeResult::ProtocolVersionUnsupported,
        Why::EcPointsExtensionRequired
        | Why::KeyShareExtensionRequired
        | Why::NamedGroupsExtensionRequired
        | Why::NoEcPointFormatsInCommon
        | Why::NoKxGroupsInCommon
        | Why::UncompressedEcPointsRequired => HandshakeResult::KeyExchangeFailure,
        _ => HandshakeResult::UnknownFailure,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds reasons")]
const fn misbehaved(how: &PeerMisbehaved) -> HandshakeResult {
    use PeerMisbehaved as How;
    match how {
        How::InvalidKeyShare | How::MissingKeyShare | How::OfferedDuplicateKeyShares => {
            HandshakeResult::KeyExchangeFailure
        }
        How::SignedKxWithWrongAlgorithm | How::SignedHandshakeWithUnadvertisedSigScheme => {
            HandshakeResult::SignatureVerificationFailed
        }
        _ => HandshakeResult::UnexpectedMessage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_kinds_have_words() {
        let of = |error: Error| result(&io::Error::new(io::ErrorKind::InvalidData, error)).word();
        for (error, word) in [
            (
                Error::InvalidCertificate(CertificateError::Revoked),
                "CERTIFICATE_REVOKED",
            ),
            (
                Error::InvalidCertificate(CertificateError::UnknownRevocationStatus),
                "CERTIFICATE_VERIFICATION_FAILED",
            ),
            (Error::NoCertificatesPresented, "CERTIFICATE_VERIFICATION_FAILED"),
            (
                Error::PeerIncompatible(PeerIncompatible::Tls12NotOfferedOrEnabled),
                "PROTOCOL_VERSION_UNSUPPORTED",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "CIPHER_SUITE_MISMATCH",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon),
                "KEY_EXCHANGE_FAILURE",
            ),
            (Error::NoApplicationProtocol, "NO_APPLICATION_PROTOCOL"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "UNKNOWN_FAILURE"),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                "PROTOCOL_VERSION_UNSUPPORTED",
            ),
            (Error::PeerSentOversizedRecord, "UNEXPECTED_MESSAGE"),
            (Error::DecryptError, "DECRYPTION_FAILED"),
        ] {
            let said = error.to_string();
            assert_eq!(of(error), word, "{said}");
        }
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(result(&ended).word(), "PEER_CONNECTION_CLOSED");
    }
}
