//! The wanted names of one type, and which of them still wait for an answer.
//!
//! Owns the time that a server has to answer for a name (E-08). Knows nothing of resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::completeness::Quiet;
use xds::Name;

/// The wanted names.
///
/// Invariant: `verdicts` has exactly the names that are `Asked`; `open` counts those that are not `Known`.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    names: BTreeMap<Name, NameState>,
    open: usize,
    verdicts: BTreeSet<(Instant, Name)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameState {
    /// The server has not been asked on this stream.
    Unasked,
    /// The server was asked, and has time to answer until then.
    Asked(Instant),
    /// The server has answered, or its time is over.
    Known,
}

impl Awaited {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether any name still waits for the server's answer.
    pub(super) const fn lacks(&self) -> bool {
        self.open > 0
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Returns the stored name with this text.
    pub(super) fn get(&self, name: &str) -> Option<&Name> {
        self.names.get_key_value(name).map(|(name, _)| name)
    }

    /// Returns the names that still wait for the server's answer.
    pub(super) fn open(&self) -> impl Iterator<Item = &Name> {
        let open = self.names.iter().filter(|(_, state)| **state != NameState::Known);
        open.map(|(name, _)| name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// Adds a name. Returns whether it is new.
    pub(super) fn insert(&mut self, name: &Name) -> bool {
        let new = !self.names.contains_key(name);
        if new {
            self.names.insert(name.clone(), NameState::Unasked);
            self.open += 1;
        }
        new
    }

    /// Removes a name. Returns whether it was there.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let state = self.names.remove(name);
        self.open -= usize::from(state.is_some_and(|state| state != NameState::Known));
        if let Some(NameState::Asked(at)) = state {
            self.verdicts.remove(&(at, name.clone()));
        }
        state.is_some()
    }

    /// The server was asked for the name. E-08: its time to answer begins when the request has really been sent. A name whose
    /// content is held does not wait.
    pub(super) fn asked(&mut self, name: Name, until: Instant) {
        if let Some(state @ NameState::Unasked) = self.names.get_mut(&name) {
            *state = NameState::Asked(until);
            self.verdicts.insert((until, name));
        }
    }

    /// The server has answered for the name.
    pub(super) fn known(&mut self, name: &str) {
        let Some((name, _)) = self.names.get_key_value(name) else {
            return;
        };
        let name = name.clone();
        let before = self.names.insert(name.clone(), NameState::Known);
        self.open -= usize::from(before != Some(NameState::Known));
        if let Some(NameState::Asked(at)) = before {
            self.verdicts.remove(&(at, name));
        }
    }

    /// The earlier answer for the name does not hold any more: the name waits as if it was just asked for.
    pub(super) fn doubt(&mut self, name: &Name, until: Instant) {
        if let Some(state @ NameState::Known) = self.names.get_mut(name) {
            *state = NameState::Asked(until);
            self.verdicts.insert((until, name.clone()));
            self.open += 1;
        }
    }

    /// E-08: the time to answer stops with the stream, and begins again on the next one.
    pub(super) fn disconnected(&mut self) {
        for (_, name) in std::mem::take(&mut self.verdicts) {
            self.names.insert(name, NameState::Unasked);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.verdicts.first().map(|(at, _)| *at)
    }

    /// Takes a name whose time to answer is over.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Name> {
        self.verdicts.first().filter(|(at, _)| *at <= now)?;
        let (_, name) = self.verdicts.pop_first()?;
        self.names.insert(name.clone(), NameState::Known);
        self.open -= 1;
        Some(name)
    }
}

/// How long the relay waits for a server's answers for one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// How long a server may take to answer for a name.
    pub(super) does_not_exist: Duration,
    /// How long a server must be quiet before a wildcard is complete.
    pub(super) quiet: Duration,
    /// The same, learned from how this server answers for this type.
    pub(super) learned: Option<Duration>,
}

impl Patience {
    pub(super) fn wildcard(&self) -> Quiet {
        let learned = self.learned.unwrap_or(self.quiet);
        Quiet {
            needed: learned.min(self.quiet),
            unknown: self.quiet,
        }
    }

    /// For collections, the learned time does not count: their members may come in another rhythm than a wildcard.
    pub(super) const fn unlearned(&self) -> Quiet {
        Quiet {
            needed: self.quiet,
            unknown: self.quiet,
        }
    }
}
