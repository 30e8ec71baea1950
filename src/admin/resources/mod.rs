// SPDX-License-Identifier: Apache-2.0
//! `/resources`: what the relay has of its control planes, and who has it.
//!
//! Owns the paths, and the form of a resource. The streams themselves say how they stand.

mod list;

pub(super) use list::answer as list;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::adoption::Adoption;
use super::forms::{self, Answered, Asked, Refused};
use super::{Shown, holds};
use crate::answers::{ContentRow, HolderRow, Holders, ResourceRow, SaidContent, Whole};
use crate::cache::View;
use crate::census::{Entry, visit_name};
use crate::clock::{self, WallClock};
use crate::inquiry::{ClientResource, ClientStream, Depth, Question, Whom};
use crate::xds::{Name, Standing, TypeUrl};

/// The query for one name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceQuery {
    #[serde(rename = "type")]
    type_url: Option<String>,
    /// Only clients of these nodes are counted.
    node: Option<String>,
    /// Only clients of these classes are counted.
    class: Option<String>,
}

/// How many clients are named of each standing.
const NAMED_MAX: usize = 10;
/// How long a view's upstream side may take to say what the control plane said.
const WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// Returns what is known of a name, without its content.
fn listed(entry: &Entry, (class, is_read): (&str, bool), clock: WallClock) -> ResourceRow {
    let content = entry.resource.as_ref();
    let version = content.map(|content| content.version().to_string());
    ResourceRow {
        name: entry.name.as_ref().map_or(Name::WILDCARD, Name::as_str).to_owned(),
        class: class.to_owned(),
        unread: !is_read,
        wildcard: entry.covered,
        state: entry.cached.word().to_owned(),
        digest: version.clone(),
        version,
        bytes: content.map(|content| content.weight()),
        received: content.map(|content| clock.time(content.received())),
        error: entry.error.as_ref().map(|error| error.message.to_string()),
    }
}

pub(super) async fn one(
    State(shown): State<Shown>,
    Path(name): Path<String>,
    Asked(ResourceQuery { type_url, node, class }): Asked<ResourceQuery>,
) -> Answered {
    let whom = forms::whom(node.as_deref(), class.as_deref(), type_url.as_deref())?;
    let mut entries = Vec::new();
    let wanted = Name::from(&*name);
    for view in shown.status.census().views() {
        visit_name(&view, &wanted, |entry| {
            if whom.type_url.as_ref().is_none_or(|asked| *asked == entry.type_url) {
                entries.push((view.clone(), entry));
            }
        });
    }
    let mut types: Vec<TypeUrl> = entries.iter().map(|(_, entry)| entry.type_url.clone()).collect();
    types.sort_unstable();
    types.dedup();
    let Some(first) = types.first() else {
        let text = format!("no client asks for `{name}`, and no client was given it\n");
        return Err(Refused::new(StatusCode::NOT_FOUND, text));
    };
    if types.len() > 1 {
        let words: Vec<&str> = types.iter().map(TypeUrl::word).collect();
        let text = format!(
            "there is a `{name}` of several types; write ?type= and one of {}\n",
            words.join(", ")
        );
        return Err(Refused::new(StatusCode::CONFLICT, text));
    }
    let _turn = shown.status.questions().turn().await?;
    Ok(forms::json(&json!(whole(&shown, whom, first, &name, &entries).await)))
}

/// Returns all that is known of a name: its contents, and how many clients have each of them, or not.
async fn whole(shown: &Shown, whom: Whom, type_url: &TypeUrl, name: &str, entries: &[(Arc<View>, Entry)]) -> Whole {
    let mut contents = Vec::new();
    for (view, entry) in entries {
        contents.push(content(shown, type_url, view, entry).await);
    }
    let question = Question {
        whom,
        depth: Depth::Resource(type_url.clone(), Name::from(name)),
    };
    let mut clients: BTreeMap<String, Holders> = BTreeMap::new();
    let mut adoption = Adoption::default();
    let mut round = shown.status.census().ask(question);
    while let Some(stream) = round.next().await {
        for one in &stream.types {
            for resource in &one.resources {
                adoption.add(&stream, resource);
                let holders = clients.entry(resource.standing.word().to_owned()).or_default();
                put(holders, &stream, resource);
            }
        }
    }
    Whole {
        name: name.to_owned(),
        type_url: type_url.full_name().to_owned(),
        contents,
        clients,
        adoption: Some(adoption.answer(&shown.metrics.of(type_url).adoptions)),
        unanswered: round.late(),
    }
}

/// Returns a content in full, with what the control plane says about it.
async fn content(shown: &Shown, type_url: &TypeUrl, view: &View, entry: &Entry) -> ContentRow {
    let is_read = view.demand().readers().0 > 0;
    let listed = listed(entry, (&view.class().to_string(), is_read), WallClock::read());
    let Some(content) = &entry.resource else {
        return ContentRow { listed, said: None };
    };
    let asked = view.mailbox().words(type_url, vec![content.name().clone()]);
    let words = clock::timeout(WORDS_PATIENCE, asked)
        .await
        .into_iter()
        .flatten()
        .flatten()
        .next();
    let words = words.unwrap_or_default();
    let said = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    let held = holds::of_resource(view, type_url, content.name(), WallClock::read());
    let said = SaidContent {
        version_info: said(&words.version),
        nonce: said(&words.nonce),
        control_plane: said(&words.identifier),
        content: shown.status.content(type_url, content),
        held,
    };
    ContentRow {
        listed,
        said: Some(said),
    }
}

/// Adds a client to those with which the resource stands alike.
fn put(holders: &mut Holders, stream: &ClientStream, resource: &ClientResource) {
    holders.count += 1;
    if let Some(content) = &resource.resource {
        *holders.versions.entry(content.version().to_string()).or_default() += 1;
    }
    if holders.some.len() < NAMED_MAX && resource.standing != Standing::Accepted {
        holders.some.push(who(stream, resource));
    }
}

fn who(stream: &ClientStream, resource: &ClientResource) -> HolderRow {
    HolderRow {
        stream: stream.number.to_string(),
        node: stream.node.id.to_string(),
        rejection: resource.objection.as_ref().map(|why| why.words().to_owned()),
    }
}
