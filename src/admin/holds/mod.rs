//! `/holds`: the removals that are not passed on, and orders for them.
//!
//! Owns the path, and what others show of holds. What is held is decided elsewhere.

mod holding;
mod orders;
mod outcome;
mod shown;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::forms::{self, Asked, Format};
use super::{Shown, written};
use crate::cache::View;
use crate::clock::{self, WallClock};
use crate::xds::{Hold, Name, TypeUrl};

pub(super) use orders::{extend, release};

/// How many names of a hold are told in short.
const SOME: usize = 10;

pub(super) async fn answer(State(shown): State<Shown>, asked: Asked) -> Response {
    let questions = shown.status.questions();
    let holds = || holding::all(&shown);
    match forms::format(asked, "/holds or /holds?format=json") {
        Ok(Format::Text) => {
            let form = "text/plain; charset=utf-8";
            written::answer(questions, form, |page| shown::write_text(holds(), page)).await
        }
        Ok(Format::Json) => {
            written::answer(questions, "application/json", |page| shown::write_json(holds(), page)).await
        }
        Err(wrong) => wrong.into_response(),
    }
}

/// Returns why a resource of a view is held, if it is.
pub(super) fn of_resource(view: &View, type_url: &TypeUrl, name: &Name, clock: WallClock) -> Option<Value> {
    let holds = view.holds();
    let holds = holds.iter().filter(|hold| hold.type_url == *type_url);
    let mut found = holds.filter_map(|hold| Some((hold, hold.removals.get(name)?)));
    let (hold, removal) = found.next()?;
    Some(json!({ "reason": hold.reason.word(), "removal": shown::resource(name, removal, clock) }))
}

/// Returns how many holds there are.
pub(super) fn count(shown: &Shown) -> usize {
    let views = shown.status.census().views();
    views.iter().map(|view| view.holds().len()).sum()
}

/// Sets the gauges.
pub(super) async fn measure(shown: &Shown) {
    let (mut counts, mut oldest) = (Vec::new(), None);
    for view in shown.status.census().views() {
        for hold in view.holds().iter() {
            counts.push((hold.reason, hold.type_url.clone(), hold.removals.len()));
            holding::each_piece(hold, |piece| {
                let first = piece.iter().map(|(_, removal)| removal.since).min();
                oldest = [oldest, first].into_iter().flatten().min();
            })
            .await;
        }
    }
    let oldest = oldest.map(|since| clock::now().saturating_duration_since(since));
    shown.metrics.holds.show(&counts, oldest);
}

/// Returns the holds by their ids, for `/events`.
pub(super) fn brief(shown: &Shown) -> BTreeMap<String, Value> {
    let clock = WallClock::read();
    let found = holding::all(shown).into_iter();
    found.map(|found| (found.id(), json_of(&found, clock))).collect()
}

fn json_of(found: &holding::Holding, clock: WallClock) -> Value {
    let hold: &Hold = &found.hold;
    let by = hold.removals.values().find_map(|removal| removal.by.as_ref());
    json!({
        "server": found.server,
        "class": found.view.class().to_string(),
        "type": hold.type_url.word(),
        "reason": hold.reason.word(),
        "trouble": hold.is_trouble(clock::now()),
        "count": hold.removals.len(),
        "since": hold.since().map(|at| clock.time(at)),
        "until": hold.until().map(|at| clock.time(at)),
        "by": by.map(|by| json!({ "type": by.type_url.word(), "name": by.name.as_str(), "said": by.said })),
        "some": hold.removals.keys().take(SOME).map(Name::as_str).collect::<Vec<_>>(),
    })
}
