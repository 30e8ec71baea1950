// SPDX-License-Identifier: Apache-2.0
//! The difference between what a client was sent and what is current.
//!
//! Owns the one operation behind first fetch, update, catching up and reconnecting. Does not know which of them it is.

mod beats;

use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::ordmap::DiffItem;

use beats::beats;

use super::{Batch, Known, Name, Resource, State, Update};

/// What must be sent to a client so that it holds another state than now. It is the same for all clients with the same start
/// and the same goal.
#[derive(Debug)]
pub struct Difference {
    goal: u64,
    changed: Run<Arc<Resource>>,
    beats: Arc<[Arc<Resource>]>,
    removed: Run<Name>,
    additions: OnceLock<Part>,
    removals: OnceLock<Part>,
    kept: OnceLock<Part>,
    all: OnceLock<Part>,
}

/// Which response of those to which a difference leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// Changes, as far as there is room, and the removals that must not wait.
    Additions,
    /// Removals, as far as there is room.
    Removals,
    /// A full state that still lists what is to be removed.
    Kept,
    /// A full state.
    All,
}

/// What is left of a sorted list that is sent in cyclic order.
#[derive(Clone, Debug)]
struct Run<T> {
    all: Arc<[T]>,
    first: usize,
    left: usize,
}

/// As much of a difference as one response carries.
#[derive(Debug)]
pub struct Part {
    /// What is sent; `None`: a list of all that the client has then.
    pub batch: Option<Arc<Batch>>,
    /// When the oldest change in it was received.
    pub since: Option<Instant>,
    /// The endpoints that new or changed clusters in it wait for (K-13).
    pub endpoints: Vec<Name>,
    /// What the client was then sent in all.
    pub next: Arc<State>,
    /// The name with which the part ends, if more is to be sent.
    pub cursor: Option<Name>,
    /// What is left; `None` if that was all. Always `Some` otherwise, until it is dropped.
    rest: Option<Arc<Difference>>,
}

impl Part {
    /// Creates a part that ends with the name `cursor`, and after which the client has all of `next`.
    #[must_use]
    pub fn new(
        batch: Option<Arc<Batch>>,
        since: Option<Instant>,
        endpoints: Vec<Name>,
        (next, rest): (Arc<State>, Option<Arc<Difference>>),
        cursor: Option<Name>,
    ) -> Self {
        Self {
            batch,
            since,
            endpoints,
            next,
            cursor: cursor.filter(|_| rest.is_some()),
            rest,
        }
    }

    /// Returns what is still to be sent.
    pub const fn rest(&self) -> Option<&Arc<Difference>> {
        self.rest.as_ref()
    }
}

impl Drop for Part {
    /// Drops the parts in a loop: each owns the next one, and there may be too many for recursion.
    fn drop(&mut self) {
        let mut next: Vec<Arc<Difference>> = self.rest.take().into_iter().collect();
        while let Some(difference) = next.pop() {
            let Some(Difference {
                additions, removals, ..
            }) = Arc::into_inner(difference)
            else {
                continue;
            };
            let parts = [additions.into_inner(), removals.into_inner()];
            next.extend(parts.into_iter().flatten().filter_map(|mut part| part.rest.take()));
        }
    }
}

impl<T> Run<T> {
    fn new(all: Vec<T>, first: usize) -> Self {
        let left = all.len();
        Self {
            all: all.into(),
            first: first % left.max(1),
            left,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let (end, over) = self.ends();
        let tail = self.all.get(self.first..end).unwrap_or_default();
        tail.iter().chain(self.all.get(..over).unwrap_or_default())
    }

    /// Returns where its two halves end: the one that begins at `first`, and the one that begins the list again.
    fn ends(&self) -> (usize, usize) {
        let end = self.first + self.left;
        (end.min(self.all.len()), end.saturating_sub(self.all.len()))
    }

    fn after(&self, said: usize) -> Self {
        Self {
            all: self.all.clone(),
            first: (self.first + said) % self.all.len().max(1),
            left: self.left - said.min(self.left),
        }
    }

    /// Returns the first entry that comes after a bound, by name.
    fn next(&self, after: Bound<&str>, name: impl Fn(&T) -> &str) -> Option<&T> {
        let behind = |entry: &T| match after {
            Bound::Unbounded => false,
            Bound::Included(text) => name(entry) < text,
            Bound::Excluded(text) => name(entry) <= text,
        };
        let at = self.all.partition_point(behind);
        let (end, over) = self.ends();
        let found = if at < over {
            at
        } else {
            Some(at.max(self.first)).filter(|at| *at < end)?
        };
        self.all.get(found)
    }
}

impl Difference {
    /// Compares content by hash alone, and begins with the names after `cursor`. If one state was made from the other, the cost
    /// depends only on what changed.
    #[must_use]
    pub fn between(from: Option<&State>, cursor: Option<&Name>, to: &State) -> Self {
        let nothing = State::new(to.type_url().clone());
        let from = from.unwrap_or(&nothing);
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for item in from.entries().diff(to.entries()) {
            match item {
                DiffItem::Add(_, Known::Present(new))
                | DiffItem::Update {
                    new: (_, Known::Present(new)),
                    ..
                } => changed.push(new.clone()),
                DiffItem::Update {
                    old: (name, Known::Present(_) | Known::Held(_)),
                    ..
                }
                | DiffItem::Remove(name, Known::Present(_) | Known::Held(_)) => removed.push(name.clone()),
                DiffItem::Add(..) | DiffItem::Update { .. } | DiffItem::Remove(..) => {}
            }
        }
        let past = |name: &Name| cursor.is_some_and(|cursor| name <= cursor);
        let first = changed.partition_point(|resource: &Arc<Resource>| past(resource.name()));
        let gone_first = removed.partition_point(|name| past(name));
        let (changed, removed) = (Run::new(changed, first), Run::new(removed, gone_first));
        Self::new(to.id(), changed, beats(from, to).into(), removed)
    }

