//! `/clients`: the client streams, all of them or one in full, and whether a client is ready.
//!
//! Owns the paths and what their queries mean. The streams themselves say how they stand.

mod shown;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::Shown;
use super::forms::{self, Format};
use super::written::{self, Page};
use crate::census::Round;
use crate::clock::WallClock;
use crate::inquiry::{ClientStream, Depth, NodeMatcher, Question, Whom};

/// The query of `/clients`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    format: Format,
    node: Option<String>,
    class: Option<String>,
    #[serde(rename = "type")]
    type_url: Option<String>,
    limit: Option<usize>,
}

const USAGE: &str =
    "write /clients, with any of ?format=json, node=ID, class=CLASS (with * for any text), type=TYPE and limit=COUNT\n";

/// Returns the routes.
pub(super) fn router() -> Router<Shown> {
    Router::new()
        .route("/clients", get(list))
        .route("/clients/{client}", get(one))
        .route("/clients/{client}/ready", get(ready))
}

async fn list(State(shown): State<Shown>, wanted: Result<Query<Wanted>, QueryRejection>) -> Response {
    let Ok(Query(wanted)) = wanted else {
        return (StatusCode::BAD_REQUEST, USAGE).into_response();
    };
    let whom = match forms::whom(
        wanted.node.as_deref(),
        wanted.class.as_deref(),
        wanted.type_url.as_deref(),
    ) {
        Ok(whom) => whom,
        Err(fault) => return (StatusCode::BAD_REQUEST, fault).into_response(),
    };
    let round = shown.status.census().ask(Question {
        whom,
        depth: Depth::Types,
    });
    let room = wanted.limit.unwrap_or(usize::MAX);
    match wanted.format {
        Format::Json => written::answer("application/json", |page| write_json(round, room, page)),
        Format::Text => written::answer("text/plain; charset=utf-8", |page| write_lines(round, room, page)),
    }
}

/// Writes at most so many streams.
async fn write_json(mut round: Round, room: usize, mut page: Page) -> Page {
    let clock = WallClock::read();
    page.write("{\"clients\":[").await;
    let (mut shown, mut separator) = (0, "\n");
    let more = loop {
        match round.next().await {
            Some(_) if shown == room => break true,
            Some(client) => {
                page.write(&format!("{separator}{}", shown::json(&client, clock, None)))
                    .await
            }
            None => break false,
        }
        (shown, separator) = (shown + 1, ",\n");
    };
    page.write(&format!("\n],\"more\":{more},\"unanswered\":{}}}\n", round.late()))
        .await;
    page
}

/// Writes a line for each of at most so many streams.
async fn write_lines(mut round: Round, room: usize, mut page: Page) -> Page {
    let clock = WallClock::read();
    page.write(&shown::head()).await;
    let mut shown = 0;
    let more = loop {
        match round.next().await {
            Some(_) if shown == room => break "there are more\n",
            Some(client) => page.write(&shown::line(&client, clock)).await,
            None => break "",
        }
        shown += 1;
    };
    let late = match round.late() {
        0 => String::new(),
        late => format!("{late} streams did not answer in time\n"),
    };
    page.write(&(late + more)).await;
    page
}

/// Returns all streams of a client: the one with this number, or those of a node.
async fn find(shown: &Shown, client: &str) -> Result<Vec<ClientStream>, Response> {
    let whom = match (client.strip_prefix("node="), client.parse()) {
        (Some(node), _) => Whom {
            nodes: vec![NodeMatcher::id_is(node)],
            ..Whom::default()
        },
        (None, Ok(number)) => Whom {
            stream: Some(number),
            ..Whom::default()
        },
        (None, Err(())) => {
            let text = "write /clients/NUMBER, as /clients shows it, or /clients/node=ID\n";
            return Err((StatusCode::BAD_REQUEST, text).into_response());
        }
    };
    let depth = Depth::Resources;
    let mut round = shown.status.census().ask(Question { whom, depth });
    let mut found = Vec::new();
    while let Some(stream) = round.next().await {
        found.push(stream);
    }
    if found.is_empty() {
        let text = format!("no stream of `{client}` is open here\n");
        return Err((StatusCode::NOT_FOUND, text).into_response());
    }
    Ok(found)
}

/// The query of one client.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extent {
    /// How many resources of each type are shown, those that the client lacks first.
    limit: Option<usize>,
}

async fn one(
    State(shown): State<Shown>,
    Path(client): Path<String>,
    extent: Result<Query<Extent>, QueryRejection>,
) -> Response {
    let Ok(Query(extent)) = extent else {
        return forms::bad("write /clients/ID or /clients/ID?limit=COUNT\n");
    };
    match find(&shown, &client).await {
        Ok(streams) => {
            let clock = WallClock::read();
            let streams = streams.iter().map(|stream| shown::json(stream, clock, extent.limit));
            let streams: Vec<_> = streams.collect();
            forms::json(&serde_json::json!({ "streams": streams }))
        }
        Err(response) => response,
    }
}

/// 200 once the client has accepted all that it asked for.
async fn ready(State(shown): State<Shown>, Path(client): Path<String>) -> Response {
    let streams = match find(&shown, &client).await {
        Ok(streams) => streams,
        Err(response) => return response,
    };
    let waiting: Vec<String> = streams.iter().flat_map(shown::waiting).collect();
    match waiting.is_empty() {
        true => "READY\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, waiting.concat()).into_response(),
    }
}
