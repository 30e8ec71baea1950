//! TLS towards a control plane.
//!
//! Owns whom we trust. Refuses to know sockets.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

use super::failure::Failure;

/// What gRPC servers agree on.
const HTTP2: &[u8] = b"h2";

/// Reads whom to trust, anew for every connection: the file may have been replaced.
pub(super) async fn connector(host: &str, authorities: Option<&Path>) -> Result<TlsConnector, Failure> {
    let (host, authorities) = (host.to_owned(), authorities.map(Path::to_owned));
    let failed = Failure::Tls {
        host: host.clone(),
        why: "the thread that reads the authorities ended".to_owned(),
    };
    let built = tokio::task::spawn_blocking(move || build(&host, authorities.as_deref())).await;
    built.map_err(|_| failed)?.map(TlsConnector::from)
}

fn build(host: &str, authorities: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    let tls = |error: rustls::Error| Failure::Tls {
        host: host.to_owned(),
        why: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls)?;
    let builder = match authorities {
        Some(path) => builder.with_root_certificates(read(path)?),
        None => builder.with_platform_verifier().map_err(tls)?,
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![HTTP2.to_vec()];
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
