// SPDX-License-Identifier: Apache-2.0
//! What the relay read when it composed a response, as far as an observer must know it when the response arrives.
//!
//! Owns the comparison of a response with the books of that moment. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use peers::asked::Asked;

use super::body::Type;
use super::names::canonical;
use super::reading::Reading;
use super::wire::Answer;
use super::zone::Zone;

/// What the relay read when it composed a response.
pub(crate) struct Scene {
    pub(crate) reading: Reading,
    /// What the client asked for, by the requests that the relay had read.
    pub(crate) wants: Arc<BTreeMap<Type, Arc<Asked>>>,
    /// Names in the response whose content is not what the views that are read ever had, or that the client may not have.
    pub(crate) strays: BTreeSet<String>,
    /// The names in it whose content the views that were read had last.
    pub(crate) current: BTreeSet<String>,
    pub(crate) now: Instant,
    /// Whether a gate opened because its time was over (D-04).
    pub(crate) expired: bool,
}

/// The names in a response that is about to be sent whose content the views that are read never had, or that are denied.
pub(crate) fn strays(answer: &Answer, reading: &Reading, zones: &[Zone]) -> BTreeSet<String> {
    let kind = answer.kind;
    let said = |name: &str, revision: u64| {
        let zone = reading.zone(kind, name).and_then(|zone| zones.get(zone));
        zone.is_some_and(|zone| zone.writer.book.has(kind, &canonical(kind, name), revision))
    };
    let entries = answer.entries.iter().filter(|entry| {
        let said = entry
            .facts
            .as_ref()
            .is_none_or(|facts| said(&entry.name, facts.revision));
        !said || !reading.allows(kind, &entry.name)
    });
    entries.map(|entry| entry.name.clone()).collect()
}

/// The names in a response that is about to be sent whose content is what the views that are read have now.
pub(crate) fn current(answer: &Answer, reading: &Reading, zones: &[Zone]) -> BTreeSet<String> {
    let is_last = |name: &str, revision: u64| {
        let zone = reading.zone(answer.kind, name).and_then(|zone| zones.get(zone));
        zone.is_some_and(|zone| {
            zone.writer
                .book
                .is_last(answer.kind, &canonical(answer.kind, name), revision)
        })
    };
    let entries = answer.entries.iter().filter(|entry| {
        let facts = entry.facts.as_ref();
        facts.is_some_and(|facts| is_last(&entry.name, facts.revision))
    });
    entries.map(|entry| entry.name.clone()).collect()
}
