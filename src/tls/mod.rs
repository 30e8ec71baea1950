// SPDX-License-Identifier: Apache-2.0
//! Certificates and keys in files or from a SPIFFE Workload API, and the TLS configuration of listeners.
//!
//! Owns the one provider of cryptography, the reading of PEM files, again when they change, and the error texts for bad files.
//! Knows nothing of sockets.

mod certificates;
mod in_use;
mod pem_file;
mod provider;
mod renewal;
mod results;
mod server;
mod spiffe;
mod trust;
mod validity;
mod words;
mod workload;

use std::path::PathBuf;

use rustls::RootCertStore;

use crate::config::{CertificateFiles, Supply, Tls};
pub use in_use::{Certificate, CertificateSet, InUse};
pub use pem_file::{BadFile, Certified};
use pem_file::{IdentityFiles, PemFile};
pub use provider::provider;
pub use renewal::Renewal;
pub use results::result;
pub use server::{Protocols, ServerTls};
pub use spiffe::SpiffeVerifier;
pub use validity::Validity;
pub use words::{handshake, said, words};

/// The ALPN name of HTTP/2, for gRPC and polling clients.
pub const HTTP2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1, for polling clients.
pub const HTTP1: &[u8] = b"http/1.1";

/// Reads the certificate authorities to trust.
///
/// # Errors
/// When the file cannot be read, or has no certificate or a bad one.
pub fn authorities(supply: &Supply<PathBuf>) -> Result<RootCertStore, BadFile> {
    PemFile::authorities(supply)?.roots()
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// When one of the files cannot be read, has no certificate or key, or the key does not belong to the certificate.
pub fn identity(supply: &Supply<CertificateFiles>) -> Result<Certified, BadFile> {
    IdentityFiles::read(supply)?.certified()
}

/// Reads the files for connections to a control plane. Returns what is wrong, and why the control plane or the relay will
/// refuse the connection now or soon.
#[must_use]
pub fn inspect(tls: &Tls) -> (Vec<BadFile>, Vec<String>) {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let authorities = |supply| {
        let file = PemFile::authorities(supply)?;
        file.roots()?;
        Ok((file.path().to_owned(), file.chain()?))
    };
    let chain = |supply| {
        let files = IdentityFiles::read(supply)?;
        Ok((files.certificate.path().to_owned(), files.certified()?.0))
    };
    for read in [
        tls.authorities.as_ref().map(authorities),
        tls.identity.as_ref().map(chain),
    ] {
        match read {
            Some(Ok((path, chain))) => warnings.extend(validity::ends(&path, &chain)),
            Some(Err(error)) => faults.push(error),
            None => {}
        }
    }
    (faults, warnings)
}
