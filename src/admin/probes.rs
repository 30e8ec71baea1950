//! The address of the probes: for a kubelet and a Prometheus, which need not reach more than that.
//!
//! Owns its four paths, and that connections are few and short: strangers may reach it. Does not ask who they are.

use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use axum::routing::get;
use axum::serve::Listener;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Shown, http};
use crate::clock;

/// The most connections; others wait in the system's queue.
const CONNECTIONS_MAX: usize = 256;
/// How long a connection may take, from the first byte of the request to the last of the answer. There is one request on each.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Returns its paths.
pub(super) fn router(shown: Shown) -> Router {
    Router::new()
        .route("/ready", get(http::ready))
        .route("/live", get(async || "LIVE\n"))
        .route("/healthz", get(async || "LIVE\n"))
        .route("/metrics", get(http::metrics))
        .fallback(async |uri: Uri| {
            let path = uri.path();
            let why = format!("{path} does not exist; here are only /ready, /live, /healthz and /metrics\n");
            (StatusCode::NOT_FOUND, why)
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let why = format!("{} does not allow {method}; use GET\n", uri.path());
            (StatusCode::METHOD_NOT_ALLOWED, why)
        })
        .with_state(shown)
        .layer(middleware::from_fn(http::trace))
}

/// Serves them at this listener.
pub(super) async fn serve<L: Listener>(mut listener: L, router: Router) {
    let mut answering = FuturesUnordered::new();
    loop {
        tokio::select! {
            (connection, _) = listener.accept(), if answering.len() < CONNECTIONS_MAX => {
                answering.push(answer(connection, router.clone()));
            }
            Some(()) = answering.next() => {}
        }
    }
}

/// Answers one request, and ends the connection.
async fn answer(connection: impl AsyncRead + AsyncWrite + Unpin + Send, router: Router) {
    let mut http = http1::Builder::new();
    let http = http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
    let answer = http.serve_connection(TokioIo::new(connection), TowerToHyperService::new(router));
    match clock::timeout(TIMEOUT, answer).await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "a connection of the probes failed"),
        None => tracing::debug!("a connection of the probes took too long"),
    }
}
