//! What a client holds.
//!
//! Owns the types for it, from one name to a whole wildcard. Does not know how the client came to hold it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Name, Resource, State, Update, Version};

/// What a client holds under one name.
#[derive(Clone, Debug, Default)]
pub enum Held {
    /// Nothing: it was never sent, or the client has forgotten it.
    #[default]
    Nothing,
    /// Perhaps something; the relay does not know what (after a NACK, or from before this stream).
    Unknown,
    /// Content with this version, as the client itself says.
    Version(Version),
    /// This content.
    Content(Arc<Resource>),
}

impl Held {
    /// Whether it is certainly the content with this version.
    #[must_use]
    pub fn is(&self, version: Version) -> bool {
        match self {
            Self::Nothing | Self::Unknown => false,
            Self::Version(held) => *held == version,
            Self::Content(held) => held.version() == version,
        }
    }

    /// Whether the client may hold anything.
    #[must_use]
    pub const fn perhaps(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Returns the content, if it can be sent again.
    #[must_use]
    pub fn whole(&self) -> Option<&Arc<Resource>> {
        self.content().filter(|content| !content.is_hollow())
    }

    /// Returns the content, if it is known, perhaps without its bytes.
    #[must_use]
    pub const fn content(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Content(resource) => Some(resource),
            Self::Nothing | Self::Unknown | Self::Version(_) => None,
        }
    }

    /// C-20: returns the canonical name of the content, if the client asked for it by another one.
    #[must_use]
    pub fn own_name(&self, asked: &Name) -> Option<&Name> {
        self.content().map(|content| content.name()).filter(|own| *own != asked)
    }
}

/// What a client holds in addition to a state: what it kept from an earlier stream, or what is about to be removed.
#[derive(Debug)]
pub struct Extra {
    id: u64,
    names: BTreeMap<Name, Held>,
    sum: Version,
}

impl Extra {
    /// Creates it from the table.
    #[must_use]
    pub fn new(names: BTreeMap<Name, Held>) -> Self {
        let sum = names
            .values()
            .filter_map(Held::whole)
            .fold(Version::EMPTY, |sum, held| sum.plus(held.version()));
        Self {
            id: next_id(),
            names,
            sum,
        }
    }

    /// Identifies this very value.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The table.
    #[must_use]
    pub const fn names(&self) -> &BTreeMap<Name, Held> {
        &self.names
    }

    /// Returns the part that a full state can list: resources with their bodies.
    #[must_use]
    pub fn listed(self: &Arc<Self>) -> Option<Arc<Self>> {
        if self.names.values().all(|held| held.whole().is_some()) {
            return Some(self.clone());
        }
        let rest = self.names.iter().filter(|(_, held)| held.whole().is_some());
        let rest: BTreeMap<_, _> = rest.map(|(name, held)| (name.clone(), held.clone())).collect();
        (!rest.is_empty()).then(|| Arc::new(Self::new(rest)))
    }

    /// Returns the same without these names.
    #[must_use]
    pub fn without<'a>(&self, gone: impl Iterator<Item = &'a Name>) -> Self {
        let mut names = self.names.clone();
        gone.for_each(|name| drop(names.remove(name)));
        Self::new(names)
    }

    /// The version of the set of contents that can be sent again.
    #[must_use]
    pub const fn sum(&self) -> Version {
        self.sum
    }

    /// About how many bytes the relay keeps for it, without bodies.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.names.len() * 64
    }
}

/// What a wildcard subscription holds: a state, and more in `extra`. No name of `extra` is in `state`.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The state that the client was last brought to.
    pub state: Option<Arc<State>>,
    /// What it holds in addition.
    pub extra: Option<Arc<Extra>>,
}

impl Seen {
    /// Returns what the client holds under this name.
    #[must_use]
    pub fn held(&self, name: &Name) -> Held {
        if let Some(resource) = self.state.as_ref().and_then(|state| state.resource(name)) {
            return Held::Content(resource.clone());
        }
        self.extra
            .as_ref()
            .and_then(|extra| extra.names().get(name))
            .cloned()
            .unwrap_or_default()
    }

    /// Notes what the client was sent for single names.
    pub fn note(&mut self, told: Vec<(Name, Held)>) {
        if told.is_empty() {
            return;
        }
        let mut updates = Vec::new();
        let mut names = self
            .extra
            .as_ref()
            .map_or_else(BTreeMap::new, |extra| extra.names().clone());
        for (name, held) in told {
            let name = held.content().map_or(name, |content| content.name().clone());
            let covered = self.state.as_ref().is_some_and(|state| state.resource(&name).is_some());
            match held {
                Held::Content(content) if covered => updates.push(Update::Put(content, None)),
                Held::Nothing => {
                    names.remove(&name);
                    updates.extend(covered.then_some(Update::Forget(name)));
                }
                Held::Unknown | Held::Version(_) | Held::Content(_) => {
                    updates.extend(covered.then(|| Update::Forget(name.clone())));
                    names.insert(name, held);
                }
            }
        }
        if let Some(state) = self.state.as_ref().filter(|_| !updates.is_empty()) {
            self.state = Some(Arc::new(state.told(&updates)));
        }
        self.extra = (!names.is_empty()).then(|| Arc::new(Extra::new(names)));
    }

    /// Returns what the client holds after it was sent these resources of a state.
    #[must_use]
    pub fn brought(&self, resources: &[Arc<Resource>], to: &State) -> Self {
        let expiry = |resource: &Resource| to.expiry(resource.name());
        let puts = resources
            .iter()
            .map(|resource| Update::Put(resource.clone(), expiry(resource)));
        let puts: Vec<Update> = puts.collect();
        let nothing = || Arc::new(State::new(to.type_url().clone()));
        let from = self.state.clone().unwrap_or_else(nothing);
        let names = || resources.iter().map(|resource| resource.name());
        let extra = self.extra.as_ref().map(|extra| {
            let kept = names().any(|name| extra.names().contains_key(name));
            if kept {
                Arc::new(extra.without(names()))
            } else {
                extra.clone()
            }
        });
        Self {
            state: Some(Arc::new(from.told(&puts))),
            extra: extra.filter(|extra| !extra.names().is_empty()),
        }
    }

    /// Identifies this very value.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        (
            self.state.as_ref().map_or(0, |state| state.id()),
            self.extra.as_ref().map_or(0, |extra| extra.id()),
        )
    }
}

/// Returns an id that no other value in this process has; 0 means none.
pub(super) fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