    const fn new(goal: u64, changed: Run<Arc<Resource>>, beats: Arc<[Arc<Resource>]>, removed: Run<Name>) -> Self {
        Self {
            goal,
            changed,
            beats,
            removed,
            additions: OnceLock::new(),
            removals: OnceLock::new(),
            kept: OnceLock::new(),
            all: OnceLock::new(),
        }
    }

    /// Whether it leads to this very state.
    pub const fn leads_to(&self, state: &State) -> bool {
        self.goal == state.id()
    }

    /// New or different resources that were not sent yet.
    pub fn changed(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.changed.iter()
    }

    /// Whether anything is new or different.
    pub const fn adds(&self) -> bool {
        self.changed.left > 0
    }

    /// Whether the client was sent anything that the state does not have.
    pub const fn removes(&self) -> bool {
        self.removed.left > 0
    }

    /// Whether equal resources were confirmed by a heartbeat, or lost their time to live (K-17).
    pub fn beats(&self) -> bool {
        !self.beats.is_empty()
    }

    /// Returns how many names differ.
    pub fn len(&self) -> usize {
        self.changed.left + self.removed.left + self.beats.len()
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first of all differing names that comes after a bound.
    pub fn next(&self, after: Bound<&str>) -> Option<&Name> {
        let changed = self.changed.next(after, |resource| resource.name().as_str());
        let removed = self.removed.next(after, Name::as_str);
        let behind = |resource: &Arc<Resource>| match after {
            Bound::Unbounded => false,
            Bound::Included(text) => resource.name().as_str() < text,
            Bound::Excluded(text) => resource.name().as_str() <= text,
        };
        let beat = self.beats.get(self.beats.partition_point(behind));
        let named = changed.into_iter().chain(beat).map(|resource| resource.name());
        named.chain(removed).min()
    }

    /// Returns all differing names.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        let resources = self.changed.iter().chain(self.beats.iter());
        resources.map(|resource| resource.name()).chain(self.removed.iter())
    }

    /// Whether anything differs under a name.
    pub fn has(&self, name: &Name) -> bool {
        self.next(Bound::Included(name.as_str())) == Some(name)
    }

    /// Names that were sent, that the state does not have, and of which no removal was sent yet.
    pub fn removed(&self) -> impl Iterator<Item = &Name> {
        self.removed.iter()
    }

    /// Returns this response, which is composed once for all who get it.
    pub fn part(&self, portion: Portion, compose: impl FnOnce() -> Part) -> &Part {
        let cell = match portion {
            Portion::Additions => &self.additions,
            Portion::Removals => &self.removals,
            Portion::Kept => &self.kept,
            Portion::All => &self.all,
        };
        cell.get_or_init(compose)
    }

    /// Returns what a client has in all that was sent the next `changed` changes and these removals, which are in order; and what is left
    /// then.
    pub fn after(
        &self,
        from: Option<&Arc<State>>,
        to: &Arc<State>,
        changed: usize,
        gone: &[Name],
    ) -> (Arc<State>, Option<Arc<Self>>) {
        let left = (self.changed.after(changed), self.removals_after(gone));
        if left.0.left == 0 && left.1.left == 0 {
            return (to.clone(), None);
        }
        let puts = self.changed().take(changed);
        let puts = puts.map(|resource| Update::Put(resource.clone(), to.expiry(resource.name())));
        let updates: Vec<Update> = puts.chain(gone.iter().cloned().map(Update::Forget)).collect();
        let nothing = || Arc::new(State::new(to.type_url().clone()));
        let next = from.cloned().unwrap_or_else(nothing).told(&updates);
        let rest = Self::new(self.goal, left.0, self.beats.clone(), left.1);
        (Arc::new(next), Some(Arc::new(rest)))
    }

    fn removals_after(&self, gone: &[Name]) -> Run<Name> {
        let goes = |name: &Name| gone.binary_search(name).is_ok();
        if self.removed.iter().take(gone.len()).all(goes) {
            return self.removed.after(gone.len());
        }
        let mut rest: Vec<Name> = self.removed.iter().filter(|name| !goes(name)).cloned().collect();
        rest.sort_unstable();
        Run::new(rest, 0)
    }

    /// Returns the state that a full state lists if only these removals are sent, which are in order: what is current, and what is to be
    /// removed later. What has no body cannot be listed.
    pub fn listed(&self, from: Option<&Arc<State>>, to: &Arc<State>, gone: &[Name]) -> Arc<State> {
        let kept = self.removed.iter().filter(|name| gone.binary_search(name).is_err());
        let held = kept
            .filter_map(|name| from?.resource(name))
            .filter(|held| !held.is_hollow());
        let puts: Vec<Update> = held.map(|held| Update::Put(held.clone(), None)).collect();
        if puts.is_empty() {
            to.clone()
        } else {
            Arc::new(to.told(&puts))
        }
    }

    /// About how many bytes the relay keeps for it, encodings included.
    pub fn weight(&self) -> usize {
        let bodies: usize = self.changed.all.iter().map(|resource| resource.weight()).sum();
        size_of::<Self>() + bodies + self.removed.all.len() * REMOVED_BYTES
    }
}

/// What a removed name takes, generously: its text, which often nobody else has any more, and its places in the response and in what the
/// client was sent before.
const REMOVED_BYTES: usize = 256;

/// How many names one response may remove. A name costs far more than its bytes, and other clients have their turns between two
/// responses.
pub const GONE_MAX: usize = 2048;
