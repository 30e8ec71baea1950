// SPDX-License-Identifier: Apache-2.0
//! TLS towards a control plane.
//!
//! Owns which authorities are trusted and which certificate the relay presents. Knows nothing of sockets.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

use super::failure::Failure;
use crate::config::Tls;
use crate::tls::{self, BadFile, SpiffeVerifier};

/// Reads the authorities, the certificate and its key anew for every connection: they may have been replaced.
pub(super) async fn connector(host: &str, settings: &Tls, protocol: &'static [u8]) -> Result<TlsConnector, Failure> {
    let (host, settings) = (host.to_owned(), settings.clone());
    let failed = Failure::Tls {
        host: host.clone(),
        why: "the thread that reads the certificates ended".to_owned(),
    };
    let built = tokio::task::spawn_blocking(move || secured(&host, &settings, protocol)).await;
    built.map_err(|_| failed)?.map(TlsConnector::from)
}

/// Reads the files once, for connections to a server that is called so.
///
/// # Errors
/// They cannot be used.
pub fn secured(host: &str, settings: &Tls, protocol: &[u8]) -> Result<Arc<ClientConfig>, Failure> {
    let failed = |why: &str| Failure::Tls {
        host: host.to_owned(),
        why: why.to_owned(),
    };
    let unusable = |_| failed("the library of TLS does not take these settings");
    let builder = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match &settings.authorities {
        Some(supply) => {
            let failed = |BadFile { path, why }| Failure::Authorities { path, why };
            let authorities = tls::authorities(supply).map_err(failed)?;
            match &settings.spiffe_id {
                Some(id) => {
                    let verifier = SpiffeVerifier::new(id.clone(), authorities);
                    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
                }
                None => builder.with_root_certificates(authorities),
            }
        }
        None => builder
            .with_platform_verifier()
            .map_err(|_| failed("the system's trusted authorities cannot be read; set `ca_certificate_file`"))?,
    };
    let mut config = match &settings.identity {
        Some(identity) => {
            let unread = |BadFile { path, why }| Failure::Identity { path, why };
            let (chain, key) = tls::identity(identity).map_err(unread)?;
            builder.with_client_auth_cert(chain, key).map_err(unusable)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}
