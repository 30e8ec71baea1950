// SPDX-License-Identifier: Apache-2.0
//! CSDS on the admin address, over gRPC and as JSON.
//!
//! Asks `census`, which owns what is answered.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use tower::Service as _;

use super::Shown;
use super::forms::{self, Answered};
use super::written::{self, Page};
use crate::census::{ClientStatusServer, Document};

/// Answers a call. Whoever reaches this has passed the rules of the admin address.
pub(super) async fn grpc(State(shown): State<Shown>, request: Request) -> Result<Response<Body>, Infallible> {
    let mut server = ClientStatusServer::new(shown.status, Arc::new(|| Ok(())));
    Ok(server.call(request).await?.map(Body::new))
}

pub(super) async fn json(State(shown): State<Shown>, body: Bytes) -> Answered {
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
