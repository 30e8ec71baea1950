// SPDX-License-Identifier: Apache-2.0
//! What several paths have in common: how a query chooses clients and a format, and how an answer is written as JSON.
//!
//! Owns the form. Does not know what is asked.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::census::Busy;
use crate::classes::Pattern;
use crate::config::Address;
use crate::inquiry::{NodeMatcher, Whom};
use crate::xds::NoType;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnswerForm {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// What a query asks. One that is none of its path is refused with what to write.
pub(super) struct Asked<T>(pub(super) T);

/// A query that only chooses the form of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Formatted {
    #[serde(default)]
    pub(super) format: AnswerForm,
}

/// A query that only chooses how much is listed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limited {
    pub(super) limit: Option<usize>,
}

/// An answer, or the refusal in its place.
pub(super) type Answered = Result<Response, Refused>;

/// An answer that says why there is none.
#[derive(Debug)]
pub(super) struct Refused(Box<Response>);

impl Refused {
    /// Refuses with this status and these words.
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        (status, why.into()).into_response().into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

/// Others have asked too much.
impl From<Busy> for Refused {
    fn from(busy: Busy) -> Self {
        later(format!("{busy}\n"))
    }
}

/// Refuses for now.
pub(super) fn later(why: impl Into<String>) -> Refused {
    let later = [(header::RETRY_AFTER, "5")];
    (StatusCode::SERVICE_UNAVAILABLE, later, why.into())
        .into_response()
        .into()
}

/// Refuses a request that is wrong.
pub(super) fn wrong(why: impl Into<String>) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, why)
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(_) => Err(wrong(format!("write {}\n", super::usage(parts.uri.path())))),
        }
    }
}

/// Reads the `node`, the `class` and the `type` of a query. An error says what is wrong with it.
pub(super) fn whom(node: Option<&str>, class: Option<&str>, type_url: Option<&str>) -> Result<Whom, Refused> {
    let nodes = node.into_iter().map(NodeMatcher::id_like).collect::<Result<_, _>>();
    let class = class.map(Pattern::read).transpose();
    let type_url = type_url.map(str::parse).transpose();
    Ok(Whom {
        nodes: nodes.map_err(|fault| wrong(format!("node: {fault}\n")))?,
        class: class.map_err(|fault| wrong(format!("class: {fault}\n")))?,
        type_url: type_url.map_err(|fault: NoType| wrong(format!("type: {fault}\n")))?,
        ..Whom::default()
    })
}

/// Answers with JSON in one line.
pub(super) fn line(json: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// Answers with JSON that people can read.
pub(super) fn json(json: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], format!("{json:#}\n")).into_response()
}

/// Returns an address as Envoy's API has it.
pub(super) fn address(address: &Address) -> Value {
    match address {
        Address::Socket(socket) => {
            json!({ "socket_address": { "address": socket.ip().to_string(), "port_value": socket.port() } })
        }
        Address::Unix(path) => json!({ "pipe": { "path": path.display().to_string() } }),
    }
}
