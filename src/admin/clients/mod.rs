//! `/clients`: the client streams, all of them or one in full, and whether a client is ready.
//!
//! Owns the paths and what their queries mean. The streams themselves say how they stand.

mod shown;

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Deserialize;

use super::Shown;
use super::forms::{self, Format};
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
    let json = wanted.format == Format::Json;
    let kind = if json {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let lines = Lines {
        round,
        json,
        clock: WallClock::read(),
        passage: Passage::Start,
        room: wanted.limit.unwrap_or(usize::MAX),
        cut: false,
    };
    let body = Body::from_stream(stream::unfold(lines, |mut lines| async {
        let line = lines.next().await?;
        Some((Ok::<_, Infallible>(line), lines))
    }));
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// The list, line by line: no more is asked than is read.
struct Lines {
    round: Round,
    json: bool,
    clock: WallClock,
    passage: Passage,
    /// How many more streams may be shown.
    room: usize,
    /// Whether there were more than that.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Passage {
    Start,
    First,
    Later,
    Over,
}

impl Lines {
    async fn next(&mut self) -> Option<String> {
        match self.passage {
            Passage::Start => {
                self.passage = Passage::First;
                Some(if self.json {
                    "{\"clients\":[".to_owned()
                } else {
                    shown::head()
                })
            }
            Passage::Over => None,
            Passage::First | Passage::Later => match self.round.next().await {
                Some(client) if self.room > 0 => {
                    self.room -= 1;
                    Some(self.line(&client))
                }
                beyond => {
                    self.cut = beyond.is_some();
                    self.passage = Passage::Over;
                    Some(self.end())
                }
            },
        }
    }

    fn line(&mut self, client: &ClientStream) -> String {
        if !self.json {
            return shown::line(client, self.clock);
        }
        let comma = if self.passage == Passage::First { "\n" } else { ",\n" };
        self.passage = Passage::Later;
        format!("{comma}{}", shown::json(client, self.clock, None))
    }

    fn end(&self) -> String {
        let (late, more) = (self.round.late(), self.cut);
        match self.json {
            true => format!("\n],\"more\":{more},\"unanswered\":{late}}}\n"),
            false => {
                let late = (late > 0).then(|| format!("{late} streams did not answer in time\n"));
                late.into_iter()
                    .chain(more.then(|| "there are more\n".to_owned()))
                    .collect()
            }
        }
    }
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
