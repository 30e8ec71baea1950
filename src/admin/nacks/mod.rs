//! `/nacks`: what clients have rejected and not accepted since: each content once for each reason, and beside it what was there
//! before.
//!
//! Owns the form, and what counts as the same rejection. The views know who rejects what: nobody is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tokio::task::yield_now;

use super::{Shown, forms};
use crate::answers::{self, Before, Nacks, Rejected};
use crate::cache::Rejecter;
use crate::census::ClientStatus;
use crate::classes::UserAgent;
use crate::clock::WallClock;
use crate::inquiry::Whom;
use crate::xds::{Known, Name, Refusal, Resource, Slot, TypeUrl, Version};

/// How many clients are named of each rejection.
const NAMED_MAX: usize = 10;
/// How many rejections are shown, and after how many of them others have their turn.
const SHOWN_MAX: usize = 10_000;
const WRITTEN_AT_ONCE: usize = 64;

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(rename = "type")]
    type_url: Option<String>,
    /// With a name, contents are shown too.
    name: Option<String>,
    version: Option<String>,
}

const USAGE: &str = "write /nacks, with any of type=TYPE, name=NAME and version=VERSION\n";

/// Type, name, version and words.
type Key = (String, String, Option<String>, String);

#[derive(Default)]
struct Rejection {
    clients: usize,
    some: Vec<answers::Rejecter>,
    /// How many clients by their software and its version.
    software: BTreeMap<String, usize>,
    /// When the first response with it was sent that was rejected so.
    since: Option<Instant>,
    /// What is rejected.
    about: Option<About>,
    /// What one of the clients has instead.
    before: Option<Arc<Resource>>,
    /// When a control plane was told last.
    reported: Option<Instant>,
    /// How many of the clients were sent older content in its place.
    older: usize,
}

type About = (TypeUrl, Arc<Resource>);

pub(super) async fn answer(State(shown): State<Shown>, wanted: Result<Query<Wanted>, QueryRejection>) -> Response {
    let Ok(Query(wanted)) = wanted else {
        return forms::bad(USAGE);
    };
    let whom = match forms::whom(None, None, wanted.type_url.as_deref()) {
        Ok(whom) => whom,
        Err(fault) => return forms::wrong(fault).into_response(),
    };
    let _turn = match shown.status.questions().turn().await {
        Ok(turn) => turn,
        Err(busy) => return forms::busy(busy),
    };
    let clock = WallClock::read();
    let views = shown.status.census().views();
    let mut found: BTreeMap<Key, Rejection> = BTreeMap::new();
    let mut left_out = 0_usize;
    for view in &views {
        let cut = view.cut();
        for of_name in view.rejected().names() {
            for (one, reported) in view.rejected().of(&of_name) {
                let (type_url, name) = &of_name;
                let Some(refusal) = &one.stance.rejects else { continue };
                let content = (name.as_ref()).and_then(|name| current(cut.slot(type_url)?, name, refusal.version?));
                let key = key(type_url, name.as_ref(), refusal);
                // What has changed since is on its way to the client.
                if (name.is_some() && content.is_none()) || !wanted.has(&key, &whom) {
                    continue;
                }
                if found.len() >= SHOWN_MAX && !found.contains_key(&key) {
                    left_out += 1;
                    continue;
                }
                let about = content.map(|content| (type_url.clone(), content.clone()));
                found.entry(key).or_default().add(&one, refusal, about, reported);
            }
            // There may be very many.
            yield_now().await;
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
    forms::json(&json!(Nacks {
        rejections,
        left_out,
        unanswered: 0,
    }))
}

/// Returns the current content of a name, if it has this version.
fn current<'a>(slot: &'a Slot, name: &Name, version: Version) -> Option<&'a Arc<Resource>> {
    let mut known = slot
        .halves()
        .filter_map(|state| state.entries().get(name).and_then(Known::resource));
    known.find(|found| found.version() == version)
}

fn key(type_url: &TypeUrl, name: Option<&Name>, refusal: &Refusal) -> Key {
    (
        type_url.full_name().to_owned(),
        name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        refusal.version.map(|version| version.to_string()),
        refusal.objection.words().to_owned(),
    )
}

fn software(user_agent: &UserAgent) -> String {
    match user_agent.name.is_empty() {
        true => "unknown".to_owned(),
        false => user_agent.to_string(),
    }
}

impl Wanted {
    fn has(&self, (type_url, name, version, _): &Key, whom: &Whom) -> bool {
        (whom.type_url.as_ref()).is_none_or(|asked| asked.full_name() == type_url)
            && self.name.as_ref().is_none_or(|asked| asked == name)
            && self
                .version
                .as_ref()
                .is_none_or(|asked| Some(asked) == version.as_ref())
    }
}

impl Rejection {
    fn add(&mut self, one: &Rejecter, refusal: &Refusal, about: Option<About>, reported: Option<Instant>) {
        self.clients += 1;
        self.reported = self.reported.max(reported);
        self.older += usize::from(one.stance.holds.is_older());
        self.since = self.since.into_iter().chain([refusal.since]).min();
        if self.about.is_none() {
            self.about = about;
        }
        if self.before.is_none() {
            self.before = one.stance.holds.content().cloned();
        }
        *self.software.entry(software(&one.node.user_agent)).or_default() += 1;
        if self.some.len() < NAMED_MAX {
            self.some.push(answers::Rejecter {
                stream: one.stream.to_string(),
                node: one.node.id.to_string(),
            });
        }
    }

    /// Returns the rejection as it is shown: with contents, if there is somebody who decodes them.
    fn answer(self, key: Key, contents: Option<&ClientStatus>, clock: WallClock) -> Rejected {
        let (type_url, name, version, words) = key;
        let about = self.about.as_ref().zip(contents);
        let content = about.map(|((type_url, content), shown)| shown.content(type_url, content));
        let before = self.before.as_ref().map(|before| {
            let content = about.map(|((type_url, _), shown)| shown.content(type_url, before));
            Before {
                version: before.version().to_string(),
                content: content.unwrap_or_default(),
            }
        });
        Rejected {
            content: content.unwrap_or_default(),
            before,
            type_url,
            name,
            version,
            rejection: words,
            clients: self.clients,
            some: self.some,
            software: self.software,
            since: self.since.map(|since| clock.time(since)),
            reported: self.reported.map(|at| clock.time(at)),
            older: self.older,
        }
    }
}
