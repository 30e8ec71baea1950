//! The operator's order to read the configuration again, and its answer.
//!
//! Owns the path. Reads nothing: whoever runs the relay does, and answers here.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::Shown;

/// The order to read the configuration again.
#[derive(Debug)]
pub struct ReloadOrder {
    /// Whether nothing is to change: the answer says what would.
    pub dry_run: bool,
    /// Where the answer goes.
    pub answer: oneshot::Sender<ReloadAnswer>,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadAnswer {
    /// The configuration is good. The text says what has changed.
    Good(String),
    /// It is bad, and the earlier one stays in effect. The text says what is wrong.
    Bad(String),
}

/// The query of `/reload`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manner {
    dry_run: Option<String>,
}

pub(super) async fn answer(State(shown): State<Shown>, manner: Result<Query<Manner>, QueryRejection>) -> Response {
    let Ok(Query(manner)) = manner else {
        let text = "write /reload or /reload?dry_run\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let (answer, answered) = oneshot::channel();
    let order = ReloadOrder {
        dry_run: manner.dry_run.is_some(),
        answer,
    };
    if shown.reload.send(order).await.is_ok()
        && let Ok(answer) = answered.await
    {
        return match answer {
            ReloadAnswer::Good(text) => text.into_response(),
            ReloadAnswer::Bad(text) => (StatusCode::UNPROCESSABLE_ENTITY, text).into_response(),
        };
    }
    let text = "the relay is stopping and keeps its configuration\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
