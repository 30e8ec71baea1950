//! The difference between what a client holds and what is current.
//!
//! Owns the one operation behind first fetch, update, catching up and reconnecting. Refuses to know which of them it is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use imbl::ordmap::DiffItem;

use super::{Batch, Extra, Held, Item, Known, Name, Resource, Seen, State};

/// What must be said to somebody who holds one thing so that it holds another. The same for everybody at the same two points.
#[derive(Debug)]
pub struct Difference {
    changed: Vec<Arc<Resource>>,
    beats: Vec<Arc<Resource>>,
    removed: Option<Arc<Extra>>,
    /// C-23: what is held and goes that is not for everybody, by name: what it demands.
    withdrawn: BTreeMap<Name, Bytes>,
    additions: OnceLock<Arc<Batch>>,
    removals: OnceLock<Arc<Batch>>,
    both: OnceLock<Arc<Batch>>,
}

impl Difference {
    /// Compares content by hash alone; costs what changed where the two states are relatives.
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
        let withdrawn = withdrawn(seen, to, &changed, &removed);
        let removed = (!removed.is_empty()).then(|| Arc::new(Extra::new(removed)));
        Self {
            changed,
            beats,
            removed,
            withdrawn,
            ..Self::nothing()
        }
    }

    /// No difference.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            changed: Vec::new(),
            beats: Vec::new(),
            removed: None,
            withdrawn: BTreeMap::new(),
            additions: OnceLock::new(),
            removals: OnceLock::new(),
            both: OnceLock::new(),
        }
    }

    /// What is new or different, by name.
    #[must_use]
    pub fn changed(&self) -> &[Arc<Resource>] {
        &self.changed
    }

    /// What is the same and was confirmed by a heartbeat, or lost its time to live (K-17).
    #[must_use]
    pub fn beats(&self) -> &[Arc<Resource>] {
        &self.beats
    }

    /// What is held and not there any more.
    #[must_use]
    pub const fn removed(&self) -> Option<&Arc<Extra>> {
        self.removed.as_ref()
    }

    /// When the oldest of the changes was received.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.changed.iter().map(|resource| resource.received()).min()
    }

    /// What is new or different, ready to send, cut into chunks of about `chunk` bytes.
    #[must_use]
    pub fn additions(&self, chunk: usize) -> Arc<Batch> {
        self.additions
            .get_or_init(|| self.batch(self.items(), Vec::new(), chunk))
            .clone()
    }

    /// What is gone, ready to send.
    #[must_use]
    pub fn removals(&self, chunk: usize) -> Arc<Batch> {
        self.removals
            .get_or_init(|| self.batch(Vec::new(), self.gone(), chunk))
            .clone()
    }

    /// Both together, ready to send.
    #[must_use]
    pub fn both(&self, chunk: usize) -> Arc<Batch> {
        self.both
            .get_or_init(|| self.batch(self.items(), self.gone(), chunk))
            .clone()
    }

    /// About how many bytes the relay keeps for it, encodings included.
    #[must_use]
    pub fn weight(&self) -> usize {
        let bodies: usize = self.changed.iter().map(|resource| resource.weight()).sum();
        size_of::<Self>() + bodies + self.removed.as_ref().map_or(0, |extra| extra.weight())
    }

    fn batch(&self, items: Vec<Item>, removed: Vec<Name>, chunk: usize) -> Arc<Batch> {
        Arc::new(Batch::new(items, removed, chunk).with_withdrawn(self.withdrawn.clone()))
    }

    fn items(&self) -> Vec<Item> {
        self.changed
            .iter()
            .map(|resource| Item::plain(resource.clone()))
            .collect()
    }

    fn gone(&self) -> Vec<Name> {
        self.removed
            .iter()
            .flat_map(|extra| extra.names().keys().cloned())
            .collect()
    }
}

/// What is held of these names and demands something of a client, by name, and is not what comes in its place.
fn withdrawn(
    seen: &Seen,
    to: &State,
    changed: &[Arc<Resource>],
    removed: &BTreeMap<Name, Held>,
) -> BTreeMap<Name, Bytes> {
    let chosen = seen.state.as_ref().is_some_and(|state| state.is_chosen())
        || seen.extra.as_ref().is_some_and(|extra| extra.is_chosen());
    if !chosen && !to.varies() {
        return BTreeMap::new();
    }
    let demands = |name: &Name, held: &Held| match held {
        Held::Content(resource) => resource.constraints().cloned(),
        Held::Version(version) => to.demands(name, *version).cloned(),
        Held::Nothing | Held::Unknown => None,
    };
    let swapped = changed.iter().filter_map(|new| {
        let old = demands(new.name(), &seen.held(new.name()))?;
        (Some(&old) != new.constraints()).then(|| (new.name().clone(), old.encoded().clone()))
    });
    let gone = removed
        .iter()
        .filter_map(|(name, held)| Some((name.clone(), demands(name, held)?.encoded().clone())));
    swapped.chain(gone).collect()
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
