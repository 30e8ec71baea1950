// SPDX-License-Identifier: Apache-2.0
//! A client, as naive as can be: what it holds of each type.
//!
//! Owns what it makes of what the views serve: it gives up only what is known to be gone. Does not know which views these are.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use xds::{Cut, Known, Name, Reason, Slot, TypeUrl};

/// A client.
#[derive(Clone)]
pub(super) struct Client {
    /// What it reads: main alone (0), or the types of the source beside at this server of that.
    at: usize,
    /// It has just moved there.
    moved: bool,
    /// By type and name; and where it was read.
    held: BTreeMap<(&'static str, String), (Bytes, usize)>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a client at {}", self.at)
    }
}

impl Client {
    /// One that starts now.
    pub(super) const fn new(at: usize) -> Self {
        Self {
            at,
            moved: false,
            held: BTreeMap::new(),
        }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn has_moved(&self) -> bool {
        self.moved
    }

    pub(super) const fn move_to(&mut self, at: usize) {
        (self.at, self.moved) = (at, true);
    }

    /// It is sent what it lacks of a type, and told what is gone.
    pub(super) fn read(&mut self, kind: &'static str, cut: &Cut) {
        self.moved = false;
        let Some(slot) = cut.slot(&TypeUrl::new(kind)) else {
            return;
        };
        self.held.retain(|(of, name), _| *of != kind || stays(slot, name));
        for resource in slot.halves().flat_map(|state| state.resources()) {
            let name = resource.name().as_str().to_owned();
            self.held.insert((kind, name), (resource.body(), self.at));
        }
    }

    pub(super) fn get(&self, kind: &'static str, name: &str) -> Option<&Bytes> {
        self.held.get(&(kind, name.to_owned())).map(|(body, _)| body)
    }

    /// Whether it has read this where it is.
    pub(super) fn has_read(&self, kind: &'static str, name: &str) -> bool {
        let held = self.held.get(&(kind, name.to_owned()));
        held.is_some_and(|(_, at)| *at == self.at)
    }

    pub(super) fn has(&self, kind: &'static str, name: &str) -> bool {
        self.get(kind, name).is_some()
    }
}

/// Whether a client keeps what it holds of a name. K-16: silence takes nothing from it.
fn stays(slot: &Slot, name: &str) -> bool {
    match slot.known(&Name::from(name)) {
        Some(Known::Absent(reason)) => *reason == Reason::TimedOut,
        Some(Known::Present(_) | Known::Held(_)) => true,
        None => !slot.wildcard.as_ref().is_some_and(|state| state.certain()),
    }
}
