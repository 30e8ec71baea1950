//! The names that are wanted of one type, and what each still waits for.
//!
//! Owns the time that a server has to answer for a name (E-08). Refuses to know resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::completeness::Quiet;
use crate::xds::Name;

/// Names that are wanted.
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
    /// It was asked, and has until then.
    Asked(Instant),
    /// It has said something, or its time is over.
    Known,
}

impl Awaited {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether the server has something to say of a name, and has time to.
    pub(super) const fn lacks(&self) -> bool {
        self.open > 0
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// The name with this text.
    pub(super) fn get(&self, name: &str) -> Option<&Name> {
        self.names.get_key_value(name).map(|(name, _)| name)
    }

    /// The names for which the server has time to answer.
    pub(super) fn open(&self) -> impl Iterator<Item = &Name> {
        let open = self.names.iter().filter(|(_, state)| **state != NameState::Known);
        open.map(|(name, _)| name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// Whether the name is new.
    pub(super) fn insert(&mut self, name: &Name) -> bool {
        let new = !self.names.contains_key(name);
        if new {
            self.names.insert(name.clone(), NameState::Unasked);
            self.open += 1;
        }
        new
    }

    /// Whether the name was there.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let state = self.names.remove(name);
        self.open -= usize::from(state.is_some_and(|state| state != NameState::Known));
        if let Some(NameState::Asked(at)) = state {
            self.verdicts.remove(&(at, name.clone()));
        }
        state.is_some()
    }

    /// The server was asked for the name. E-08: the time to answer begins when the request has really been sent, and not for
    /// what is held.
    pub(super) fn asked(&mut self, name: Name, until: Instant) {
        if let Some(state @ NameState::Unasked) = self.names.get_mut(&name) {
            *state = NameState::Asked(until);
            self.verdicts.insert((until, name));
        }
    }

    /// Something was said about the name.
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

    /// What was said about the name does not hold any more: it is waited for like one that was just asked for.
    pub(super) fn doubt(&mut self, name: &Name, until: Instant) {
        if let Some(state @ NameState::Known) = self.names.get_mut(name) {
            *state = NameState::Asked(until);
            self.verdicts.insert((until, name.clone()));
            self.open += 1;
        }
    }

    /// E-08: the time to answer stops with the stream, and begins anew on the next.
    pub(super) fn disconnected(&mut self) {
        for (_, name) in std::mem::take(&mut self.verdicts) {
            self.names.insert(name, NameState::Unasked);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.verdicts.first().map(|(at, _)| *at)
    }

    /// A name for which the time to answer is over.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Name> {
        self.verdicts.first().filter(|(at, _)| *at <= now)?;
        let (_, name) = self.verdicts.pop_first()?;
        self.names.insert(name.clone(), NameState::Known);
        self.open -= 1;
        Some(name)
    }
}

/// The durations that a type goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// What a server has to answer for a name.
    pub(super) does_not_exist: Duration,
    /// How long it must be quiet before a wildcard is complete.
    pub(super) quiet: Duration,
    /// The same for this type, if the server has shown how it answers.
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

    /// Collections are waited for as if nothing were known: each may have members that come in another way.
    pub(super) const fn unlearned(&self) -> Quiet {
        Quiet {
            needed: self.quiet,
            unknown: self.quiet,
        }
    }
}
