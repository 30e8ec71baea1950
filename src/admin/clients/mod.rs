// SPDX-License-Identifier: Apache-2.0
//! `/clients`: the client streams, all of them or one in full, and whether a client is ready.
//!
//! Owns the paths and what their queries mean. The streams themselves say how they stand.

mod ordered;
mod shown;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::Shown;
use super::forms::{self, AnswerForm, Answered, Asked, Limited, Refused};
use super::written::{self, Page};
use crate::answers;
use crate::census::{ClientState, QuestionTurn, Round};
use crate::classes::Pattern;
use crate::clock::WallClock;
use crate::inquiry::{ClientStream, Depth, NodeMatcher, Question, Whom};
use ordered::{Ordered, Sort};
use shown::Servers;

/// The query of `/clients`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientsQuery {
    #[serde(default)]
    format: AnswerForm,
    node: Option<String>,
    class: Option<String>,
    #[serde(rename = "type")]
    type_url: Option<String>,
    software: Option<String>,
    state: Option<String>,
    sort: Option<Sort>,
    limit: Option<usize>,
}

/// How much is said of those that are not ready.
const WAITING_BYTES_MAX: usize = 64 << 10;

pub(super) async fn list(State(shown): State<Shown>, Asked(wanted): Asked<ClientsQuery>) -> Answered {
    let chosen = wanted.whom()?;
    let room = wanted.limit.unwrap_or(usize::MAX);
    let away = wanted.may_be_away().then(|| shown.status.census().away());
    let streams = Ordered::new(shown.status.census().clone(), chosen, wanted.sort, room);
    let questions = shown.status.questions();
    let servers = shown.overview.look().names;
    let all = (streams, servers);
    match wanted.format {
        AnswerForm::Json => written::answer(questions, "application/json", |page| write_json(all, away, page)).await,
        AnswerForm::Text => {
            let kind = "text/plain; charset=utf-8";
            written::answer(questions, kind, |page| write_lines(all, away, page)).await
        }
    }
}

impl ClientsQuery {
    /// Whether clients without a stream are meant, of which nothing is known but that they wait.
    fn may_be_away(&self) -> bool {
        let chosen = [&self.node, &self.class, &self.type_url, &self.software];
        let state = self.state.as_deref();
        chosen.iter().all(|filter| filter.is_none()) && state.is_none_or(|state| state == ClientState::Waiting.word())
    }

    /// Returns whom the query chooses. An error says what is wrong with it.
    fn whom(&self) -> Result<(Whom, Option<ClientState>), Refused> {
        let whom = forms::whom(self.node.as_deref(), self.class.as_deref(), self.type_url.as_deref())?;
        let software = self.software.as_deref().map(Pattern::read).transpose();
        let software = software.map_err(|fault| forms::wrong(format!("software: {fault}\n")))?;
        let unknown = || forms::wrong("state: write rejecting, older, lagging, waiting or current\n");
        let named = |word: &String| ClientState::called(word).ok_or_else(unknown);
        let state = self.state.as_ref().map(named).transpose()?;
        Ok((Whom { software, ..whom }, state))
    }
}

async fn write_json((mut streams, servers): (Ordered, Servers), away: Option<usize>, mut page: Page) -> Page {
    let clock = WallClock::read();
    page.write("{\"clients\":[").await;
    let mut separator = "\n";
    while let Some((state, client)) = streams.next().await {
        let client = answers::ClientRow {
            state: state.word().to_owned(),
            ..shown::answer(&client, clock, &servers, None)
        };
        page.write(&format!("{separator}{}", json!(client))).await;
        separator = ",\n";
    }
    let (more, unanswered) = (streams.more(), streams.late());
    let end = json!(answers::ClientsEnd { away, more, unanswered }).to_string();
    page.write(&format!("\n],{}\n", end.trim_start_matches('{'))).await;
    page
}

/// Writes a line for each stream.
async fn write_lines((mut streams, servers): (Ordered, Servers), away: Option<usize>, mut page: Page) -> Page {
    let clock = WallClock::read();
    page.write(&shown::head()).await;
    while let Some((state, client)) = streams.next().await {
        page.write(&shown::line(state, &client, &servers, clock)).await;
    }
    let late = match streams.late() {
        0 => String::new(),
        late => format!("streams that did not answer in time: {late}\n"),
    };
    let more = if streams.more() { "there are more\n" } else { "" };
    let away = match away {
        None | Some(0) => String::new(),
        Some(away) => {
            format!("clients that wait and have no stream now, because their last one ended unanswered: {away}\n")
        }
    };
    page.write(&(late + more + &away)).await;
    page
}

pub(super) async fn one(
    State(shown): State<Shown>,
    Path(client): Path<String>,
    Asked(Limited { limit }): Asked<Limited>,
) -> Answered {
    let servers = shown.overview.look().names;
    let (turn, first, round) = find(&shown, &client).await?;
    let write = |page| write_streams(first, round, servers, limit, page);
    Ok(written::answer_in(turn, "application/json", write))
}

/// Returns the first stream of a client, which is the one with this number or one of a node, and the question to its others.
async fn find(shown: &Shown, client: &str) -> Result<(QuestionTurn, ClientStream, Round), Refused> {
    let whom = match (client.strip_prefix("node="), client.parse()) {
        (Some(node), _) => Whom {
            nodes: vec![NodeMatcher::id_is(node)],
            ..Whom::default()
        },
        (None, Ok(number)) => Whom::stream(number),
        (None, Err(())) => {
            let usage = "write /clients/NUMBER, as /clients shows it, or /clients/node=ID\n";
            return Err(forms::wrong(usage));
        }
    };
    let turn = shown.status.questions().turn().await?;
    let depth = Depth::Resources;
    let mut round = shown.status.census().ask(Question { whom, depth });
    let text = || format!("no stream of `{client}` is open here\n");
    let first = round.next().await;
    let first = first.ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, text()))?;
    Ok((turn, first, round))
}

/// Writes each of the streams in full.
async fn write_streams(
    first: ClientStream,
    mut round: Round,
    servers: Servers,
    limit: Option<usize>,
    mut page: Page,
) -> Page {
    let clock = WallClock::read();
    let mut before = "{\"streams\":[\n";
    let mut next = Some(first);
    while let Some(stream) = next {
        let stream = shown::answer(&stream, clock, &servers, limit);
        page.write(&format!("{before}{:#}", json!(stream))).await;
        before = ",\n";
        next = round.next().await;
    }
    page.write("\n]}\n").await;
    page
}

/// 200 once the client has accepted all that it asked for.
pub(super) async fn ready(State(shown): State<Shown>, Path(client): Path<String>) -> Answered {
    let (_turn, first, mut round) = find(&shown, &client).await?;
    let mut waiting = String::new();
    let mut next = Some(first);
    while let Some(stream) = next {
        if waiting.len() < WAITING_BYTES_MAX {
            waiting.extend(shown::waiting(&stream));
        }
        next = round.next().await;
    }
    match waiting.is_empty() {
        true => Ok("READY\n".into_response()),
        false => Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, waiting)),
    }
}
