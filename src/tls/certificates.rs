// SPDX-License-Identifier: Apache-2.0
//! The certificates of a listener, by the names that clients ask for (SNI).
//!
//! Owns which one a client is shown. Does not check whether it is valid: the client does.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;
use webpki::EndEntityCert;

/// The certificates of a listener.
#[derive(Debug)]
pub(super) struct Certificates {
    /// For clients that ask for no name, or for one that no certificate has.
    first: Arc<CertifiedKey>,
    others: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    pub(super) fn new(first: CertifiedKey, others: impl IntoIterator<Item = CertifiedKey>) -> Self {
        Self {
            first: Arc::new(first),
            others: others.into_iter().map(Arc::new).collect(),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().filter(|_| !self.others.is_empty());
        let name = name.and_then(|name| ServerName::try_from(name).ok());
        // Of two certificates for one name, the client may be able to check the signatures of only one.
        let suits = |key: &CertifiedKey| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let found = name.and_then(|name| {
            let mut all = std::iter::once(&self.first).chain(&self.others);
            all.find(|key| is_for(key, &name) && suits(key))
        });
        Some(found.unwrap_or(&self.first).clone())
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let parsed = key.cert.first().and_then(|own| EndEntityCert::try_from(own).ok());
    parsed.is_some_and(|own| own.verify_is_valid_for_subject_name(name).is_ok())
}
