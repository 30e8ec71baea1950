// SPDX-License-Identifier: Apache-2.0
//! `/changes`: what control planes have changed last, and how many clients have accepted it.
//!
//! Owns what counts as one change: what arrived in one response. Keeps nothing: contents have the times of their arrival, and clients are
//! asked. So a content that was replaced since is in no list. Of what was removed, only what was [held](super::holds) is in one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::State;
use serde_json::json;

use super::Shown;
use super::adoption::Adoption;
use super::forms::{self, Answered, Asked, Limited};
use crate::answers::{self, AdoptionCounts, ChangeList, EndedHold};
use crate::census::{Census, Entry};
use crate::classes::{Class, Pattern};
use crate::clock::WallClock;
use crate::inquiry::{Depth, Question, Whom};
use crate::xds::{HoldChange, HoldWords, Name, TypeUrl};

/// When it arrived, the last one first; of which type, and for which class.
type ChangeKey = (Reverse<Instant>, TypeUrl, Class);

/// What arrived together.
#[derive(Default)]
struct Arrival {
    count: usize,
    some: Vec<Name>,
}

/// How many changes are listed, unless the query says so, and at the most.
const LISTED: usize = 8;
const LISTED_MAX: usize = 100;
/// How many names of a change are told.
const NAMED: usize = 3;
/// How many contents are taken at a time.
const PAGE: usize = 256;

pub(super) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<Limited>) -> Answered {
    let _turn = shown.status.questions().turn().await?;
    let clock = WallClock::read();
    let census = shown.status.census();
    let limit = wanted.limit.unwrap_or(LISTED).min(LISTED_MAX);
    let mut listed = ended(census, clock);
    for ((Reverse(received), type_url, class), change) in last(census, limit).await {
        let adoption = match change.some.first() {
            Some(name) => Some(adopted(&shown, &type_url, &class, name).await),
            None => None,
        };
        let change = answers::ChangeRow {
            type_url: type_url.full_name().to_owned(),
            class: class.to_string(),
            // Many may arrive in one second.
            received: clock.exact_time(received),
            count: change.count,
            some: change.some.iter().map(ToString::to_string).collect(),
            adoption,
            end: None,
        };
        listed.push((Reverse(received), change));
    }
    listed.sort_by_key(|(at, _)| *at);
    let changes = listed.into_iter().take(limit).map(|(_, change)| change).collect();
    Ok(forms::json(&json!(ChangeList { changes })))
}

/// Returns which removals are not held any more, and what ended that.
fn ended(census: &Census, clock: WallClock) -> Vec<(Reverse<Instant>, answers::ChangeRow)> {
    let mut listed = Vec::new();
    for view in census.views() {
        for (at, event) in view.guarded().ended() {
            let HoldChange::Ended(end) = event.change else {
                continue;
            };
            let (words, trouble) = HoldWords::happened(event.change, event.reason);
            let end = EndedHold {
                ended: end.word(),
                reason: event.reason.word(),
                words,
                trouble,
            };
            let change = answers::ChangeRow {
                type_url: event.type_url.full_name().to_owned(),
                class: view.class().to_string(),
                received: clock.exact_time(at),
                count: event.removals,
                some: vec![event.name.to_string()],
                adoption: None,
                end: Some(end),
            };
            listed.push((Reverse(at), change));
        }
    }
    listed
}

/// Returns the last changes.
async fn last(census: &Census, limit: usize) -> BTreeMap<ChangeKey, Arrival> {
    let mut found = BTreeMap::new();
    let mut pages = census.pages(|_| true);
    while let Some(entries) = pages.in_turn(PAGE).await {
        for entry in entries {
            note(&mut found, pages.class(), entry, limit);
        }
    }
    found
}

/// Notes a content, unless so many others came after it.
fn note(found: &mut BTreeMap<ChangeKey, Arrival>, class: &Class, entry: Entry, limit: usize) {
    let (Some(content), Some(name)) = (entry.resource, entry.name) else {
        return;
    };
    let key = (Reverse(content.received()), entry.type_url, class.clone());
    let change = found.entry(key).or_default();
    change.count += 1;
    if change.some.len() < NAMED {
        change.some.push(name);
    }
    if found.len() > limit {
        found.pop_last();
    }
}

/// Returns how many clients of the class have accepted what a name has now.
async fn adopted(shown: &Shown, type_url: &TypeUrl, class: &Class, name: &Name) -> AdoptionCounts {
    let whom = Whom {
        class: Some(Pattern::of(&class.to_string())),
        ..Whom::default()
    };
    let depth = Depth::Resource(type_url.clone(), name.clone());
    let mut adoption = Adoption::default();
    let mut round = shown.status.census().ask(Question { whom, depth });
    while let Some(stream) = round.next().await {
        for one in &stream.types {
            for resource in &one.resources {
                adoption.add(&stream, resource);
            }
        }
    }
    adoption.answer(&shown.metrics.of(type_url).adoptions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::census::Cached;
    use crate::clock;
    use crate::xds::{Resource, ResourceParts};

    /// What arrives together is one change; the last ones are kept, whatever the order in which they are met.
    #[test]
    fn the_last_changes_are_kept() {
        let began = clock::now();
        let content = |name: &str, seconds| {
            let type_url = TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster");
            let parts = ResourceParts {
                type_url: &type_url,
                name: name.into(),
                aliases: Vec::new(),
                passed_on: &[],
                body: b"x",
                endpoints: None,
                received: began + Duration::from_secs(seconds),
            };
            Entry {
                type_url: type_url.clone(),
                name: Some(name.into()),
                covered: true,
                cached: Cached::Acked,
                resource: Some(Arc::new(Resource::new(parts, 0))),
                error: None,
            }
        };
        let mut found = BTreeMap::new();
        for (name, seconds) in [
            ("c", 3),
            ("a", 1),
            ("d", 4),
            ("b", 2),
            ("e", 4),
            ("f", 4),
            ("g", 4),
            ("h", 3),
        ] {
            note(&mut found, &Class::default(), content(name, seconds), 2);
        }
        let told = found.values().map(|change| {
            let names: Vec<&str> = change.some.iter().map(Name::as_str).collect();
            (change.count, names.join(" "))
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [(4, "d e f".to_owned()), (2, "c h".to_owned())]
        );
    }
}
