// SPDX-License-Identifier: Apache-2.0
//! Nothing that a client wants is removed, or left out where all is listed, unless it is known to be gone (G-20, K-16, B-16, B-18).
//!
//! Owns the judgement of removals and omissions. What the client holds it asks the client.

use peers::asked::Asked;
use xds::{Dialect, Reason};

use super::Came;
use crate::client::Holding;
use crate::reading::Seen;
use crate::tally::{Broken, Rule, Tally};

pub(super) fn check(came: &Came<'_>, tally: &mut Tally) -> Result<(), Broken> {
    let kind = came.kind();
    tally.hit(Rule::B29);
    let Some(want) = came.want(kind) else {
        return broken!(B29, "{kind:?} was never asked for");
    };
    if came.is_hostile() {
        return Ok(());
    }
    let held = came.client.held(kind);
    for name in came.answer.removed.iter().chain(came.omitted()) {
        let seen = came.scene.reading.seen(kind, name, want);
        let rule = if seen == Seen::Absent(Reason::TimedOut) {
            Rule::K16
        } else {
            Rule::G20
        };
        tally.hit(rule);
        if !is_sound(came, want, name, seen, held.get(name)) {
            let held = held.get(name).map(|held| held.revision);
            let what = format!("{kind:?} {name} goes, the view has {seen:?}, and the client holds @{held:?}");
            return Err(Broken::new(rule, what));
        }
    }
    let full = came.client.is_full(kind);
    if full && want.wildcard && !came.scene.reading.is_complete(kind) {
        return broken!(G20, "{kind:?} is not complete, and is sent");
    }
    // The empty answer to a wildcard with nothing behind it brings nothing.
    if full || came.client.is_listed(kind) && !came.answer.entries.is_empty() {
        return check_all(came, want, tally);
    }
    Ok(())
}

/// B-16, B-18: what exists is there.
fn check_all(came: &Came<'_>, want: &Asked, tally: &mut Tally) -> Result<(), Broken> {
    let (kind, reading) = (came.kind(), &came.scene.reading);
    let memory = came.client.memory(came.stream, kind);
    // B-22: of secrets that were rejected some may be held back, or tried while others wait. K-37: of what is rejected in a full state nothing
    // older may be known.
    let refused = memory
        .map(|memory| &memory.refused)
        .filter(|refused| !refused.is_empty());
    let tries = refused.is_some() && came.client.is_listed(kind);
    for name in reading.wanted(kind, want) {
        let Seen::Present(_) = reading.seen(kind, &name, want) else {
            continue;
        };
        tally.hit(Rule::B16);
        let rejected = refused.is_some_and(|refused| refused.contains_key(&name));
        if !came.answer.lists(&name) && !tries && !rejected {
            return broken!(B16, "{kind:?} {name} is left out, and it is there");
        }
    }
    if came.client.is_listed(kind) {
        tally.hit(Rule::B18);
        let mut held = came.client.held(kind).iter().filter(|(name, held)| {
            let unknown = reading.seen(kind, name, want) == Seen::Unknown;
            held.stream == came.stream && !held.mortal && want.names.contains(*name) && unknown
        });
        if let Some((name, _)) = held.find(|(name, _)| !came.answer.lists(name)) {
            return broken!(B18, "{kind:?} {name} is left out, and the client holds it");
        }
    }
    Ok(())
}

/// Whether a client may be told that something is gone.
fn is_sound(came: &Came<'_>, want: &Asked, name: &str, seen: Seen, held: Option<&Holding>) -> bool {
    let (kind, reading, stream) = (came.kind(), &came.scene.reading, came.stream);
    let memory = came.client.memory(stream, kind);
    let full = came.client.is_full(kind);
    let refused = memory.is_some_and(|memory| memory.refused.contains_key(name));
    // A full state waits for what is unknown only as long as its server may answer, if it was not sent on this stream.
    let here = held.is_some_and(|held| !full || held.stream == stream);
    // What was on its way when the client gave it up and asked for it again, it perhaps ignored.
    let sure = |held: &Holding| memory.is_none_or(|memory| memory.is_sure(name, held.serial));
    let unsure = full && (refused || !held.is_some_and(sure));
    match seen {
        Seen::Unwanted | Seen::Uncovered | Seen::Absent(Reason::Said | Reason::Expired) => true,
        Seen::Absent(Reason::TimedOut) => {
            let zone = reading.zone(kind, name).and_then(|zone| came.zones.get(zone));
            let left = zone.is_some_and(|zone| want.covers(name) && zone.writer.book.has_left(kind, name));
            !here || unsure || left || refused
        }
        Seen::Unknown => unsure || !here && came.client.dialect == Dialect::Sotw,
        // The rest of an answer that has begun may be older than the view.
        Seen::Present(_) => came.answer.goes_on() || memory.is_some_and(|memory| memory.goes_on),
    }
}
