// SPDX-License-Identifier: Apache-2.0
//! CSDS on the address of the listeners (S-10).
//!
//! Owns that only clients that a rule allows may ask, at each question. What is answered is in `census`.

use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt as _;
use tonic::Status;
use tower::ServiceExt as _;

use super::{HttpResult, refusal};
use crate::census::ClientStatusServer;
use crate::clock;
use crate::downstream::bearer::identified;
use crate::downstream::body::Body;
use crate::downstream::portion::Allotment;
use crate::downstream::questions::allowed;
use crate::downstream::request_body::RequestBody;
use crate::downstream::shared::Shared;

/// Answers one call.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<RequestBody>, portion: Arc<Allotment>) -> HttpResult {
    let path = request.uri().path().to_owned();
    Ok(match ask(&shared, request, &portion).await {
        Ok(response) => response,
        Err(status) => {
            tracing::debug!(path, %status, "call refused");
            refusal(&status)
        }
    })
}

async fn ask(
    shared: &Arc<Shared>,
    request: Request<RequestBody>,
    portion: &Allotment,
) -> Result<http::Response<Body>, Status> {
    let stay = portion.guest.stream(clock::now()).map_err(|full| full.status())?;
    let identity = identified(shared, portion, request.headers());
    let identity = identity.map_err(|token| Status::unauthenticated(token.say(None)))?;
    let allowed = allowed(shared, &identity);
    allowed()?;
    let server = ClientStatusServer::new(shared.status.clone(), allowed);
    let answered = server.oneshot(request).await.unwrap_or_else(|never| match never {});
    // The call counts as a stream until its answer has been sent.
    let answered = answered.map(|body| {
        let counted = body.map_frame(move |frame| {
            let _ = &stay;
            frame
        });
        Body::Small(tonic::body::Body::new(counted))
    });
    Ok(answered)
}
