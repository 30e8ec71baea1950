// SPDX-License-Identifier: Apache-2.0
//! CSDS on the admin address, over gRPC and as JSON.
//!
//! Owns the paths. What is answered is in `census`.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;

use super::Shown;
use super::forms::{self, Answered};
use super::written::{self, Page};
use crate::census::{ClientStatus, ClientStatusServer, Document, SERVICE, StatusMethod};

/// The path for questions as JSON.
pub(super) const JSON_PATH: &str = "/v3/discovery:client_status";

/// Returns the routes.
pub(super) fn router(status: ClientStatus) -> Router<Shown> {
    // Whoever reaches this has passed the rules of the admin address.
    let server = ClientStatusServer::new(status, Arc::new(|| Ok(())));
    Router::new()
        .route_service(&format!("/{SERVICE}/{{method}}"), server)
        .route(JSON_PATH, post(json))
}

/// Whether a request with this path only looks at something, whatever its method.
pub(super) fn only_looks(path: &str) -> bool {
    let service = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
    path == JSON_PATH || service.is_some_and(|method| method.starts_with('/'))
}

/// Whether a request with this path asks again and again.
pub(super) fn is_stream(path: &str) -> bool {
    StatusMethod::of(path) == Some(StatusMethod::Stream)
}

async fn json(State(shown): State<Shown>, body: Bytes) -> Answered {
    let document = shown.status.document(&body);
    let document = document.map_err(|status| forms::wrong(format!("{}\n", status.message())))?;
    written::answer(shown.status.questions(), "application/json", |page| {
        write(document, page)
    })
    .await
}

async fn write(mut document: Document, mut page: Page) -> Page {
    while let Some(text) = document.next().await {
        page.write(&text).await;
    }
    page
}
