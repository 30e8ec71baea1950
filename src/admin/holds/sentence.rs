// SPDX-License-Identifier: Apache-2.0
//! What is held, as the page says it: in sentences whose times the page counts down.
//!
//! Owns the order of the parts. The words are those of the table, whoever reads them.

use std::time::Instant;

use crate::answers::SentencePart;
use crate::clock::WallClock;
use crate::xds::{Hold, HoldCause, HoldWords, Name, OLDER_WORDS, one_or_several, printable};

/// How many names are in a sentence.
const NAMED: usize = 3;
/// What is told more of a hold at which somebody should look, unless it is a loss.
pub(super) const LONG: &str = " for over 15 min";

/// Returns the parts of the sentences: texts, and times of which the page says how far away they are. `ends` are the first and the last
/// end, if clocks run.
pub(super) fn of(
    hold: &Hold,
    ends: Option<(Instant, Instant)>,
    server: &str,
    holds: &[Hold],
    clock: WallClock,
) -> Vec<SentencePart> {
    let Some((first, removal)) = hold.removals.iter().next() else {
        return Vec::new();
    };
    let (words, server, number) = (HoldWords::of(hold.reason), printable(server), hold.removals.len());
    let cause = HoldCause::of(hold.reason, removal, holds);
    let text = SentencePart::Text;
    let [did, served] = words.told;
    let one = printable(first.as_str());
    let it = if number == 1 { "it" } else { &one };
    let (they, its) = (
        one_or_several(["It", "They"], number),
        one_or_several(["it", "them"], number),
    );
    let long = if cause == HoldCause::Named && hold.is_trouble(crate::clock::now()) {
        LONG
    } else {
        ""
    };
    let why = cause.why(it, removal.by.as_ref());
    let what = format!("{did} {} {} {served}: {why}{long}.", hold.type_url.word(), named(hold));
    let go = one_or_several(words.released, number);
    let (unless, time) = (cause.unless(its, &server), |at| SentencePart::Time {
        left: clock.time(at),
    });
    match ends {
        None => vec![text(format!("{what} {they} {go} {}.", cause.once(its, &server)))],
        Some((from, until)) if clock.short(from) == clock.short(until) => {
            vec![
                text(format!("{what} {they} {go} in ")),
                time(until),
                text(format!("{unless}.")),
            ]
        }
        Some((from, until)) => vec![
            text(format!("{what} The first {} in ", words.released[0])),
            time(from),
            text(", the last in ".to_owned()),
            time(until),
            text(format!("{unless}.")),
        ],
    }
}

/// Returns the sentence for older content.
pub(super) fn of_older(what: &str, clients: &str) -> Vec<SentencePart> {
    let [older, used] = OLDER_WORDS.told;
    vec![SentencePart::Text(format!(
        "{older} {what} {used} by {clients}: {}.",
        OLDER_WORDS.why
    ))]
}

/// Returns the first names, and how many more there are.
fn named(hold: &Hold) -> String {
    let names: Vec<_> = hold
        .removals
        .keys()
        .take(NAMED)
        .map(Name::as_str)
        .map(printable)
        .collect();
    match hold.removals.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
