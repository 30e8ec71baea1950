// SPDX-License-Identifier: Apache-2.0
//! One look at the keys that an issuer publishes: a request over HTTPS, and its answer.
//!
//! Owns how long it may take, how large the answer may be, and that no answer leads elsewhere. Knows nothing of keys.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::clock;
use crate::config::JwksUri;
use crate::small_file;
use crate::tls::HTTP1;
use crate::upstream::{Failure, connect, host};

/// Why no keys came.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoKeys {
    #[error(transparent)]
    Unreached(#[from] Failure),
    #[error("the token for it, {0}")]
    Token(String),
    #[error("it does not speak HTTP/1.1: {0}")]
    Broken(#[from] hyper::Error),
    #[error("it leads elsewhere ({0} to `{1}`), and that is not followed; write the address of the keys themselves")]
    Elsewhere(u16, String),
    #[error("it answers {0}")]
    Status(u16),
    #[error("its answer has a content encoding, which nobody asked for")]
    Encoded,
    #[error("its answer has more than {} bytes", small_file::BYTES_MAX)]
    Large,
    #[error("its answer breaks off: {0}")]
    Torn(String),
    #[error("it has not answered within {WITHIN:?}")]
    Slow,
}

/// How long connecting, asking and the answer may take together.
const WITHIN: Duration = Duration::from_secs(10);
const SHOWN_CHARS_MAX: usize = 200;

/// Asks once.
pub(super) async fn fetch(from: &JwksUri) -> Result<Bytes, NoKeys> {
    clock::timeout(WITHIN, ask(from)).await.unwrap_or(Err(NoKeys::Slow))
}

async fn ask(from: &JwksUri) -> Result<Bytes, NoKeys> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = from.path.clone().into();
    let headers = request.headers_mut();
    let agent = HeaderValue::from_static(concat!("distributary/", env!("CARGO_PKG_VERSION")));
    headers.insert(USER_AGENT, agent);
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/jwk-set+json, application/json"),
    );
    let authority = from.endpoint.authority(None);
    if let Ok(host) = HeaderValue::try_from(authority) {
        headers.insert(HOST, host);
    }
    if let Some(token) = token(from).await? {
        headers.insert(AUTHORIZATION, token);
    }
    let name = host(&from.endpoint);
    let connected = connect(&from.endpoint, name, &from.credentials, HTTP1, Duration::ZERO).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(connected.io)).await?;
    let asked = async {
        let answer = sender.send_request(request).await?;
        let (head, body) = answer.into_parts();
        match head.status.as_u16() {
            200 if head.headers.contains_key(CONTENT_ENCODING) => return Err(NoKeys::Encoded),
            200 => {}
            status @ 300..400 => return Err(NoKeys::Elsewhere(status, location(&head.headers))),
            status => return Err(NoKeys::Status(status)),
        }
        let body = Limited::new(body, small_file::BYTES_MAX).collect().await;
        Ok(body.map_err(|error| torn(&*error))?.to_bytes())
    };
    tokio::pin!(asked);
    // The answer may be there although the connection has ended.
    tokio::select! {
        biased;
        answer = &mut asked => answer,
        _ = connection => asked.await,
    }
}

fn torn(error: &(dyn std::error::Error + Send + Sync + 'static)) -> NoKeys {
    match error.is::<LengthLimitError>() {
        true => NoKeys::Large,
        false => NoKeys::Torn(error.to_string()),
    }
}

/// Returns where an answer leads, for people.
fn location(headers: &HeaderMap) -> String {
    let place = headers.get(LOCATION).map_or(&b""[..], HeaderValue::as_bytes);
    let place = place.escape_ascii().to_string();
    place.chars().take(SHOWN_CHARS_MAX).collect()
}

/// Returns the relay's own token, read anew: it is replaced while it is valid.
async fn token(from: &JwksUri) -> Result<Option<HeaderValue>, NoKeys> {
    let Some(path) = from.token_file.clone() else {
        return Ok(None);
    };
    let shown = path.display().to_string();
    let bad = |why: &str| NoKeys::Token(format!("{shown}: {why}"));
    let text = small_file::text(path, small_file::BYTES_MAX).await;
    let text = text.map_err(|error| bad(&format!("cannot be read: {error}")))?;
    let header = HeaderValue::try_from(format!("Bearer {}", text.trim()));
    let mut header = header.map_err(|_| bad("has characters that no header may have"))?;
    header.set_sensitive(true);
    Ok(Some(header))
}
