//! What is remembered of contents that are not condemned, or not any more.
//!
//! Owns what may never stand in, what a person has released, and what stood in before. Everything ends with time or number.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use classes::ClientKind;
use xds::{Condemned, Name, Resource, TypeUrl, Version};

/// As many of each are remembered.
const MAX: usize = 1024;
/// After so long the view does not remember older content either.
const FORGET: Duration = Duration::from_secs(10 * 60);

/// A content, for one kind of client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) type_url: TypeUrl,
    pub(super) name: Name,
    pub(super) version: Version,
    pub(super) kind: Option<ClientKind>,
}

/// Contents of the recent past.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Clients of the kind have rejected these, and none is known to have accepted them.
    spoiled: VecDeque<(Charge, Instant)>,
    released: VecDeque<Charge>,
    /// Verdicts that are over because the content has changed.
    past: VecDeque<(Arc<Condemned>, Instant)>,
}

impl Charge {
    pub(super) fn of(condemned: &Condemned) -> Self {
        Self {
            type_url: condemned.type_url.clone(),
            name: condemned.name().clone(),
            version: condemned.version,
            kind: condemned.kind.clone(),
        }
    }

    /// The same of another content of the name.
    pub(super) fn at(&self, version: Version) -> Self {
        Self {
            version,
            ..self.clone()
        }
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() >= MAX {
        all.pop_front();
    }
    all.push_back(one);
}

impl Memory {
    pub(super) fn note_spoiled(&mut self, charge: Charge, now: Instant) {
        self.spoiled.retain(|(known, _)| *known != charge);
        keep(&mut self.spoiled, (charge, now));
    }

    pub(super) fn note_accepted(&mut self, charge: &Charge) {
        self.spoiled.retain(|(known, _)| known != charge);
    }

    pub(super) fn note_released(&mut self, charge: Charge) {
        keep(&mut self.released, charge);
    }

    pub(super) fn note_past(&mut self, condemned: Arc<Condemned>, now: Instant) {
        keep(&mut self.past, (condemned, now));
    }

    pub(super) fn is_spoiled(&self, charge: &Charge) -> bool {
        self.spoiled.iter().any(|(known, _)| known == charge)
    }

    pub(super) fn is_released(&self, charge: &Charge) -> bool {
        self.released.contains(charge)
    }

    /// Returns what stood in for a content.
    pub(super) fn stood_in(&self, charge: &Charge) -> Option<&Arc<Resource>> {
        let mut past = self.past.iter().rev();
        let found =
            past.find(|(one, _)| one.is(&charge.type_url, &charge.name, charge.version) && one.kind == charge.kind);
        found.map(|(one, _)| &one.stands_in)
    }

    /// Forgets what is old, and what was released and is not the content any more.
    pub(super) fn forget(&mut self, is_current: impl Fn(&TypeUrl, &Name, Version) -> bool, now: Instant) {
        self.spoiled.retain(|(_, at)| *at + FORGET > now);
        self.past.retain(|(_, at)| *at + FORGET > now);
        self.released
            .retain(|charge| is_current(&charge.type_url, &charge.name, charge.version));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spoiled.is_empty() && self.released.is_empty() && self.past.is_empty()
    }
}
