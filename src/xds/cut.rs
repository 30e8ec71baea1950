// SPDX-License-Identifier: Apache-2.0
//! A view at one instant: the states of all its types.
//!
//! Owns consistency: a reader sees one cut, never parts of two. Does not know how cuts are published.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Changes, Expiry, Hold, Known, Name, Older, Reason, Resource, State, TypeUrl};

/// The states of all types of one view at one instant.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    types: BTreeMap<TypeUrl, Slot>,
    server_state: ServerState,
    /// Why the server has not answered on its present stream, as far as it is known.
    reason: Option<Arc<str>>,
    /// The removals that are not passed on: what they are about is still there.
    holds: Arc<Vec<Hold>>,
    /// Older contents that clients go on using.
    older: Arc<Vec<Older>>,
}

/// The state of the server that the content of a cut comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// The relay is trying to reach it, and nothing has failed yet.
    #[default]
    Trying,
    /// A stream is open, and the server has not answered on it yet.
    Open,
    /// It has answered on its present stream.
    Up,
    /// G-02: it cannot be reached, or ended a stream before its first response, and has not answered since.
    Failing,
}

impl ServerState {
    /// Whether an answer may come at any moment.
    #[must_use]
    pub const fn reachable(self) -> bool {
        matches!(self, Self::Open | Self::Up)
    }

    /// Returns the state of a server with another stream, whose state is `other`: the worse one. But a server that has answered a stream is
    /// up: on the other one it may have nothing to say for ever (C-16, G-08).
    #[must_use]
    pub const fn beside(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failing, _) | (_, Self::Failing) => Self::Failing,
            (Self::Trying, _) | (_, Self::Trying) => Self::Trying,
            (Self::Up, _) | (_, Self::Up) => Self::Up,
            (Self::Open, Self::Open) => Self::Open,
        }
    }
}

/// One type in a cut. It has two halves, what the wildcard covers and what was requested by name, because "not in the wildcard"
/// says nothing about a name (K-05).
#[derive(Clone, Debug)]
pub struct Slot {
    /// What the wildcard covers, if anybody wants it.
    pub wildcard: Option<Arc<State>>,
    /// What was requested by name.
    pub named: Arc<State>,
    /// Whether the server has answered for this type on its present stream.
    pub answered: bool,
}

impl Cut {
    /// Returns the type's states, if anything was ever known of the type.
    pub fn slot(&self, type_url: &TypeUrl) -> Option<&Slot> {
        self.types.get(type_url)
    }

    /// Returns one half of a type, if it is there: what a wildcard covers, or what was requested by name.
    pub fn half(&self, type_url: &TypeUrl, wildcard: bool) -> Option<&Arc<State>> {
        let slot = self.slot(type_url)?;
        if wildcard {
            slot.wildcard.as_ref()
        } else {
            Some(&slot.named)
        }
    }

    /// The state of the server.
    pub const fn server_state(&self) -> ServerState {
        self.server_state
    }

    /// Returns the same content with this state of the server.
    pub fn with_server_state(&self, server_state: ServerState) -> Self {
        Self {
            server_state,
            ..self.clone()
        }
    }

    /// Why the server has not answered on its present stream, as far as it is known.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the same content with this reason why the server has not answered.
    pub fn with_reason(&self, reason: Option<&str>) -> Self {
        Self {
            reason: reason.map(Arc::from),
            ..self.clone()
        }
    }

    /// The removals that are not passed on.
    pub const fn holds(&self) -> &Arc<Vec<Hold>> {
        &self.holds
    }

    /// Returns the same content with these holds.
    pub fn with_holds(&self, holds: Vec<Hold>) -> Self {
        Self {
            holds: Arc::new(holds),
            ..self.clone()
        }
    }

    /// The older contents that clients go on using: what they name is kept (D-09).
    pub const fn older(&self) -> &Arc<Vec<Older>> {
        &self.older
    }

    /// Returns the same content, beside which clients go on using these.
    pub fn with_older(&self, older: Vec<Older>) -> Self {
        Self {
            older: Arc::new(older),
            ..self.clone()
        }
    }

    /// All types of which something is known.
    pub fn slots(&self) -> impl Iterator<Item = (&TypeUrl, &Slot)> {
        self.types.iter()
    }

    /// Returns the first type behind this place of which something is known.
    pub fn type_from(&self, from: Bound<&TypeUrl>) -> Option<&TypeUrl> {
        let mut types = self.types.range((from, Bound::Unbounded));
        types.next().map(|(type_url, _)| type_url)
    }

