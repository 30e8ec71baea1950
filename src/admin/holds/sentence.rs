//! What is held, as the page says it: in sentences whose times the page counts down.
//!
//! Owns the order of the parts. The words are those of the table, whoever reads them.

use std::time::Instant;

use serde_json::{Value, json};

use crate::clock::WallClock;
use crate::xds::{Hold, HoldCause, Name, OLDER_WORDS, printable};

/// How many names are in a sentence.
const NAMED: usize = 3;

/// What a sentence says of all that is held together.
pub(super) struct Times {
    /// When the first of it goes, and the last; `None`: no clock runs.
    pub(super) ends: Option<(Instant, Instant)>,
    /// Whether somebody should look.
    pub(super) trouble: bool,
}

/// Returns the parts of the sentences: texts, and times of which the page says how far away they are.
pub(super) fn of(hold: &Hold, times: &Times, server: &str, holds: &[Hold], clock: WallClock) -> Vec<Value> {
    let Some((first, removal)) = hold.removals.iter().next() else {
        return Vec::new();
    };
    let (words, server) = (hold.reason.words(), printable(server));
    let cause = HoldCause::of(hold.reason, removal, holds);
    let ([did, served], [goes, go]) = (words.told, words.goes);
    let one = printable(first.as_str());
    let (it, its, goes, all) = match hold.removals.len() {
        1 => ("it", "it", format!("It {goes}"), named(hold)),
        _ => (&*one, "them", format!("They {go}"), named(hold)),
    };
    let long = if times.trouble && cause != HoldCause::Lost {
        " for over 15 min"
    } else {
        ""
    };
    let why = cause.why(it, removal.by.as_ref());
    let what = format!("{did} {} {all} {served}: {why}{long}.", hold.type_url.word());
    let (unless, time) = (cause.unless(its, &server), |at| json!({ "left": clock.time(at) }));
    match times.ends {
        None => vec![json!(format!("{what} {goes} {}.", cause.once(its, &server)))],
        Some((from, until)) if clock.short(from) == clock.short(until) => {
            vec![
                json!(format!("{what} {goes} in ")),
                time(until),
                json!(format!("{unless}.")),
            ]
        }
        Some((from, until)) => vec![
            json!(format!("{what} The first {} in ", words.goes[0])),
            time(from),
            json!(", the last in "),
            time(until),
            json!(format!("{unless}.")),
        ],
    }
}

/// Returns the sentence for older content.
pub(super) fn of_older(what: &str, clients: &str) -> Vec<Value> {
    let ([older, used], [why, _]) = (OLDER_WORDS.told, OLDER_WORDS.why);
    vec![json!(format!("{older} {what} {used} by {clients}: {why}."))]
}

/// Returns the first names, and how many more there are.
fn named(hold: &Hold) -> String {
    let names = hold.removals.keys().take(NAMED).map(Name::as_str);
    let names: Vec<_> = names.map(printable).collect();
    match hold.removals.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
