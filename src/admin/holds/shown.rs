// SPDX-License-Identifier: Apache-2.0
//! Holds as text and as answers.
//!
//! Owns the forms.

use std::fmt::Write as _;

use super::holding::Holding;
use super::older::InUse;
use super::sentence::LONG;
use crate::answers::{HeldName, HoldList, HoldRow};
use crate::clock::WallClock;
use crate::xds::{HeldRemoval, Hold, HoldCause, HoldReason, HoldWords, Link, Name, Referrer, printable};

/// How many resources of a hold are listed.
const LISTED_MAX: usize = 1000;
/// How many of them as text.
const SHOWN_MAX: usize = 10;

/// Returns the holds as they are answered.
pub(super) async fn answer(holds: &[Holding], older: &[InUse]) -> HoldList {
    let (clock, mut listed, mut text) = (WallClock::read(), Vec::new(), String::new());
    if holds.is_empty() && older.is_empty() {
        text.push_str("nothing is held\n");
    }
    for found in holds {
        let clients = found.clients().await;
        text.push_str(&text_of(found, clients, clock));
        listed.push(row(found, clients, clock));
    }
    older.iter().for_each(|one| text.push_str(&one.text(clock)));
    HoldList {
        holds: listed,
        older: older.iter().map(|one| one.answer(clock)).collect(),
        text,
    }
}

fn row(found: &Holding, clients: usize, clock: WallClock) -> HoldRow {
    let hold = &found.hold;
    let listed = hold.removals.iter().take(LISTED_MAX);
    let holds = found.view.head().holds();
    HoldRow {
        id: found.id(),
        server: found.server.clone(),
        class: found.view.class().to_string(),
        type_url: hold.type_url.full_name().to_owned(),
        reason: hold.reason.word().to_owned(),
        judgement: hold.judgement,
        trouble: hold.is_trouble(clock.now),
        since: hold.since().map(|at| clock.time(at)),
        until: hold.until().map(|at| clock.time(at)),
        clients,
        count: hold.removals.len(),
        left_out: hold.removals.len().saturating_sub(LISTED_MAX),
        resources: listed
            .map(|(name, removal)| resource(hold.reason, name, removal, &holds, clock))
            .collect(),
    }
}

fn text_of(found: &Holding, clients: usize, clock: WallClock) -> String {
    let (hold, mut text) = (&found.hold, String::new());
    let holds = found.view.head().holds();
    let cause = |removal| HoldCause::of(hold.reason, removal, &holds);
    let (server, since) = (printable(&found.server), hold.since());
    let until = match (hold.until(), hold.removals.values().next()) {
        (Some(until), _) => format!("until {}", clock.short(until)),
        (None, Some(first)) => cause(first).once("them", &server),
        (None, None) => String::new(),
    };
    let is_long = hold.reason == HoldReason::Referenced && hold.is_trouble(clock.now);
    let long = if is_long { LONG } else { "" };
    // Writing to memory cannot fail.
    let _ = writeln!(
        text,
        "{}  {} {} of {server} for {}: {}{long}; since {}, {until}; {}",
        found.id(),
        hold.removals.len(),
        hold.type_url.word(),
        printable(&found.view.class().to_string()),
        HoldWords::of(hold.reason).why,
        since.map_or_else(|| "?".to_owned(), |at| clock.short(at)),
        counted(clients, "client"),
    );
    for (name, removal) in hold.removals.iter().take(SHOWN_MAX) {
        let _ = write!(text, "  {}", printable(name.as_str()));
        if removal.emptied {
            text.push_str(", which has no endpoints any more");
        }
        if hold.reason != HoldReason::Mass {
            let _ = write!(text, ": {}", cause(removal).why("it", removal.by.as_ref()));
        }
        if let Some((_, reason)) = &removal.extended {
            let _ = write!(text, "; extended: {}", printable(reason));
        }
        text.push('\n');
    }
    let more = hold.removals.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

/// Returns one held resource as it is answered.
pub(super) fn resource(
    reason: HoldReason,
    name: &Name,
    removal: &HeldRemoval,
    holds: &[Hold],
    clock: WallClock,
) -> HeldName {
    let by = removal.by.as_ref();
    HeldName {
        name: name.to_string(),
        why: HoldCause::of(reason, removal, holds).why("it", by),
        since: clock.time(removal.since),
        until: removal.until.map(|at| clock.time(at)),
        by: by.map(|Referrer { type_url, name, .. }| format!("{} {name}", type_url.word())),
        said: by.map(|by| by.link != Link::Unsent),
        emptied: removal.emptied,
        extended: removal.extended.as_ref().map(|(_, reason)| reason.to_string()),
    }
}

pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