    /// Returns the cut with the changes applied, and the names for which something changed.
    pub fn with(&self, changes: &Changes) -> (Self, Vec<Name>) {
        let mut next = self.clone();
        let slot = next
            .types
            .entry(changes.type_url.clone())
            .or_insert_with(|| Slot::new(&changes.type_url));
        if let Some(answered) = changes.answered {
            slot.answered = answered;
            if answered && !changes.wildcard && slot.named.stale() {
                slot.named = Arc::new(slot.named.marked(false));
            }
        }
        if changes.updates.is_empty() && changes.complete.is_none() {
            return (next, Vec::new());
        }
        let old = if changes.wildcard {
            slot.wildcard.clone()
        } else {
            Some(slot.named.clone())
        };
        let old = old.unwrap_or_else(|| Arc::new(State::new(changes.type_url.clone())));
        let (state, mut changed) = old.with(&changes.updates, changes.complete);
        let state = Arc::new(state);
        if changes.wildcard {
            changed.extend(slot.aliased(&changed));
            slot.wildcard = Some(state);
        } else {
            slot.named = state;
        }
        (next, changed)
    }

    /// Returns the cut with what an earlier run of the relay knew, and the names for which something changed.
    pub fn restored(&self, changes: &Changes) -> (Self, Vec<Name>) {
        let (mut next, changed) = self.with(changes);
        if let Some(slot) = next.types.get_mut(&changes.type_url) {
            let half = if changes.wildcard {
                slot.wildcard.as_mut()
            } else {
                Some(&mut slot.named)
            };
            if let Some(state) = half {
                *state = Arc::new(state.marked(true));
            }
        }
        (next, changed)
    }

    /// Returns the cut in which nothing is known of the type's wildcard any more.
    pub fn without_wildcard(&self, type_url: &TypeUrl) -> Self {
        let mut next = self.clone();
        if let Some(slot) = next.types.get_mut(type_url) {
            slot.wildcard = None;
        }
        next
    }

    /// Returns the cut in which nothing is known of the type any more.
    pub fn without(&self, type_url: &TypeUrl) -> Self {
        let mut next = self.clone();
        next.types.remove(type_url);
        next
    }
}

impl Slot {
    /// Creates a slot in which nothing is known.
    #[must_use]
    pub fn new(type_url: &TypeUrl) -> Self {
        Self {
            wildcard: None,
            named: Arc::new(State::new(type_url.clone())),
            answered: false,
        }
    }

    /// C-20: returns by what other names the named half has these. While the wildcard has other content, it is not known what they
    /// stand for, so each of its changes is one of theirs.
    fn aliased(&self, names: &[Name]) -> Vec<Name> {
        if self.named.entries().is_empty() {
            return Vec::new();
        }
        let named = names.iter().filter_map(|name| self.named.resource(name));
        named.flat_map(|resource| resource.aliases().iter().cloned()).collect()
    }

    /// Returns what is known of a name, from the wildcard or else from the named half. K-05: if the wildcard lost the name, that
    /// says nothing to those who requested it by name, unless the server did not answer that request in time.
    pub fn known(&self, name: &Name) -> Option<&Known> {
        let covered = self.wildcard.as_ref().and_then(|state| state.known(name));
        match (covered, self.named.known(name)) {
            (Some(Known::Present(_)), _) | (Some(_), Some(Known::Absent(Reason::TimedOut))) => covered,
            (_, Some(Known::Present(resource))) if self.outdates(name, resource) => None,
            (_, named) => named,
        }
    }

    /// C-20: whether a resource was found by an alias, and the wildcard has other content of it that does not have that alias. Then
    /// it is not known what the alias stands for until both have the same content.
    fn outdates(&self, name: &Name, found: &Resource) -> bool {
        if found.name() == name {
            return false;
        }
        let covered = self.wildcard.as_ref().and_then(|state| state.resource(found.name()));
        covered.is_some_and(|covered| covered.version() != found.version() && covered.body() != found.body())
    }

    /// How many resources exist; one that is in both halves counts twice.
    pub fn present(&self) -> usize {
        let covered = self.wildcard.as_ref().map_or(0, |state| state.present());
        covered + self.named.present()
    }

    /// Whether any of it comes from an earlier run of the relay, and the server has not confirmed it since.
    pub fn stale(&self) -> bool {
        self.named.stale() || self.wildcard.as_ref().is_some_and(|state| state.stale())
    }

    /// Both halves: what the wildcard covers, and what was requested by name.
    pub fn halves(&self) -> impl Iterator<Item = &Arc<State>> {
        self.wildcard.iter().chain([&self.named])
    }

    /// Returns the resource of this name, if it exists.
    pub fn resource(&self, name: &Name) -> Option<&Arc<Resource>> {
        self.known(name)?.resource()
    }

    /// Returns when the resource of this canonical name expires.
    pub fn expiry(&self, name: &Name) -> Option<Expiry> {
        match &self.wildcard {
            Some(state) if state.resource(name).is_some() => state.expiry(name),
            Some(_) | None => self.named.expiry(name),
        }
    }
}
