// SPDX-License-Identifier: Apache-2.0
//! Which types have requests to send, and which have work to do at what time.
//!
//! Owns the order among types. Knows nothing of the requests and the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::outbound::Outbound;
use xds::TypeUrl;

/// An index over the types of one stream, so that no input costs a walk over all of them.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    answers: BTreeSet<TypeUrl>,
    changes: BTreeSet<TypeUrl>,
    deadlines: BTreeMap<TypeUrl, Instant>,
}

impl Agenda {
    /// Records whether a type has requests to send. Without `outbound`, the server gets no requests for the type.
    pub(super) fn note_requests(&mut self, type_url: &TypeUrl, outbound: Option<&Outbound>) {
        let answers = outbound.is_some_and(|outbound| !outbound.acks().is_empty());
        let changes = outbound.is_some_and(Outbound::changed);
        for (types, belongs) in [(&mut self.answers, answers), (&mut self.changes, changes)] {
            if !belongs {
                types.remove(type_url);
            } else if !types.contains(type_url) {
                types.insert(type_url.clone());
            }
        }
    }

    /// Records when a type has work to do.
    pub(super) fn note_deadline(&mut self, type_url: &TypeUrl, deadline: Option<Instant>) {
        match deadline {
            Some(at) => _ = self.deadlines.insert(type_url.clone(), at),
            None => _ = self.deadlines.remove(type_url),
        }
    }

    pub(super) fn remove(&mut self, type_url: &TypeUrl) {
        self.answers.remove(type_url);
        self.changes.remove(type_url);
        self.note_deadline(type_url, None);
    }

    /// Returns the types with responses to answer, in make-before-break order (D-02).
    pub(super) fn answers(&self) -> impl Iterator<Item = &TypeUrl> {
        self.answers.iter()
    }

    /// Returns the first type whose subscription differs from what the server knows.
    pub(super) fn change(&self) -> Option<&TypeUrl> {
        self.changes.first()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.values().min().copied()
    }

    /// Returns the types whose deadlines have passed.
    pub(super) fn due(&self, now: Instant) -> Vec<TypeUrl> {
        let due = self.deadlines.iter().filter(|(_, at)| **at <= now);
        due.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// Drops a deadline that has passed: the type only has to send something now, which needs no reminder.
    pub(super) fn rest(&mut self, type_url: &TypeUrl, now: Instant) {
        if self.deadlines.get(type_url).is_some_and(|at| *at <= now) {
            self.deadlines.remove(type_url);
        }
    }
}
