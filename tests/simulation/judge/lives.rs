// SPDX-License-Identifier: Apache-2.0
//! Times to live: who can read one is told what remains of it, and nobody else is told (K-17, K-18, B-30).
//!
//! Owns the judgement of single entries when they are sent. Knows nothing of other rules.

use xds::Dialect;

use super::Scene;
use crate::body::Type;
use crate::client::{Client, Persona};
use crate::reading::Seen;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Entry};

pub(super) fn check(client: &Client, answer: &Answer, scene: &Scene, tally: &mut Tally) -> Result<(), Broken> {
    if client.persona == Persona::Hostile {
        return Ok(());
    }
    let (kind, sotw) = (answer.kind, client.dialect == Dialect::Sotw);
    let (ttl, wrapper) = client.reads();
    let envoy = client.is_undeclared_envoy();
    let reads = (ttl && (!sotw || wrapper) || envoy) && !(sotw && kind == Type::Eds);
    for entry in &answer.entries {
        let name = &entry.name;
        if entry.wrapped && !wrapper && !(envoy && entry.ttl.is_some()) {
            return broken!(K18, "{kind:?} {name} is wrapped");
        }
        if entry.facts.is_none() && (sotw || entry.ttl.is_none()) {
            return broken!(K17, "{kind:?} {name} has neither a body nor a time to live");
        }
        let Some(ttl) = entry.ttl else {
            if reads && is_mortal(answer, entry, scene) {
                return broken!(K17, "{kind:?} {name} is sent without its time to live");
            }
            continue;
        };
        tally.hit(Rule::K18);
        if !reads {
            return broken!(K18, "{kind:?} {name} has a time to live, which the client cannot read");
        }
        tally.hit(Rule::K17);
        let expiry = scene.reading.expiry(kind, name);
        let remains = expiry.map(|expiry| expiry.at.saturating_duration_since(scene.now));
        if remains.is_some_and(|remains| remains < ttl) {
            return broken!(K17, "{kind:?} {name} lives {ttl:?} of {remains:?}");
        }
    }
    Ok(())
}

/// Whether what an entry brings ends by itself.
fn is_mortal(answer: &Answer, entry: &Entry, scene: &Scene) -> bool {
    let (Some(facts), Some(want)) = (&entry.facts, scene.wants.get(&answer.kind)) else {
        return false;
    };
    let seen = scene.reading.seen(answer.kind, &entry.name, want);
    seen == Seen::Present(facts.revision) && scene.reading.expiry(answer.kind, &entry.name).is_some()
}
