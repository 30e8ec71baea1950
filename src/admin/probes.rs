// SPDX-License-Identifier: Apache-2.0
//! The address of the probes: for a kubelet and a Prometheus, which need not reach more than that.
//!
//! Owns its four paths, and that connections are few and short: strangers may reach it. Does not ask who they are.

use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use axum::routing::get;

use super::{Shown, http, metrics, ready};

/// The most connections.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// How long a connection may take, from the first byte of the request to the last of the answer. There is one request on each.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);

/// Returns its paths.
pub(super) fn router(shown: Shown) -> Router {
    Router::new()
        .route("/ready", get(ready))
        .route("/live", get(async || "LIVE\n"))
        .route("/healthz", get(async || "LIVE\n"))
        .route("/metrics", get(metrics))
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
