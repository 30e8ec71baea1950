// SPDX-License-Identifier: Apache-2.0
//! `/holds`: the removals that are not passed on, the older contents that clients use, and orders for both.
//!
//! Owns the path, and what others show of holds. What is held is decided elsewhere.

mod holding;
mod older;
mod orders;
mod outcome;
mod sentence;
mod shown;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;

use super::Shown;
use super::forms::{self, AnswerForm, Answered, Asked, Formatted};
use crate::answers::{HeldHere, HoldGlimpse};
use crate::cache::View;
use crate::clock::{self, WallClock};
use crate::telemetry::HoldCount;
use crate::xds::{Hold, HoldWords, Name, TypeUrl};

pub(super) use orders::{extend, release};

/// How many names of a hold are told in short.
const SOME: usize = 10;

pub(super) async fn answer(State(shown): State<Shown>, Asked(Formatted { format }): Asked<Formatted>) -> Answered {
    let _turn = shown.status.questions().turn().await?;
    let (holds, older) = (holding::all(&shown), older::all(&shown));
    let list = shown::answer(&holds, &older).await;
    Ok(match format {
        AnswerForm::Text => list.text.into_response(),
        AnswerForm::Json => forms::json(&json!(list)),
    })
}

/// Returns why a resource of a view is held, if it is.
pub(super) fn of_resource(view: &View, type_url: &TypeUrl, name: &Name, clock: WallClock) -> Option<HeldHere> {
    let holds = view.head().holds();
    let holds = holds.iter().filter(|hold| hold.type_url == *type_url);
    let mut found = holds.filter_map(|hold| Some((hold, hold.removals.get(name)?)));
    let (hold, removal) = found.next()?;
    let removal = shown::resource(hold.reason, name, removal, &view.head().holds(), clock);
    Some(HeldHere {
        reason: hold.reason.word().to_owned(),
        removal,
    })
}

/// Returns how many holds there are.
pub(super) fn count(shown: &Shown) -> usize {
    let views = shown.status.census().views();
    views.iter().map(|view| view.head().holds().len()).sum()
}

/// Sets the gauges.
pub(super) async fn measure(shown: &Shown) {
    let (mut counts, mut oldest, now) = (Vec::new(), None, clock::now());
    for view in shown.status.census().views() {
        for hold in view.head().holds().iter() {
            oldest = clock::earliest([oldest, hold.since()]);
            counts.push(HoldCount {
                reason: hold.reason,
                type_url: hold.type_url.clone(),
                resources: hold.removals.len(),
                trouble: hold.is_trouble(now),
            });
            // There may be very many removals.
            tokio::task::yield_now().await;
        }
    }
    let oldest = oldest.map(|since| now.saturating_duration_since(since));
    shown.metrics.holds.show(&counts, oldest);
}

/// Returns the holds and the older contents by their ids, for `/events`.
pub(super) fn brief(shown: &Shown) -> BTreeMap<String, HoldGlimpse> {
    let clock = WallClock::read();
    let found = holding::all(shown).into_iter();
    let held = found.map(|found| (found.id(), glimpse(&found, clock)));
    let older = older::all(shown).into_iter();
    held.chain(older.map(|one| one.brief(clock))).collect()
}

fn glimpse(found: &holding::Holding, clock: WallClock) -> HoldGlimpse {
    let hold: &Hold = &found.hold;
    let (words, until) = (HoldWords::of(hold.reason), hold.until());
    // A person may have extended some of them.
    let soonest = hold.removals.values().filter_map(|removal| removal.until).min();
    let holds = found.view.head().holds();
    HoldGlimpse {
        server: found.server.clone(),
        class: found.view.class().to_string(),
        type_url: hold.type_url.word().to_owned(),
        reason: hold.reason.word(),
        trouble: hold.is_trouble(clock::now()),
        count: hold.removals.len(),
        since: hold.since().map(|at| clock.time(at)),
        until: until.map(|at| clock.time(at)),
        some: hold.removals.keys().take(SOME).map(ToString::to_string).collect(),
        words: sentence::of(hold, soonest.zip(until), &found.server, &holds, clock),
        nouns: words.nouns,
        order: words.order(&found.id()),
    }
}
