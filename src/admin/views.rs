// SPDX-License-Identifier: Apache-2.0
//! `/views`: what the relay has of its control planes, view by view, with digests by which replicas can be compared.
//!
//! Owns what is counted. The form is in `answers`; what a view is, and how its digests are made, is in `cache` and `xds`.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use serde_json::json;

use super::Shown;
use super::forms::{self, Answered, Asked, Limited};
use crate::answers::{self, HalfRow, Halves, ViewList};
use crate::cache::View;
use crate::clock;
use crate::xds::{self, ServerState};

/// After so many views others get their turn.
const AT_ONCE: usize = 256;

pub(super) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<Limited>) -> Answered {
    let names = shown.overview.look().names;
    let all = shown.status.census().views();
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let mut views = Vec::new();
    for (number, view) in all.iter().take(limit).enumerate() {
        if number % AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        views.push(shown_view(view, &names));
    }
    let left_out = all.len() - views.len();
    Ok(forms::json(&json!(ViewList { left_out, views })))
}

fn shown_view(view: &View, names: &BTreeMap<usize, String>) -> answers::ViewRow {
    let (reading, watching) = view.demand().readers();
    let cut = view.cut();
    let away = cut.server_state() == ServerState::Failing;
    let types = cut.slots().map(|(type_url, slot)| {
        let halves = Halves {
            wildcard: slot.wildcard.as_ref().map(|state| half(state, away)),
            named: half(&slot.named, away),
        };
        (type_url.full_name().to_owned(), halves)
    });
    let holds = view.head().holds();
    let troubles = holds.iter().filter(|hold| hold.is_trouble(clock::now()));
    answers::ViewRow {
        class: view.class().to_string(),
        server: names.get(&view.server()).cloned(),
        reading,
        watching,
        held: holds.iter().map(|hold| hold.removals.len()).sum(),
        held_in_trouble: Some(troubles.map(|hold| hold.removals.len()).sum()),
        older: sent_older(view),
        types: types.collect(),
    }
}

/// How many clients were sent older content in the place of what they reject.
fn sent_older(view: &View) -> usize {
    let mut streams = BTreeSet::new();
    view.rejected()
        .each(|_, stream, older| _ = older.then(|| streams.insert(stream)));
    streams.len()
}

/// Returns what the wildcard covers, or what was asked for by name.
fn half(state: &xds::State, away: bool) -> HalfRow {
    HalfRow {
        resources: state.present(),
        bytes: state.bytes(),
        complete: state.complete(),
        stale: state.stale() || away && state.present() > 0,
        digest: state.sum().to_string(),
    }
}
