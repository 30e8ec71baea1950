//! The difference between what a client holds and what is current.
//!
//! Owns the one operation behind first fetch, update, catching up and reconnecting. Does not know which of them it is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use imbl::ordmap::DiffItem;

use super::{Batch, Extra, Held, Item, Known, Name, Resource, Seen, State};

/// What must be sent to a client so that it holds another state than now. It is the same for all clients with the same start
/// and the same goal.
#[derive(Debug)]
pub struct Difference {
    changed: Arc<[Arc<Resource>]>,
    /// How many of `changed` were sent already.
    said: usize,
    beats: Arc<[Arc<Resource>]>,
    removed: Option<Arc<Extra>>,
    additions: OnceLock<Part>,
    whole: OnceLock<Part>,
}

/// As much of a difference as one response carries.
#[derive(Debug)]
pub struct Part {
    /// Its resources and removed names.
    pub batch: Arc<Batch>,
    /// When the oldest change in it was received.
    pub since: Option<Instant>,
    /// What is left; `None` if that was all.
    pub left: Option<Left>,
}

/// What remains to be done after a part was sent.
#[derive(Debug)]
pub struct Left {
    seen: Seen,
    /// Always `Some`, until it is dropped.
    rest: Option<Arc<Difference>>,
}

impl Left {
    /// Returns what the client holds then, and what is still to be sent.
    #[must_use]
    pub fn open(&self) -> Option<(&Seen, &Arc<Difference>)> {
        Some((&self.seen, self.rest.as_ref()?))
    }
}

impl Drop for Left {
    /// Drops the parts in a loop: each owns the next one, and there may be too many for recursion.
    fn drop(&mut self) {
        let mut next = self.rest.take();
        while let Some(difference) = next.take().and_then(Arc::into_inner) {
            let Difference { additions, whole, .. } = difference;
            let parts = [additions.into_inner(), whole.into_inner()];
            let lefts = parts.into_iter().flatten().filter_map(|part| part.left);
            // At most one of the two has a rest: `whole` exists only if `additions` leaves nothing.
            next = lefts.filter_map(|mut left| left.rest.take()).next();
        }
    }
}

impl Difference {
    /// Compares content by hash alone. If one state was made from the other, the cost depends only on what changed.
    #[must_use]
    pub fn between(seen: &Seen, to: &State) -> Self {
        let nothing = State::new(to.type_url().clone());
        let from = seen.state.as_deref().unwrap_or(&nothing);
        let extra = seen.extra.as_deref().map(Extra::names);
        let remembered = |name: &Name| extra.and_then(|extra| extra.get(name));
        let mut changed = Vec::new();
        let mut removed = BTreeMap::new();
        for item in from.entries().diff(to.entries()) {
            match item {
                DiffItem::Add(name, Known::Present(new)) => {
                    if !remembered(name).is_some_and(|held| held.is(new.version())) {
                        changed.push(new.clone());
                    }
                }
                DiffItem::Update {
                    new: (_, Known::Present(new)),
                    ..
                } => changed.push(new.clone()),
                DiffItem::Update {
                    old: (name, Known::Present(old)),
                    ..
                }
                | DiffItem::Remove(name, Known::Present(old)) => {
                    removed.insert(name.clone(), Held::Content(old.clone()));
                }
                DiffItem::Add(..) | DiffItem::Update { .. } | DiffItem::Remove(..) => {}
            }
        }
        for (name, held) in extra.into_iter().flatten() {
            if to.resource(name).is_none() {
                removed.insert(name.clone(), held.clone());
            }
        }
        let beats = beats(from, to);
        let removed = (!removed.is_empty()).then(|| Arc::new(Extra::new(removed)));
        Self {
            changed: changed.into(),
            beats: beats.into(),
            removed,
            ..Self::nothing()
        }
    }

    /// C-11: everything in a state, whether the client holds it or not, and the removal of what only the client has.
    #[must_use]
    pub fn again(seen: &Seen, to: &State) -> Self {
        Self {
            changed: to.resources().cloned().collect(),
            ..Self::between(seen, to)
        }
    }

