//! What several paths have in common: how a query chooses clients and a format, and how an answer is written as JSON.
//!
//! Owns the form. Does not know what is asked.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::census::Busy;
use crate::classes::Pattern;
use crate::config::Address;
use crate::inquiry::{NodeMatcher, Whom};
use crate::xds::NoType;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// A query that only chooses the form of the answer.
pub(super) type Asked = Result<Query<Formatted>, QueryRejection>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Formatted {
    #[serde(default)]
    format: Format,
}

/// Returns the form that a query chooses, or the answer that says what to write.
pub(super) fn format(asked: Asked, usage: &str) -> Result<Format, Wrong> {
    match asked {
        Ok(Query(Formatted { format })) => Ok(format),
        Err(_) => Err(wrong(format!("write {usage}\n"))),
    }
}

/// The answer to a wrong request.
pub(super) type Wrong = (StatusCode, String);

/// Returns the answer that says why a request is wrong.
pub(super) fn wrong(why: impl Into<String>) -> Wrong {
    (StatusCode::BAD_REQUEST, why.into())
}

/// Answers that a request is wrong, and why.
pub(super) fn bad(why: impl Into<String>) -> Response {
    wrong(why).into_response()
}

/// Answers that others have asked too much.
pub(super) fn busy(busy: Busy) -> Response {
    let later = [(header::RETRY_AFTER, "5")];
    (StatusCode::SERVICE_UNAVAILABLE, later, format!("{busy}\n")).into_response()
}

/// Reads the `node`, the `class` and the `type` of a query. An error says what is wrong with it.
pub(super) fn whom(node: Option<&str>, class: Option<&str>, type_url: Option<&str>) -> Result<Whom, String> {
    let nodes = node.into_iter().map(NodeMatcher::id_like).collect::<Result<_, _>>();
    let class = class.map(Pattern::read).transpose();
    let type_url = type_url.map(str::parse).transpose();
    Ok(Whom {
        nodes: nodes.map_err(|fault| format!("node: {fault}\n"))?,
        class: class.map_err(|fault| format!("class: {fault}\n"))?,
        type_url: type_url.map_err(|wrong: NoType| format!("type: {wrong}\n"))?,
        ..Whom::default()
    })
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
