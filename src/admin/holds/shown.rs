//! Holds as text and as JSON.
//!
//! Owns the forms.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};

use super::holding::{Holding, Summary};
use super::older::InUse;
use crate::clock::WallClock;
use crate::xds::{HeldRemoval, Hold, HoldReason, Name, Referrer, printable};

/// How many resources of a hold are listed.
const LISTED_MAX: usize = 1000;
/// How many of them as text.
const SHOWN_MAX: usize = 10;

/// Returns the holds as JSON.
pub(super) async fn json(holds: &[Holding], older: &[InUse]) -> Value {
    let (clock, mut listed) = (WallClock::read(), Vec::new());
    for found in holds {
        listed.push(json_of(found, &found.summary().await, clock));
    }
    let older: Vec<Value> = older.iter().map(|one| one.json(clock)).collect();
    json!({ "holds": listed, "older": older })
}

/// Returns the holds as text.
pub(super) async fn text(holds: &[Holding], older: &[InUse]) -> String {
    let (clock, mut text) = (WallClock::read(), String::new());
    if holds.is_empty() && older.is_empty() {
        text.push_str("nothing is held\n");
    }
    for found in holds {
        text.push_str(&text_of(found, &found.summary().await, clock));
    }
    older.iter().for_each(|one| text.push_str(&one.text(clock)));
    text
}

fn json_of(found: &Holding, summary: &Summary, clock: WallClock) -> Value {
    let hold = &found.hold;
    let listed = hold.removals.iter().take(LISTED_MAX);
    let listed: Vec<Value> = listed.map(|(name, removal)| resource(name, removal, clock)).collect();
    json!({
        "id": found.id(),
        "server": found.server,
        "class": found.view.class().to_string(),
        "type": hold.type_url.full_name(),
        "reason": hold.reason.word(),
        "judgement": hold.judgement,
        "trouble": summary.trouble,
        "since": summary.since.map(|at| clock.time(at)),
        "until": summary.until.map(|at| clock.time(at)),
        "clients": summary.clients,
        "count": hold.removals.len(),
        "left_out": hold.removals.len().saturating_sub(LISTED_MAX),
        "resources": listed,
    })
}

fn text_of(found: &Holding, summary: &Summary, clock: WallClock) -> String {
    let (hold, mut text) = (&found.hold, String::new());
    let time = |at: Option<Instant>, none: &str| at.map_or_else(|| none.to_owned(), |at| clock.short(at));
    // Writing to memory cannot fail.
    let _ = writeln!(
        text,
        "{}  {} {} of {} for {}: {}; since {}, until {}; {}",
        found.id(),
        hold.removals.len(),
        hold.type_url.word(),
        printable(&found.server),
        printable(&found.view.class().to_string()),
        why(hold.reason, summary.trouble),
        time(summary.since, "?"),
        time(summary.until, "nothing refers to them"),
        counted(summary.clients, "client"),
    );
    for (name, removal) in hold.removals.iter().take(SHOWN_MAX) {
        let _ = write!(text, "  {}", printable(name.as_str()));
        if removal.emptied {
            text.push_str(", which has no endpoints any more");
        }
        if let Some(by) = &removal.by {
            let why = match hold.reason {
                HoldReason::Unready => lacking(by),
                HoldReason::Mass | HoldReason::Referenced => referring(by, &found.view.head().holds()),
            };
            let _ = write!(text, ", {why}");
        }
        if let Some(reason) = &removal.extended {
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

/// Returns what refers to a resource: `to which rds public refers`. If the control plane does not send that any more, it is itself one
/// of the `holds` of the view, or only clients that have not left it yet still use it.
pub(super) fn referring(by: &Referrer, holds: &[Hold]) -> String {
    let Referrer { type_url, name, said } = by;
    let held = || {
        holds
            .iter()
            .any(|hold| hold.type_url == *type_url && hold.removals.contains_key(name))
    };
    let more = match *said {
        true => "",
        false if held() => ", which is held itself",
        false => ", which only clients that drain still use",
    };
    format!("to which {} {} refers{more}", type_url.word(), printable(name.as_str()))
}

/// Returns what a change waits for: `which waits for eds a`.
fn lacking(by: &Referrer) -> String {
    let more = if by.said { "" } else { ", whose server is away" };
    format!(
        "which waits for {} {}{more}",
        by.type_url.word(),
        printable(by.name.as_str())
    )
}

/// Returns one held resource as JSON.
pub(super) fn resource(name: &Name, removal: &HeldRemoval, clock: WallClock) -> Value {
    json!({
        "name": name.as_str(),
        "since": clock.time(removal.since),
        "until": removal.until.map(|at| clock.time(at)),
        "by": removal.by.as_ref().map(|Referrer { type_url, name, .. }| format!("{} {name}", type_url.word())),
        "said": removal.by.as_ref().map(|by| by.said),
        "emptied": removal.emptied,
        "extended": removal.extended.as_deref(),
    })
}

const fn why(reason: HoldReason, trouble: bool) -> &'static str {
    match (reason, trouble) {
        (HoldReason::Mass, _) => "much was lost at once",
        (HoldReason::Referenced, true) => {
            "for over 15 min, something that the control plane still sends has referred to them"
        }
        (HoldReason::Referenced, false) => "something served refers to them",
        (HoldReason::Unready, _) => "they are changed, and another source does not have what they lead to",
    }
}

pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
