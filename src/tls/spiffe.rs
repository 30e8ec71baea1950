// SPDX-License-Identifier: Apache-2.0
//! Servers that are known by a SPIFFE id instead of a name.
//!
//! Owns the check that a server's certificate has that id, and no other. Whom to trust is configured.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::EndEntityCert;

use super::provider::provider;

/// Checks that the certificate of a server is of a trusted authority, and that its only URI is a SPIFFE id.
#[derive(Debug)]
pub struct SpiffeVerifier {
    id: String,
    authorities: RootCertStore,
}

/// A certificate of another workload, or of none.
#[derive(Debug)]
pub(super) struct OtherId {
    expected: String,
    presented: Vec<String>,
}

impl SpiffeVerifier {
    /// Creates the check for one id.
    #[must_use]
    pub const fn new(id: String, authorities: RootCertStore) -> Self {
        Self { id, authorities }
    }
}

impl fmt::Display for OtherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let theirs = match self.presented.as_slice() {
            [] => "no SPIFFE id at all".to_owned(),
            [one] => one.clone(),
            several => format!("several URIs ({}), where SPIFFE allows one", several.join(", ")),
        };
        write!(f, "is for {theirs}, not for {}", self.expected)
    }
}

impl std::error::Error for OtherId {}

impl ServerCertVerifier for SpiffeVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let algorithms = provider().signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(own)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.authorities, others, now, algorithms)?;
        let parsed = EndEntityCert::try_from(own).map_err(|_| CertificateError::BadEncoding)?;
        let presented: Vec<String> = parsed.valid_uri_names().map(str::to_owned).collect();
        if presented == [self.id.as_str()] {
            return Ok(ServerCertVerified::assertion());
        }
        let other = OtherId {
            expected: self.id.clone(),
            presented,
        };
        Err(CertificateError::Other(OtherError(Arc::new(other))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
