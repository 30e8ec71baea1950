//! TLS towards a control plane.
//!
//! Owns whom we trust and what we show of ourselves. Refuses to know sockets.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

use super::failure::Failure;
use crate::config::{Identity, Tls};

/// What gRPC servers agree on, and what all others do.
pub(super) const HTTP2: &[u8] = b"h2";
pub(super) const HTTP1: &[u8] = b"http/1.1";

/// Reads whom to trust and who we are, anew for every connection: the files may have been replaced.
pub(super) async fn connector(host: &str, settings: &Tls, protocol: &'static [u8]) -> Result<TlsConnector, Failure> {
    let (host, settings) = (host.to_owned(), settings.clone());
    let failed = Failure::Tls {
        host: host.clone(),
        why: "the thread that reads the certificates ended".to_owned(),
    };
    let built = tokio::task::spawn_blocking(move || build(&host, &settings, protocol)).await;
    built.map_err(|_| failed)?.map(TlsConnector::from)
}

fn build(host: &str, settings: &Tls, protocol: &[u8]) -> Result<Arc<ClientConfig>, Failure> {
    let tls = |error: rustls::Error| Failure::Tls {
        host: host.to_owned(),
        why: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls)?;
    let builder = match &settings.ca_certificate_file {
        Some(path) => builder.with_root_certificates(read(path)?),
        None => builder.with_platform_verifier().map_err(tls)?,
    };
    let mut config = match &settings.identity {
        Some(identity) => {
            let (chain, key) = read_identity(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(tls)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, Failure> {
    let failed = |why: String| Failure::Authorities {
        path: path.to_owned(),
        why,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}

fn read_identity(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let failed = |path: &Path, why: String| Failure::Identity {
        path: path.to_owned(),
        why,
    };
    let path = &identity.certificate_file;
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| failed(path, error.to_string()))?;
    if chain.is_empty() {
        return Err(failed(path, "there is no certificate in it".to_owned()));
    }
    let path = &identity.private_key_file;
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| failed(path, error.to_string()))?;
    Ok((chain, key))
}
