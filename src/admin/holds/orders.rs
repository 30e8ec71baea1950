// SPDX-License-Identifier: Apache-2.0
//! `/holds/extend` and `/holds/release`: orders for held removals.
//!
//! Owns the queries, and what is said of an order once it is carried out.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures_util::future::join_all;
use serde::Deserialize;

use super::super::Shown;
use super::super::forms::{Answered, Asked, Refused, wrong};
use super::holding;
use super::older;
use super::outcome::Outcome;
use crate::cache::View;
use crate::clock::{self, WallClock};
use crate::config;
use crate::xds::{Hold, HoldAction, HoldOrder, HoldTarget, OLDER_WORDS, printable};

/// How much longer an order can hold removals.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const USUAL: Duration = Duration::from_secs(30 * 60);
/// The longest reason.
const REASON_BYTES: usize = 500;
/// How long it is waited for that an order is carried out.
const PATIENCE: Duration = Duration::from_secs(5);

/// The query of an order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Ordered {
    target: String,
    reason: String,
    #[serde(rename = "for")]
    time: Option<String>,
}

pub(in crate::admin) async fn extend(State(shown): State<Shown>, Asked(order): Asked<Ordered>) -> Answered {
    let action = |time: Option<&str>| match time.map_or(Ok(USUAL), duration)? {
        time if time > LONGEST => Err("removals can be held for 24h more at most\n".to_owned()),
        time => Ok(HoldAction::Extend(time)),
    };
    give(&shown, order, action).await
}

pub(in crate::admin) async fn release(State(shown): State<Shown>, Asked(order): Asked<Ordered>) -> Answered {
    let action = |time: Option<&str>| match time {
        Some(_) => Err("what is released needs no time\n".to_owned()),
        None => Ok(HoldAction::Release),
    };
    give(&shown, order, action).await
}

async fn give(
    shown: &Shown,
    Ordered { target, reason, time }: Ordered,
    action: impl FnOnce(Option<&str>) -> Result<HoldAction, String>,
) -> Answered {
    let reason = printable(reason.trim()).into_owned();
    if reason.is_empty() || reason.len() > REASON_BYTES {
        return Err(wrong(format!("write a reason of 1 to {REASON_BYTES} bytes\n")));
    }
    let action = action(time.as_deref()).map_err(wrong)?;
    let concerned = concerned(shown, &target);
    let mut older = older::all(shown);
    older.retain(|one| action == HoldAction::Release && one.is_meant(&target));
    if !older.is_empty() {
        older.iter().for_each(older::InUse::release);
        tracing::warn!(target, reason, "an order for older content");
    }
    if concerned.is_empty() && !older.is_empty() {
        return Ok(format!("{} {}\n", OLDER_WORDS.counted(older.len()), OLDER_WORDS.released[0]).into_response());
    }
    if concerned.is_empty() {
        let text = format!("nothing is held under `{target}`; /holds lists what is held\n");
        return Err(Refused::new(StatusCode::NOT_FOUND, text));
    }
    let (now, mut given) = (clock::now(), Vec::new());
    for (view, target, _) in &concerned {
        let order = HoldOrder {
            target: target.clone(),
            action,
            reason: Arc::from(&*reason),
        };
        match view.mailbox().order(order) {
            Some(done) => given.push(done),
            None => {
                return Err(Refused::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many orders wait; try again\n",
                ));
            }
        }
    }
    if clock::timeout(PATIENCE, join_all(given)).await.is_none() {
        let text = "the order is given, and not carried out yet; /holds shows what is held\n";
        return Ok((StatusCode::ACCEPTED, text).into_response());
    }
    let mut outcome = Outcome::new(action, now);
    for (view, target, before) in &concerned {
        outcome.note(target, before, &view.head().holds());
    }
    let said = outcome.text(WallClock::read());
    tracing::warn!(target, reason, said = said.trim_end(), "an order for held removals");
    Ok(said.into_response())
}

/// A view that an order is for, what it is for there, and what the view holds.
type Concerned = (Arc<View>, HoldTarget, Arc<Vec<Hold>>);

fn concerned(shown: &Shown, target: &str) -> Vec<Concerned> {
    let mut found: Vec<Concerned> = Vec::new();
    for holding in holding::all(shown) {
        let Some(meant) = holding.meant(target) else {
            continue;
        };
        let known = |(view, target, _): &Concerned| Arc::ptr_eq(view, &holding.view) && *target == meant;
        if !found.iter().any(known) {
            let before = holding.view.head().holds();
            found.push((holding.view, meant, before));
        }
    }
    found
}

/// Reads a time as the configuration writes it; none is no time.
fn duration(text: &str) -> Result<Duration, String> {
    let time = config::duration(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("`{text}` is not a time; write 90s, 30m or 24h\n"))
}
