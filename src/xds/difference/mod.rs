//! The difference between what a client was sent and what is current.
//!
//! Owns the one operation behind first fetch, update, catching up and reconnecting. Does not know which of them it is.

mod beats;
mod handover;

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::ordmap::DiffItem;

use beats::beats;

use super::{Batch, Item, Kind, Known, Name, Resource, Room, Spots, State, Update};

/// What must be sent to a client so that it holds another state than now. It is the same for all clients with the same start
/// and the same goal.
#[derive(Debug)]
pub struct Difference {
    goal: u64,
    changed: Run<Arc<Resource>>,
    beats: Arc<[Arc<Resource>]>,
    removed: Run<Name>,
    additions: OnceLock<Option<Part>>,
    removals: OnceLock<Option<Part>>,
    kept: OnceLock<Arc<State>>,
    /// By the state that is sent: all its listeners in an order of their own; `None` if they need none.
    handover: OnceLock<(u64, Option<Arc<Batch>>)>,
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
    /// Its resources and removed names.
    pub batch: Arc<Batch>,
    /// When the oldest change in it was received.
    pub since: Option<Instant>,
    /// What the client was then sent in all.
    pub next: Arc<State>,
    /// The name with which the part ends, if more is to be sent.
    pub cursor: Option<Name>,
    /// What is left; `None` if that was all. Always `Some` otherwise, until it is dropped.
    rest: Option<Arc<Difference>>,
}

