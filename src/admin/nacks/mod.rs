// SPDX-License-Identifier: Apache-2.0
//! `/nacks`: what clients have rejected and not accepted since: each content once for each reason, and beside it what was there
//! before.
//!
//! Owns the form, and what counts as the same rejection. The views know who rejects what: nobody is asked, unless one name is chosen; then
//! the others are counted too.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use tokio::task::yield_now;

use super::Shown;
use super::forms::{self, Answered, Asked};
use crate::answers::{self, EarlierContent, Nacks, RejectedContent};
use crate::cache::Row;
use crate::census::{Census, ClientStatus};
use crate::classes::ClientKind;
use crate::clock::WallClock;
use crate::inquiry::{Depth, Question, StreamNumber, Whom};
use crate::xds::{Name, Resource, Standing, TypeUrl};

/// How many clients are named of each rejection.
const NAMED_MAX: usize = 10;
/// For so many rejections of a name, all clients that ask for it are counted.
const COUNTED_MAX: usize = 8;
/// How many rejections are shown, and after how many of them others have their turn.
const SHOWN_MAX: usize = 10_000;
const WRITTEN_AT_ONCE: usize = 64;

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NacksQuery {
    #[serde(rename = "type")]
    type_url: Option<String>,
    /// With a name, contents are shown too.
    name: Option<String>,
    version: Option<String>,
}

/// Type, name, version and words.
type NackKey = (String, String, Option<String>, String);

/// What clients reject for one reason, of all views and kinds of clients.
#[derive(Default)]
struct NackRow {
    rows: Vec<(TypeUrl, Row)>,
    /// How many clients have accepted the content, and how many have done neither, by their software: if they were counted.
    others: Option<[BTreeMap<String, usize>; 2]>,
}

pub(super) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<NacksQuery>) -> Answered {
    let whom = forms::whom(None, None, wanted.type_url.as_deref())?;
    let _turn = shown.status.questions().turn().await?;
    let clock = WallClock::read();
    let views = shown.status.census().views();
    let mut found: BTreeMap<NackKey, NackRow> = BTreeMap::new();
    let mut left_out = 0_usize;
    for view in &views {
        for of_name in view.rejected().names() {
            let (type_url, name) = &of_name;
            for row in view.rejections_of(&of_name) {
                let key = key(type_url, name.as_ref(), &row);
                if !wanted.has(&key, &whom) {
                    continue;
                }
                if found.len() >= SHOWN_MAX && !found.contains_key(&key) {
                    left_out += row.clients;
                    continue;
                }
                found.entry(key).or_default().rows.push((type_url.clone(), row));
            }
            // There may be very many.
            yield_now().await;
        }
    }
    let mut unanswered = 0;
    if wanted.name.is_some() {
        for rejection in found.values_mut().take(COUNTED_MAX) {
            unanswered += rejection.count_others(shown.status.census()).await;
        }
    }
    let contents = wanted.name.as_ref().map(|_| &shown.status);
    let mut rejections = Vec::new();
    for (key, rejection) in found {
        rejections.push(rejection.answer(key, contents, clock));
        if rejections.len().is_multiple_of(WRITTEN_AT_ONCE) {
            yield_now().await;
        }
    }
    Ok(forms::json(&json!(Nacks {
        rejections,
        left_out,
        unanswered
    })))
}

fn key(type_url: &TypeUrl, name: Option<&Name>, row: &Row) -> NackKey {
    (
        type_url.full_name().to_owned(),
        name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        row.content.as_ref().map(|content| content.version().to_string()),
        row.objection.words().to_owned(),
    )
}

impl NacksQuery {
    fn has(&self, (type_url, name, version, _): &NackKey, whom: &Whom) -> bool {
        (whom.type_url.as_ref()).is_none_or(|asked| asked.full_name() == type_url)
            && self.name.as_ref().is_none_or(|asked| asked == name)
            && self
                .version
                .as_ref()
                .is_none_or(|asked| Some(asked) == version.as_ref())
    }
}

impl NackRow {
    /// Asks the clients of the name who has accepted the content, and who has done neither. Returns how many did not answer.
    async fn count_others(&mut self, census: &Census) -> usize {
        let about = self
            .rows
            .iter()
            .find_map(|(type_url, row)| Some((type_url, row.content.as_ref()?)));
        let Some((type_url, content)) = about else { return 0 };
        let mut round = census.ask(Question {
            whom: Whom::default(),
            depth: Depth::Resource(type_url.clone(), content.name().clone()),
        });
        let mut others = [BTreeMap::new(), BTreeMap::new()];
        while let Some(stream) = round.next().await {
            let resources = stream.types.iter().flat_map(|one| &one.resources);
            let is_it = |one: &Arc<Resource>| one.version() == content.version();
            for one in resources.filter(|one| one.resource.as_ref().is_some_and(is_it) && !one.standing.rejects()) {
                let [accepted, waiting] = &mut others;
                let place = if one.standing == Standing::Accepted {
                    accepted
                } else {
                    waiting
                };
                *place.entry(ClientKind::of(&stream.node).to_string()).or_default() += 1;
            }
        }
        self.others = Some(others);
        round.late()
    }

    /// Returns the rejection as it is shown: with contents, if there is somebody who decodes them.
    fn answer(self, key: NackKey, contents: Option<&ClientStatus>, clock: WallClock) -> RejectedContent {
        let (type_url, name, version, rejection) = key;
        let rows = || self.rows.iter().map(|(_, row)| row);
        let about = self
            .rows
            .iter()
            .find_map(|(type_url, row)| Some((type_url, row.content.as_ref()?)));
        let about = about.zip(contents);
        let decoded = |content| about.map(|((type_url, _), shown)| shown.content(type_url, content));
        let before = rows().find_map(|row| row.before.as_ref()).map(|before| EarlierContent {
            version: before.version().to_string(),
            content: decoded(before).unwrap_or_default(),
        });
        let mut software = BTreeMap::new();
        rows().for_each(|row| *software.entry(row.kind.to_string()).or_default() += row.clients);
        let some = rows().flat_map(|row| &row.some).take(NAMED_MAX);
        let [accepted, waiting] = self.others.map_or([None, None], |others| others.map(Some));
        RejectedContent {
            content: about.and_then(|((_, content), _)| decoded(content)).unwrap_or_default(),
            before,
            type_url,
            name,
            version,
            rejection,
            clients: rows().map(|row| row.clients).sum(),
            some: some.map(rejecter).collect(),
            software,
            accepted,
            waiting,
            since: rows().map(|row| row.since).min().map(|since| clock.time(since)),
            reported: rows().filter_map(|row| row.reported).max().map(|at| clock.time(at)),
            older: rows().map(|row| row.older).sum(),
        }
    }
}

fn rejecter((stream, node): &(StreamNumber, Arc<str>)) -> answers::RejecterRow {
    answers::RejecterRow {
        stream: stream.to_string(),
        node: node.to_string(),
    }
}
