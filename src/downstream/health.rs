//! gRPC health checks on the address of the data.
//!
//! Owns the names that can be asked for. Refuses to know what makes the relay ready.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::stream;
use tokio::sync::watch;
use tonic::{Request, Response};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health as Service;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::services;
use crate::telemetry::{Health, Status};

/// The health service.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    health: Arc<Health>,
    names: Arc<BTreeSet<&'static str>>,
}

impl Checks {
    pub(super) fn new(health: Arc<Health>, transport_v2: bool) -> Self {
        let whole = std::iter::once("");
        let names = whole.chain(services::names(transport_v2)).collect();
        Self {
            health,
            names: Arc::new(names),
        }
    }
}

fn answer(known: bool, status: Status) -> HealthCheckResponse {
    let status = match (known, status) {
        (false, _) => ServingStatus::ServiceUnknown,
        (true, Status::Ready) => ServingStatus::Serving,
        (true, Status::Starting | Status::Draining) => ServingStatus::NotServing,
    };
    HealthCheckResponse { status: status.into() }
}

type Answers = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, tonic::Status>> + Send>>;

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

    type WatchStream = Answers;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Answers>, tonic::Status> {
        let known = self.names.contains(request.get_ref().service.as_str());
        Ok(Response::new(Box::pin(watch_status(known, self.health.watch()))))
    }
}

/// The answer now, and whenever it becomes another one. Draining is the last: the stream must not hold the connection then.
fn watch_status(
    known: bool,
    status: watch::Receiver<Status>,
) -> impl Stream<Item = Result<HealthCheckResponse, tonic::Status>> + Send {
    stream::unfold((status, None), move |(mut status, said)| async move {
        loop {
            let now = *status.borrow_and_update();
            let next = answer(known, now);
            if said != Some(next) {
                return Some((Ok(next), (status, Some(next))));
            }
            if now == Status::Draining || status.changed().await.is_err() {
                return None;
            }
        }
    })
}
