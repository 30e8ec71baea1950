// SPDX-License-Identifier: Apache-2.0
//! Nothing is sent that the server that is read never said, or that the client may not have, and nothing older than what was sent
//! (K-02, G-17, S-01).
//!
//! Owns the comparison of contents with the books of the views. Knows nothing of why they are sent.

use super::Came;
use crate::client::Persona;
use crate::names::{canonical, is_unnamed};
use crate::reading::Seen;
use crate::tally::{Broken, Rule, Tally};

pub(super) fn check(came: &Came<'_>, tally: &mut Tally) -> Result<(), Broken> {
    let (kind, reading) = (came.kind(), &came.scene.reading);
    let memory = came.client.memory(came.stream, kind);
    for entry in &came.answer.entries {
        let Some(facts) = &entry.facts else { continue };
        let (name, revision) = (&entry.name, facts.revision);
        tally.hit(Rule::G17);
        if reading.permitted.is_some() {
            tally.hit(Rule::S01);
        }
        if is_unnamed(name) {
            tally.hit(Rule::F13);
        }
        if canonical(kind, name) != *name {
            tally.hit(Rule::F09);
        }
        if came.scene.strays.contains(name) {
            // What the view does not know, and what goes, stays in full answers as it was sent.
            let whole = came.client.is_full(kind) || came.client.is_listed(kind);
            let again = memory.is_some_and(|memory| memory.had(name, revision));
            // B-18: a secret that the client rejects as the view has it is listed as it was accepted. Random clients keep no account of
            // what they reject.
            let random = came.client.persona == Persona::Hostile;
            let refuses = |known| random || memory.is_some_and(|memory| memory.refuses(name, known));
            let listed = |known| came.client.is_listed(kind) && refuses(known);
            let known = came.want(kind).map(|want| reading.seen(kind, name, want));
            let other = matches!(known, Some(Seen::Present(known)) if !listed(known));
            if !whole || !again || other {
                let rule = if reading.allows(kind, name) {
                    Rule::G17
                } else {
                    Rule::S01
                };
                let zone = reading.zone(kind, name);
                return Err(Broken::new(
                    rule,
                    format!("{kind:?} {name}@{revision} is not the word of {zone:?}"),
                ));
            }
            continue;
        }
        tally.hit(Rule::Age);
        // After a move the view that is read now may have had this content last, and get the other one while it is on its way.
        if came.scene.current.contains(name) {
            continue;
        }
        let random = came.client.persona == Persona::Hostile;
        if !random && memory.is_some_and(|memory| !memory.had(name, revision)) {
            tally.hit(Rule::K37);
            if memory.is_some_and(|memory| !memory.refused.contains_key(name)) {
                return broken!(K37, "{kind:?} {name}@{revision} is older content");
            }
        }
        let held = came
            .client
            .held(kind)
            .get(name)
            .filter(|held| held.stream == came.stream);
        let zone = reading.zone(kind, name).and_then(|zone| came.zones.get(zone));
        if let (Some(held), Some(zone)) = (held, zone)
            && zone
                .writer
                .book
                .is_before(kind, &canonical(kind, name), revision, held.revision)
        {
            return broken!(Age, "{kind:?} {name}@{revision} after @{}", held.revision);
        }
    }
    Ok(())
}
