// SPDX-License-Identifier: Apache-2.0
//! gRPC health checks on the address of the listeners.
//!
//! Owns the service names that can be checked, and that a call waits only for its own client. Does not decide when the relay is
//! ready.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use tokio::sync::watch;
use tonic::{Request, Response};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health as Service, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower::ServiceExt as _;

use super::{HttpResult, in_time, refusal};
use crate::clock;
use crate::downstream::body::Body;
use crate::downstream::request_body::RequestBody;
use crate::downstream::services;
use crate::telemetry::{Health, HealthState, RelayStatus};

/// The calls of the health service.
#[derive(Clone, Debug)]
pub(super) struct HealthCalls(HealthServer<Checks>);

/// The most bytes of a request, which has only the name of one service.
const REQUEST_BYTES_MAX: usize = 4096;

impl HealthCalls {
    pub(super) fn new(health: Arc<Health>, transport_v2: bool) -> Self {
        Self(HealthServer::new(Checks::new(health, transport_v2)))
    }

    /// Answers one call, and logs it like calls on the admin address. While the request arrives, the call holds only what it has
    /// received, and nothing that others need.
    pub(super) async fn answer(self, request: http::Request<RequestBody>) -> HttpResult {
        let (path, begun) = (request.uri().path().to_owned(), clock::now());
        let response = match whole(request).await {
            Ok(request) => {
                let answered = self.0.oneshot(request).await;
                answered.unwrap_or_else(|never| match never {}).map(Body::Small)
            }
            Err(status) => refusal(&status),
        };
        let took = clock::now().saturating_duration_since(begun);
        tracing::debug!(path, status = response.status().as_u16(), ?took, "small call");
        Ok(response)
    }
}

/// Reads the body, and returns the complete request.
async fn whole(request: http::Request<RequestBody>) -> Result<http::Request<Full<Bytes>>, tonic::Status> {
    let (head, body) = request.into_parts();
    match in_time(Limited::new(body, REQUEST_BYTES_MAX).collect()).await? {
        Ok(body) => Ok(http::Request::from_parts(head, Full::new(body.to_bytes()))),
        Err(error) if error.is::<LengthLimitError>() => Err(tonic::Status::resource_exhausted(format!(
            "a request to the health service has at most {REQUEST_BYTES_MAX} bytes"
        ))),
        Err(error) => Err(tonic::Status::cancelled(format!("the request ended early: {error}"))),
    }
}

/// The health service.
#[derive(Clone, Debug)]
struct Checks {
    health: Arc<Health>,
    names: Arc<BTreeSet<&'static str>>,
}

impl Checks {
    fn new(health: Arc<Health>, transport_v2: bool) -> Self {
        let whole = std::iter::once("");
        let names = whole.chain(services::names(transport_v2)).collect();
        Self {
            health,
            names: Arc::new(names),
        }
    }
}

fn answer(known: bool, status: RelayStatus) -> HealthCheckResponse {
    let status = match (known, status) {
        (false, _) => ServingStatus::ServiceUnknown,
        (true, RelayStatus::Ready) => ServingStatus::Serving,
        (true, RelayStatus::Starting | RelayStatus::Draining) => ServingStatus::NotServing,
    };
    HealthCheckResponse { status: status.into() }
}

type HealthAnswers = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, tonic::Status>> + Send>>;

#[tonic::async_trait]
impl Service for Checks {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, tonic::Status> {
        let service = &request.get_ref().service;
        if self.names.contains(service.as_str()) {
            return Ok(Response::new(answer(true, self.health.status())));
        }
        let shown: String = service.chars().take(100).collect();
        Err(tonic::Status::not_found(format!("there is no service `{shown}` here")))
    }

    type WatchStream = HealthAnswers;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthAnswers>, tonic::Status> {
        let known = self.names.contains(request.get_ref().service.as_str());
        Ok(Response::new(Box::pin(watch_status(known, self.health.watch()))))
    }
}

/// Returns a stream of the current answer and its changes. It ends after the last change, so as not to hold the connection.
fn watch_status(
    known: bool,
    state: watch::Receiver<HealthState>,
) -> impl Stream<Item = Result<HealthCheckResponse, tonic::Status>> + Send {
    stream::unfold((state, None), move |(mut state, said)| async move {
        loop {
            let now = *state.borrow_and_update();
            let next = answer(known, now.status());
            if said != Some(next) {
                return Some((Ok(next), (state, Some(next))));
            }
            if now.is_last() || state.changed().await.is_err() {
                return None;
            }
        }
    })
}
