// SPDX-License-Identifier: Apache-2.0
//! The counters of TLS handshakes with clients: the relay's own, and gRPC's (A118).
//!
//! Owns their names, and gRPC's words for how a handshake ends. Does not know how a fault of TLS becomes one of them.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::labels::{Labels, WordCounters, register};
use crate::xds::worded;

/// The relay's own words for how a handshake ends.
const RESULTS: &str = "full resumed timeout crowded not_tls no_tls_here no_certificate bad_certificate refused_by_client \
    incompatible closed invalid";

worded! {
/// A118: how a TLS handshake ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeResult {
    /// There is no better word.
    UnknownFailure = "UNKNOWN_FAILURE",
    /// There is a connection.
    Success = "SUCCESS",
    /// The certificate of the peer is not accepted, for a reason that is none of the following.
    CertificateVerificationFailed = "CERTIFICATE_VERIFICATION_FAILED",
    /// It was revoked.
    CertificateRevoked = "CERTIFICATE_REVOKED",
    /// It has expired.
    CertificateExpired = "CERTIFICATE_EXPIRED",
    /// It is not valid yet.
    CertificateNotYetValid = "CERTIFICATE_NOT_YET_VALID",
    /// It is of an authority that is not trusted.
    CertificateAuthorityInvalid = "CERTIFICATE_AUTHORITY_INVALID",
    /// It is for another name.
    CertificateHostnameMismatch = "CERTIFICATE_HOSTNAME_MISMATCH",
    /// It cannot be read, or is not meant for this.
    CertificateMalformed = "CERTIFICATE_MALFORMED",
    /// The peers have no cipher in common.
    CipherSuiteMismatch = "CIPHER_SUITE_MISMATCH",
    /// The peers have no version of TLS in common.
    ProtocolVersionUnsupported = "PROTOCOL_VERSION_UNSUPPORTED",
    /// The peer says that an older version than possible was chosen.
    InappropriateFallback = "INAPPROPRIATE_FALLBACK",
    /// The peers have no protocol in common (ALPN).
    NoApplicationProtocol = "NO_APPLICATION_PROTOCOL",
    /// A signature is wrong.
    SignatureVerificationFailed = "SIGNATURE_VERIFICATION_FAILED",
    /// A record cannot be decrypted.
    DecryptionFailed = "DECRYPTION_FAILED",
    /// The peers could not agree on keys.
    KeyExchangeFailure = "KEY_EXCHANGE_FAILURE",
    /// A message came that cannot come there, or is none of TLS.
    UnexpectedMessage = "UNEXPECTED_MESSAGE",
    /// It was not finished in time.
    HandshakeTimeout = "HANDSHAKE_TIMEOUT",
    /// The peer closed the connection.
    PeerConnectionClosed = "PEER_CONNECTION_CLOSED",
}
}

/// The counters of handshakes with clients.
#[derive(Debug)]
pub struct HandshakeCounters {
    own: WordCounters,
    grpc: Family<Labels<2>, Counter>,
}

impl HandshakeCounters {
    /// Adds the counter with gRPC's name to `registry`, and the relay's own to the one with its prefix.
    pub(super) fn register(registry: &mut Registry, prefix: &str) -> Self {
        let grpc = "TLS handshakes with clients, with the words of gRPC; a failed one counts as full";
        let grpc = register(registry, "grpc_server_tls_handshakes", grpc, Family::default());
        let own = registry.sub_registry_with_prefix(prefix);
        let help = "TLS handshakes with clients, and those that failed";
        let handshakes = Self {
            own: WordCounters::new("result", RESULTS).register(own, "tls_handshakes", help),
            grpc,
        };
        for result in HandshakeResult::ALL {
            drop(handshakes.grpc(result, false));
        }
        drop(handshakes.grpc(HandshakeResult::Success, true));
        handshakes
    }

    /// Counts a connection that was established.
    pub fn established(&self, resumed: bool) {
        self.own.of(if resumed { "resumed" } else { "full" }).inc();
        self.grpc(HandshakeResult::Success, resumed).inc();
    }

    /// Counts a connection that was not established. It has no result if the peer and the relay did not both want TLS.
    pub fn failed(&self, reason: &'static str, result: Option<HandshakeResult>) {
        self.own.of(reason).inc();
        if let Some(result) = result {
            self.grpc(result, false).inc();
        }
    }

    /// Returns the number of handshakes with this result, in the relay's own words.
    pub fn count(&self, result: &'static str) -> u64 {
        self.own.of(result).get()
    }

    fn grpc(&self, result: HandshakeResult, resumed: bool) -> Counter {
        let resumed = if resumed { "RESUMED_HANDSHAKE" } else { "FULL_HANDSHAKE" };
        let labels = [
            ("grpc_tls_handshake_result", result.word().to_owned()),
            ("grpc_tls_handshake_resumed", resumed.to_owned()),
        ];
        self.grpc.get_or_create(&labels).clone()
    }
}
