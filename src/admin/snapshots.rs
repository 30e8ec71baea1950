//! `/snapshots`: what is known of each view, for a relay that starts and has no snapshot of its own.
//!
//! Owns the form of the answer, and who gets keys and certificates. Does not know what is in a snapshot.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::guard::{self, Visitor};
use super::orders::Access;
use super::{Shown, forms};
use crate::clock;
use crate::config::AdminAction;
use crate::telemetry::Status;

/// The snapshots of all views.
#[derive(Clone)]
pub struct Snapshots(Arc<dyn Fn(bool) -> Vec<Encode> + Send + Sync>);

/// Encodes the snapshot of one view.
pub type Encode = Box<dyn FnOnce() -> Vec<u8> + Send>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    secrets: bool,
}

/// How many are answered at a time: while one is taken, a snapshot of a view is in memory once more.
static TAKING: Semaphore = Semaphore::const_new(2);
/// How long the others wait for their turn. They are patient for twice as long.
const TURN: Duration = Duration::from_secs(1);

impl Snapshots {
    /// Creates what `list` returns, with keys and certificates or without.
    #[must_use]
    pub fn new(list: impl Fn(bool) -> Vec<Encode> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }
}

impl Default for Snapshots {
    /// None.
    fn default() -> Self {
        Self::new(|_| Vec::new())
    }
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshots")
    }
}

/// Returns the routes.
pub(super) fn router(access: Access) -> Router<Shown> {
    let taken = async move |State(shown): State<Shown>,
                            Extension(visitor): Extension<Visitor>,
                            headers: HeaderMap,
                            wanted: Result<Query<Wanted>, QueryRejection>| {
        let Ok(Query(Wanted { secrets })) = wanted else {
            return forms::bad("write /snapshots or /snapshots?secrets=true\n");
        };
        if secrets && let Some(refused) = no_secrets(&shown, &visitor, &headers, access) {
            return refused;
        }
        answer(&shown, secrets).await
    };
    Router::new().route("/snapshots", get(taken))
}

/// Refuses keys and certificates without TLS, and to whom no rule allows them.
fn no_secrets(shown: &Shown, visitor: &Visitor, headers: &HeaderMap, access: Access) -> Option<Response> {
    if matches!(access, Access::Plain(_)) {
        let why = "keys and certificates are given over TLS only; add `admin.tls`, or ask without secrets=true\n";
        return Some((StatusCode::FORBIDDEN, why).into_response());
    }
    let judged = guard::judge(&shown.guard, visitor, headers, AdminAction::Secrets);
    judged.err().map(|refused| *refused)
}

/// Each snapshot stands behind its length, as eight bytes, the least first.
async fn answer(shown: &Shown, secrets: bool) -> Response {
    if shown.health.status() == Status::Starting {
        let why = "this relay is starting itself, and has no snapshot to give\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let Some(Ok(turn)) = clock::timeout(TURN, TAKING.acquire()).await else {
        let why = "two others take snapshots; ask again in a few seconds\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], why).into_response();
    };
    let snapshots = (shown.snapshots.0)(secrets);
    tracing::info!(views = snapshots.len(), secrets, "another relay takes snapshots");
    let parts = stream::iter(snapshots).then(async |encode| {
        let encoded = tokio::task::spawn_blocking(encode)
            .await
            .map_err(std::io::Error::other)?;
        let length = Bytes::copy_from_slice(&(encoded.len() as u64).to_le_bytes());
        Ok::<_, std::io::Error>([length, Bytes::from(encoded)])
    });
    let parts = parts.flat_map(move |part| {
        // The turn lasts as long as the body.
        let _ = &turn;
        stream::iter(match part {
            Ok(both) => both.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    (kind, Body::from_stream(parts)).into_response()
}
