// SPDX-License-Identifier: Apache-2.0
//! The wanted names of one type, and which of them still wait for an answer.
//!
//! Owns the time that a server has to answer for a name (E-08). Knows nothing of resources.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use crate::sorted::{Named, Sorted};
use xds::Name;

/// The wanted names.
///
/// Invariant: `open` counts the names that are `Unasked` or `Asked`; a name that is `Asked` is in its batch; a later batch ends later.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    names: Sorted<WantedNames>,
    open: usize,
    batches: BTreeMap<u32, Batch>,
    /// SotW: those that the server is not asked for, because it may be silent while they are in the list.
    unlisted: BTreeSet<Name>,
}

#[derive(Debug)]
struct WantedNames {
    name: Name,
    state: NameState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameState {
    /// The server has not been asked on this stream.
    Unasked,
    /// The server was asked, and has time to answer as long as this batch.
    Asked(u32),
    /// Nothing is waited for, but the server has not answered on this stream: it answered on an earlier one, or its time is over.
    Silent,
    /// The server has answered on this stream.
    Known,
}

impl NameState {
    const fn is_open(self) -> bool {
        matches!(self, Self::Unasked | Self::Asked(_))
    }
}

/// Names of which the time to answer ends at once: most were in one request.
#[derive(Debug)]
struct Batch {
    until: Instant,
    /// Some may have another state by now.
    names: VecDeque<Name>,
}

impl Named for WantedNames {
    const STAYS: bool = true;

    fn name(&self) -> &Name {
        &self.name
    }
}

impl Awaited {
    pub(super) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether any name still waits for the server's answer.
    pub(super) const fn lacks(&self) -> bool {
        self.open > 0
    }

    /// Whether the server has answered for every name on this stream.
    pub(super) fn all_heard(&self) -> bool {
        self.unheard().next().is_none()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the stored name with this text.
    pub(super) fn get(&self, name: &str) -> Option<&Name> {
        self.names.get(name).map(Named::name)
    }

    /// Returns the stored name with this text, if it still waits for the server's answer.
    pub(super) fn waiting(&self, name: &str) -> Option<&Name> {
        let wanted = self.names.get(name).filter(|wanted| wanted.state.is_open());
        wanted.map(Named::name)
    }

    /// Returns the names that still wait for the server's answer.
    pub(super) fn open(&self) -> impl Iterator<Item = &Name> {
        let open = self.names.iter().filter(|wanted| wanted.state.is_open());
        open.map(Named::name)
    }

    /// Returns the names for which the server has not answered on this stream.
    pub(super) fn unheard(&self) -> impl Iterator<Item = &Name> {
        let unheard = self.names.iter().filter(|wanted| wanted.state != NameState::Known);
        unheard.map(Named::name)
    }

    /// Whether the server has answered for this name on this stream.
    pub(super) fn has_heard(&self, name: &Name) -> bool {
        let wanted = self.names.get(name.as_str());
        wanted.is_some_and(|wanted| wanted.state == NameState::Known)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.names.iter().map(Named::name)
    }

    /// Returns the names that the server is asked for.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Name> {
        self.iter().filter(|name| !self.unlisted.contains(*name))
    }

    /// Whether the server is not asked for this wanted name.
    pub(super) fn is_unlisted(&self, name: &Name) -> bool {
        self.unlisted.contains(name)
    }

    /// The server is asked for a wanted name, or is not. Returns whether that is new.
    pub(super) fn list(&mut self, name: &Name, listed: bool) -> bool {
        match listed {
            true => self.unlisted.remove(name),
            false => self.unlisted.insert(name.clone()),
        }
    }

    /// Adds a name. Returns whether it is new.
    pub(super) fn insert(&mut self, name: &Name) -> bool {
        let new = !self.names.contains(name.as_str());
        if new {
            self.names.insert(WantedNames {
                name: name.clone(),
                state: NameState::Unasked,
            });
            self.open += 1;
        }
        new
    }

    /// Removes a name. Returns whether it was there.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let Some(wanted) = self.names.remove(name.as_str()) else {
            return false;
        };
        self.unlisted.remove(name);
        self.open -= usize::from(wanted.state.is_open());
        true
    }

    /// The server was asked for these names. E-08: their time to answer begins when the request has really been sent. A name whose
    /// content is held does not wait.
    pub(super) fn asked(&mut self, names: Vec<Name>, until: Instant) {
        let last = self.batches.last_key_value();
        let number = last.map_or(0, |(last, batch)| last.wrapping_add(u32::from(batch.until < until)));
        let mut waits = |name: &Name| {
            let wanted = self.names.get_mut(name.as_str());
            let wanted = wanted.filter(|wanted| wanted.state == NameState::Unasked);
            wanted.map(|wanted| wanted.state = NameState::Asked(number)).is_some()
        };
        let mut names: VecDeque<Name> = names.into_iter().filter(|name| waits(name)).collect();
        if !names.is_empty() {
            let batch = self.batches.entry(number).or_insert_with(|| Batch {
                until,
                names: VecDeque::new(),
            });
            batch.names.append(&mut names);
        }
    }

    /// The server has answered for the name.
    pub(super) fn known(&mut self, name: &str) {
        self.set(name, NameState::Known);
    }

    /// The name does not wait, although the server has not answered for it on this stream.
    pub(super) fn rest(&mut self, name: &str) {
        if self.waiting(name).is_some() {
            self.set(name, NameState::Silent);
        }
    }

    /// The earlier answer for the name does not hold any more: the name waits as if it was just asked for.
    pub(super) fn doubt(&mut self, name: &Name, until: Instant) {
        if self.waiting(name.as_str()).is_none() && self.set(name.as_str(), NameState::Unasked) {
            self.asked(vec![name.clone()], until);
        }
    }

    /// E-08: the time to answer stops with the stream, and begins again on the next one.
    pub(super) fn disconnected(&mut self) {
        self.batches.clear();
        self.names.each_mut(|wanted| {
            wanted.state = match wanted.state {
                NameState::Unasked | NameState::Asked(_) => NameState::Unasked,
                NameState::Silent | NameState::Known => NameState::Silent,
            };
        });
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.batches.values().next().map(|batch| batch.until)
    }

    /// Takes a name whose time to answer is over.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Name> {
        while let Some(mut first) = self.batches.first_entry().filter(|batch| batch.get().until <= now) {
            let number = *first.key();
            let waits = |name: &Name| {
                let wanted = self.names.get(name.as_str());
                wanted.is_some_and(|wanted| wanted.state == NameState::Asked(number))
            };
            let names = &mut first.get_mut().names;
            while let Some(name) = names.pop_front() {
                if waits(&name) {
                    self.set(name.as_str(), NameState::Silent);
                    return Some(name);
                }
            }
            first.remove();
        }
        None
    }

    /// Gives a name this state. Returns whether it is wanted.
    fn set(&mut self, name: &str, state: NameState) -> bool {
        let Some(wanted) = self.names.get_mut(name) else {
            return false;
        };
        self.open = self.open - usize::from(wanted.state.is_open()) + usize::from(state.is_open());
        wanted.state = state;
        true
    }
}
