// SPDX-License-Identifier: Apache-2.0
//! The operator's order to read the configuration again, the question what another one would change, and their answers.
//!
//! Owns the paths. Reads nothing: whoever runs the relay does, and answers here.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use tokio::sync::oneshot;

use super::Shown;
use super::forms::{Answered, Asked, Refused};

/// The order to read the configuration again.
#[derive(Debug)]
pub struct ReloadOrder {
    /// In place of the file a text, with which nothing changes: the answer says what would.
    pub sent: Option<SentText>,
    /// Where the answer goes.
    pub answer: oneshot::Sender<ReloadAnswer>,
}

/// A configuration that a visitor has sent.
#[derive(Debug)]
pub struct SentText {
    /// What problems with it begin with.
    pub name: String,
    /// The configuration.
    pub text: Bytes,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadAnswer {
    /// The configuration is good. The text says what has changed.
    Good(String),
    /// It is bad, and the earlier one stays in effect. The text says what is wrong.
    Bad(String),
}

/// The query of `/reload`, which has none: what means something else must not change anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadQuery {}

/// The query of `/validate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidateQuery {
    name: Option<String>,
}

pub(super) async fn reload(State(shown): State<Shown>, Asked(ReloadQuery {}): Asked<ReloadQuery>) -> Answered {
    order(&shown, None).await
}

pub(super) async fn validate(State(shown): State<Shown>, Asked(called): Asked<ValidateQuery>, text: Bytes) -> Answered {
    let name = called.name.unwrap_or_else(|| "text".to_owned());
    order(&shown, Some(SentText { name, text })).await
}

async fn order(shown: &Shown, sent: Option<SentText>) -> Answered {
    let (answer, answered) = oneshot::channel();
    let order = ReloadOrder { sent, answer };
    if shown.reload.send(order).await.is_ok()
        && let Ok(answer) = answered.await
    {
        return match answer {
            ReloadAnswer::Good(text) => Ok(text.into_response()),
            ReloadAnswer::Bad(text) => Err(Refused::new(StatusCode::UNPROCESSABLE_ENTITY, text)),
        };
    }
    let text = "the relay is stopping and keeps its configuration\n";
    Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, text))
}