    /// No difference.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            changed: Arc::default(),
            said: 0,
            beats: Arc::default(),
            removed: None,
            additions: OnceLock::new(),
            whole: OnceLock::new(),
        }
    }

    /// New or different resources that were not sent yet, by name.
    #[must_use]
    pub fn changed(&self) -> &[Arc<Resource>] {
        self.changed.get(self.said..).unwrap_or_default()
    }

    /// Equal resources that a heartbeat confirmed, or that lost their time to live (K-17).
    #[must_use]
    pub fn beats(&self) -> &[Arc<Resource>] {
        &self.beats
    }

    /// What the client holds and the state does not have.
    #[must_use]
    pub const fn removed(&self) -> Option<&Arc<Extra>> {
        self.removed.as_ref()
    }

    /// When the oldest of the changes was received.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        oldest(self.changed())
    }

    /// Returns what is still to be sent after the first `changed` resources.
    #[must_use]
    pub fn after(&self, changed: usize) -> Self {
        Self {
            changed: self.changed.clone(),
            said: self.said + changed,
            beats: self.beats.clone(),
            removed: self.removed.clone(),
            ..Self::nothing()
        }
    }

    /// Returns what is still to be sent when only these removals are left.
    #[must_use]
    pub fn last(&self, removed: Arc<Extra>) -> Self {
        Self {
            removed: Some(removed),
            ..Self::nothing()
        }
    }

    /// Returns as much as fits into a response of about `chunk` bytes. Removals come last, and only if `removals` allows them.
    /// The part is the same for all clients with the same start and the same goal.
    #[must_use]
    pub fn part(&self, seen: &Seen, to: &Arc<State>, removals: bool, chunk: usize) -> &Part {
        let additions = || self.additions.get_or_init(|| self.begin(seen, to, None, chunk));
        let Some(removed) = self.removed.as_deref().filter(|_| removals) else {
            return additions();
        };
        if !self.changed().is_empty() && additions().left.is_some() {
            return additions();
        }
        self.whole.get_or_init(|| self.begin(seen, to, Some(removed), chunk))
    }

    fn begin(&self, seen: &Seen, to: &Arc<State>, removed: Option<&Extra>, chunk: usize) -> Part {
        let mut room = Room::new(chunk);
        let changed = self.changed();
        let fits = changed
            .iter()
            .take_while(|resource| room.takes(resource.weight()))
            .count();
        let (now, later) = changed.split_at(fits);
        let going = removed.into_iter().flat_map(|extra| extra.names().keys());
        let gone: Vec<Name> = going.take_while(|name| room.takes_name(name)).cloned().collect();
        let left = if !later.is_empty() {
            Some(Left {
                seen: seen.brought(now, to),
                rest: Some(Arc::new(self.after(fits))),
            })
        } else {
            removed.filter(|extra| extra.names().len() > gone.len()).map(|extra| {
                let extra = Arc::new(extra.without(gone.iter()));
                Left {
                    seen: Seen {
                        state: Some(to.clone()),
                        extra: Some(extra.clone()),
                    },
                    rest: Some(Arc::new(self.last(extra))),
                }
            })
        };
        let items = now.iter().map(|resource| Item::plain(resource.clone())).collect();
        Part {
            batch: Arc::new(Batch::new(items, gone)),
            since: oldest(now),
            left,
        }
    }

    /// About how many bytes the relay keeps for it, encodings included.
    #[must_use]
    pub fn weight(&self) -> usize {
        let bodies: usize = self.changed.iter().map(|resource| resource.weight()).sum();
        size_of::<Self>() + bodies + self.removed.as_ref().map_or(0, |extra| extra.weight())
    }
}

/// How much still fits into a response; the first item always fits.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    full: bool,
    empty: bool,
}

impl Room {
    /// Creates the room of a response of about so many bytes.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self {
            bytes,
            full: false,
            empty: true,
        }
    }

    /// Adds an item of this weight. Returns whether it fits; after the first that does not, none does.
    pub const fn takes(&mut self, weight: usize) -> bool {
        self.full |= !self.empty && weight > self.bytes;
        if self.full {
            return false;
        }
        self.empty = false;
        self.bytes = self.bytes.saturating_sub(weight);
        true
    }

    /// Adds a name without content, like [`Self::takes`].
    pub fn takes_name(&mut self, name: &Name) -> bool {
        self.takes(name.as_str().len() + 4)
    }

    /// Whether something did not fit.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }
}

fn oldest(resources: &[Arc<Resource>]) -> Option<Instant> {
    resources.iter().map(|resource| resource.received()).min()
}

fn beats(from: &State, to: &State) -> Vec<Arc<Resource>> {
    if from.expiries().is_empty() && to.expiries().is_empty() {
        return Vec::new();
    }
    let mut beats = Vec::new();
    for item in from.expiries().diff(to.expiries()) {
        let (DiffItem::Add(name, _) | DiffItem::Update { new: (name, _), .. } | DiffItem::Remove(name, _)) = item;
        if let (Some(old), Some(new)) = (from.resource(name), to.resource(name))
            && old.version() == new.version()
        {
            beats.push(new.clone());
        }
    }
    beats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResourceParts, TypeUrl, Update};

    /// part by part everything is sent once, `seen` follows, and a long chain of parts can be dropped.
    #[test]
    fn part_by_part() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let received = Instant::now();
        let type_url = TypeUrl::new("t");
        let content = |number: usize| {
            let parts = ResourceParts {
                type_url: &type_url,
                name: Name::from(format!("{number:05}")),
                aliases: Vec::new(),
                passed_on: &[],
                body: &[],
                endpoints: None,
                received,
            };
            Update::Put(Arc::new(Resource::new(parts, 0)), None)
        };
        let state = |numbers: std::ops::Range<usize>| {
            let puts: Vec<Update> = numbers.map(content).collect();
            Arc::new(State::new(type_url.clone()).with(&puts, Some(true)).0)
        };
        let (old, new) = (state(0..2_000), state(1_000..4_000));
        let mut seen = Seen {
            state: Some(old),
            extra: None,
        };
        let first = Arc::new(Difference::between(&seen, &new));
        let (mut difference, mut said) = (first.clone(), Vec::new());
        loop {
            let part = difference.part(&seen, &new, true, 1);
            said.extend(part.batch.items().iter().map(|item| item.resource.name().clone()));
            said.extend(part.batch.removed().iter().cloned());
            assert_eq!(part.batch.items().len() + part.batch.removed().len(), 1);
            let Some((held, rest)) = part.left.as_ref().and_then(Left::open) else {
                break;
            };
            let (held, rest) = (held.clone(), rest.clone());
            let left = rest.changed().len() + rest.removed().map_or(0, |extra| extra.names().len());
            assert_eq!(left + said.len(), 3_000, "2,000 come and 1,000 go");
            (seen, difference) = (held, rest);
        }
        assert!(
            said.iter()
                .map(ToString::to_string)
                .eq((2_000..4_000).chain(0..1_000).map(|at| format!("{at:05}")))
        );
        drop(difference);
        // Each part owns the next one: recursion would overflow this stack.
        let little = std::thread::Builder::new().stack_size(64 << 10);
        little.spawn(move || drop(first)).unwrap().join().unwrap();
    }
}