impl Part {
    /// Returns what is still to be sent.
    #[must_use]
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
            next.extend(
                parts
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter_map(|mut part| part.rest.take()),
            );
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
                    old: (name, Known::Present(_)),
                    ..
                }
                | DiffItem::Remove(name, Known::Present(_)) => removed.push(name.clone()),
                DiffItem::Add(..) | DiffItem::Update { .. } | DiffItem::Remove(..) => {}
            }
        }
        let past = |name: &Name| cursor.is_some_and(|cursor| name <= cursor);
        let first = changed.partition_point(|resource: &Arc<Resource>| past(resource.name()));
        let gone_first = removed.partition_point(|name| past(name));
        Self {
            goal: to.id(),
            changed: Run::new(changed, first),
            beats: beats(from, to).into(),
            removed: Run::new(removed, gone_first),
            additions: OnceLock::new(),
            removals: OnceLock::new(),
            kept: OnceLock::new(),
            handover: OnceLock::new(),
        }
    }

    /// Whether it leads to this very state.
    #[must_use]
    pub const fn leads_to(&self, state: &State) -> bool {
        self.goal == state.id()
    }

    /// New or different resources that were not sent yet.
    pub fn changed(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.changed.iter()
    }

    /// Whether anything is new or different.
    #[must_use]
    pub const fn adds(&self) -> bool {
        self.changed.left > 0
    }

    /// Whether the client was sent anything that the state does not have.
    #[must_use]
    pub const fn removes(&self) -> bool {
        self.removed.left > 0
    }

    /// Whether equal resources were confirmed by a heartbeat, or lost their time to live (K-17).
    #[must_use]
    pub fn beats(&self) -> bool {
        !self.beats.is_empty()
    }

    /// Returns how many names differ.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changed.left + self.removed.left + self.beats.len()
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first of all differing names that comes after a bound.
    #[must_use]
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
    #[must_use]
    pub fn has(&self, name: &Name) -> bool {
        self.next(Bound::Included(name.as_str())) == Some(name)
    }

    /// When the oldest of the changes was received.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        oldest(self.changed())
    }

    /// Returns the changes that fit into a response of about `chunk` bytes. A listener that goes shares the response with one that
    /// takes its address (C-26). `None` if nothing changed.
    #[must_use]
    pub fn additions(&self, from: Option<&Arc<State>>, to: &Arc<State>, chunk: usize) -> Option<&Part> {
        let make = || (self.changed.left > 0).then(|| self.begin_additions(from, to, chunk));
        self.additions.get_or_init(make).as_ref()
    }

    /// Returns the removals that fit into a response. `None` if nothing is removed.
    #[must_use]
    pub fn removals(&self, from: Option<&Arc<State>>, to: &Arc<State>, chunk: usize) -> Option<&Part> {
        let make = || (self.removed.left > 0).then(|| self.begin_removals(from, to, chunk));
        self.removals.get_or_init(make).as_ref()
    }

    /// Returns the state that a full state lists while removals wait for other types: what is current, and what is to be removed.
    /// What has no body, or gives its address to another listener, cannot be listed.
    #[must_use]
    pub fn kept(&self, from: Option<&Arc<State>>, to: &Arc<State>) -> &Arc<State> {
        self.kept.get_or_init(|| {
            let freed = self.freed(from, self.changed.iter());
            let gone = self.removed.iter().filter(|name| !freed.contains(*name));
            let held = gone.filter_map(|name| from?.resource(name));
            let puts = held
                .filter(|held| !held.is_hollow())
                .map(|held| Update::Put(held.clone(), None));
            let puts: Vec<Update> = puts.collect();
            if puts.is_empty() {
                to.clone()
            } else {
                Arc::new(to.told(&puts))
            }
        })
    }

    /// Returns the removed listeners whose addresses these listeners take.
    fn freed<'a>(&self, from: Option<&Arc<State>>, taking: impl Iterator<Item = &'a Arc<Resource>>) -> BTreeSet<Name> {
        if self.removed.left == 0 || from.is_none_or(|from| from.type_url().kind() != Kind::Lds) {
            return BTreeSet::new();
        }
        let taken = Spots::of_listeners(taking);
        let gives = |name: &&Name| {
            let held = from.and_then(|from| from.resource(name));
            held.is_some_and(|held| taken.are_of(held))
        };
        self.removed.iter().filter(gives).cloned().collect()
    }

    fn begin_additions(&self, from: Option<&Arc<State>>, to: &Arc<State>, chunk: usize) -> Part {
        let mut room = Room::new(chunk);
        let fits = self.changed.iter().take_while(|resource| room.takes(resource.weight()));
        let mut now: Vec<Arc<Resource>> = fits.cloned().collect();
        let changed = self.changed.after(now.len());
        let cursor = now.last().map(|resource| resource.name().clone());
        now.sort_unstable_by(|one, other| one.name().cmp(other.name()));
        let freed = self.freed(from, now.iter());
        let removed = if freed.is_empty() {
            self.removed.clone()
        } else {
            let rest = self.removed.iter().filter(|name| !freed.contains(*name));
            let mut rest: Vec<Name> = rest.cloned().collect();
            rest.sort_unstable();
            Run::new(rest, 0)
        };
        let freed: Vec<Name> = freed.into_iter().collect();
        let items = now.iter().map(|resource| Item::plain(resource.clone())).collect();
        let mut part = self.left(from, to, &now, &freed, changed, removed, cursor);
        part.since = oldest(now.iter());
        part.batch = Arc::new(Batch::new(items, freed));
        part
    }

    fn begin_removals(&self, from: Option<&Arc<State>>, to: &Arc<State>, chunk: usize) -> Part {
        let mut room = Room::new(chunk);
        let fits = self
            .removed
            .iter()
            .take(GONE_MAX)
            .take_while(|name| room.takes_name(name));
        let mut gone: Vec<Name> = fits.cloned().collect();
        let removed = self.removed.after(gone.len());
        let cursor = gone.last().cloned();
        gone.sort_unstable();
        let mut part = self.left(from, to, &[], &gone, self.changed.clone(), removed, cursor);
        part.batch = Arc::new(Batch::new(Vec::new(), gone));
        part
    }

    #[expect(clippy::too_many_arguments, reason = "the two halves of a part, and of what is left")]
    fn left(
        &self,
        from: Option<&Arc<State>>,
        to: &Arc<State>,
        now: &[Arc<Resource>],
        gone: &[Name],
        changed: Run<Arc<Resource>>,
        removed: Run<Name>,
        cursor: Option<Name>,
    ) -> Part {
        let all = changed.left == 0 && removed.left == 0;
        let next = || {
            let nothing = || Arc::new(State::new(to.type_url().clone()));
            let puts = now
                .iter()
                .map(|resource| Update::Put(resource.clone(), to.expiry(resource.name())));
            let updates: Vec<Update> = puts.chain(gone.iter().cloned().map(Update::Forget)).collect();
            Arc::new(from.cloned().unwrap_or_else(nothing).told(&updates))
        };
        let rest = || Self {
            goal: self.goal,
            changed,
            beats: self.beats.clone(),
            removed,
            additions: OnceLock::new(),
            removals: OnceLock::new(),
            kept: OnceLock::new(),
            handover: OnceLock::new(),
        };
        Part {
            batch: Arc::new(Batch::new(Vec::new(), Vec::new())),
            since: None,
            next: if all { to.clone() } else { next() },
            cursor: cursor.filter(|_| !all),
            rest: (!all).then(|| Arc::new(rest())),
        }
    }

    /// About how many bytes the relay keeps for it, encodings included.
    #[must_use]
    pub fn weight(&self) -> usize {
        let bodies: usize = self.changed.all.iter().map(|resource| resource.weight()).sum();
        size_of::<Self>() + bodies + self.removed.all.len() * size_of::<Name>()
    }
}

/// How many names one response may remove. A name costs far more than its bytes, and other clients have their turns between two
/// responses.
pub const GONE_MAX: usize = 2048;

fn oldest<'a>(resources: impl Iterator<Item = &'a Arc<Resource>>) -> Option<Instant> {
    resources.map(|resource| resource.received()).min()
}
