//! CSDS on the admin address, over gRPC and as JSON.
//!
//! Owns the paths. What is answered is in `census`.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tonic::Code;

use super::Shown;
use crate::census::{ClientStatus, ClientStatusServer, SERVICE};

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

async fn json(State(shown): State<Shown>, body: Bytes) -> Response {
    match shown.status.answer_json(&body).await {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(status) => {
            let code = if status.code() == Code::InvalidArgument {
                StatusCode::BAD_REQUEST
            } else if status.code() == Code::ResourceExhausted {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            (code, format!("{}\n", status.message())).into_response()
        }
    }
}
